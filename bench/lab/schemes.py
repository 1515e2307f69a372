"""The schemes that the papers compare.

*Active storage* (AS): one client sends a request, and each storage node folds its own data. *Traditional storage* (TS): a parallel
program of ranks reads the file. Each rank reads and folds one part, in the order of the file. If each server has one piece of the
file, as with Son, each rank reads from a server of its own.
"""

from statistics import mean

from storage import ask_all

# The port where rank 0 of a program listens for the others.
PROGRAM_PORT = 7441

# The parts of a program's time.
READING, COMPUTING = "reading", "computing"


def parts(file, ranks, record=1):
    """Cuts the file into one part for each rank, at records: [(first byte, bytes)]."""
    records = file.size // record
    cuts = [records * n // ranks * record for n in range(ranks + 1)]
    return [(a, b - a) for a, b in zip(cuts, cuts[1:])]


def command(storage, file, what, **more):
    return {"cluster": storage.entry, "file": file.path, "what": what, **more}


def active(storage, file, request, host):
    """The seconds of the request, and the answer."""
    asked = command(storage, file, request.what("storage", storage.lanes))
    seconds, [answer] = ask_all([(storage.rank(host), asked)])
    return seconds, answer


def traditional(storage, file, request, on):
    """The answer of a program with a rank on each of the hosts `on`. Each rank folds while it reads."""
    asked = []
    for host, part in zip(on, parts(file, len(on), request.record or 8)):
        what = request.what("client", storage.lanes, part)
        asked.append((storage.rank(host), command(storage, file, what)))
    seconds, answers = ask_all(asked)
    whole = dict(answers[0])
    whole["result"] = request.together([answer["result"] for answer in answers])
    return seconds, whole


def program(storage, file, request, on):
    """The answer of a program with a rank on each of the hosts `on`. Each rank reads its part into memory once and then computes,
    in as many passes as the kernel takes. `parts` of the answer: the seconds of reading, as an average of all ranks, and the
    seconds of the rest."""
    what = request.what("client", storage.lanes)
    root = f"{on[0].address}:{PROGRAM_PORT}"
    ranks = [{"rank": rank, "ranks": len(on), "root": root} for rank in range(len(on))]
    asked = [(storage.rank(host), command(storage, file, what, **rank)) for host, rank in zip(on, ranks)]
    seconds, answers = ask_all(asked, "program")
    reading = min(mean(answer["read_seconds"] for answer in answers), seconds)
    split = {READING: reading, COMPUTING: seconds - reading}
    return seconds, answers[0] | {"all": [answer["result"] for answer in answers], "parts": split}


def several(storage, file, request, place, on):
    """The same request of many simultaneous processes, each for itself. `on` has the host of each process."""
    what = request.what(place, storage.lanes)
    asked = [(rank, command(storage, file, what)) for rank in processes(storage, on)]
    seconds, answers = ask_all(asked)
    return seconds, answers[0] | {"all": [answer["result"] for answer in answers]}


def mixed(storage, place, asked):
    """Like `several`, but the requests may differ: [(file, request, host)]. With the place "auto" each request is decided for
    itself. `folded_by_clients` is the share of the bytes that clients folded."""
    ranks = processes(storage, [host for _, _, host in asked])
    sent = [
        (rank, command(storage, file, request.what(place, storage.lanes)))
        for rank, (file, request, _) in zip(ranks, asked)
    ]
    return together(ask_all(sent))


def together(answered):
    """The seconds, and all answers as one."""
    seconds, answers = answered
    read = sum(answer["bytes_read"] for answer in answers)
    here = sum(answer["bytes_folded_here"] for answer in answers) / max(read, 1)
    return seconds, answers[0] | {"all": [answer["result"] for answer in answers], "folded_by_clients": here}


def programs(storage, on, asked):
    """Many programs of one rank each that read into memory first. `asked` has the file and the request of each."""
    sent = [
        (
            rank,
            command(storage, file, request.what("client", storage.lanes), rank=0, ranks=1, root="127.0.0.1:0"),
        )
        for rank, (file, request) in zip(processes(storage, on), asked)
    ]
    seconds, answers = ask_all(sent, "program")
    return seconds, answers[0] | {"all": [answer["result"] for answer in answers], "folded_by_clients": 1}


def processes(storage, on):
    """A process for each of the hosts `on`. Missing processes are started."""
    seen, found = {}, []
    for host in on:
        number = seen[host] = seen.get(host, -1) + 1
        found.append(storage.rank(host, number))
    return found
