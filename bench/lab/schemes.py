"""The ways of asking that the papers compare.

*Active storage* (AS): one client asks, each storage node folds what it holds. *Traditional storage* (TS): a parallel
program of ranks, each of which reads a part of the file and folds it, one part a rank in the order of the file; with one
piece a server, as Son laid files out, each rank has a server for itself.
"""

from storage import ask_all


def parts(file, ranks, record=1):
    """The file in as many parts as there are ranks, cut at records: [(first byte, bytes)]."""
    records = file.size // record
    cuts = [records * n // ranks * record for n in range(ranks + 1)]
    return [(a, b - a) for a, b in zip(cuts, cuts[1:])]


def active(storage, file, request, host):
    """The answer, and the seconds it took."""
    rank = storage.rank(host)
    seconds, [answer] = ask_all([(rank, storage.entry, file, request.what("storage", storage.lanes))])
    return seconds, answer


def traditional(storage, file, request, on):
    """The answer of a program with a rank on each of the hosts `on`."""
    asked = []
    for host, part in zip(on, parts(file, len(on), request.record or 8)):
        what = request.what("client", storage.lanes, part)
        asked.append((storage.rank(host), storage.entry, file, what))
    seconds, answers = ask_all(asked)
    whole = dict(answers[0])
    whole["result"] = request.together([answer["result"] for answer in answers])
    return seconds, whole


def several(storage, file, request, place, on):
    """Many processes that ask the same at once, each for itself: `on` has their hosts, a host as often as it has
    processes."""
    seen, asked = {}, []
    for host in on:
        number = seen[host] = seen.get(host, -1) + 1
        asked.append((storage.rank(host, number), storage.entry, file, request.what(place, storage.lanes)))
    seconds, answers = ask_all(asked)
    return seconds, answers[0] | {"all": [answer["result"] for answer in answers]}
