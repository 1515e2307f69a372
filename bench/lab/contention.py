"""DOSAS's Gaussian filter with more and more simultaneous processes on one storage node, as in figures 2, 4 and 5."""

import contextlib

import papers
import schemes
import workload
from experiment import Situation

TS, TWO_CORES, ONE_CORE, TO_CLIENT = "TS", "AS", "AS, one core", "AS, image to the client"

# The first round does not count. It runs only situations with at most this many requests.
WARM = 2


def situations(bench, size, counts, to_client):
    file = bench.file(workload.image, size, 1, unit=None)
    request = workload.gaussian(file.size)
    truth = bench.truth(file, request)
    storage, [node] = bench.storage, bench.servers
    for n in counts:
        clients, there = [bench.clients[i % len(bench.clients)] for i in range(n)], [node] * n
        for on in (clients, there):
            schemes.processes(storage, on)

        def asked(place, on, cores=None):
            with storage.fewer_cores(cores) if cores else contextlib.nullcontext():
                return schemes.several(storage, file, request, place, on)

        ways = {
            TS: lambda on=clients: asked("client", on),
            TWO_CORES: lambda on=there: asked("storage", on),
            ONE_CORE: lambda on=there: asked("storage", on, 1),
        }
        if to_client:
            ways[TO_CLIENT] = lambda on=clients: asked("storage", on)
        for name, run in ways.items():
            yield Situation(name, n, run, truth, warm=n <= WARM)


def paper(size, counts):
    """The paper's model (equations 4 to 7) with its rates and without the size of a result."""
    link, core = papers.DOSAS_LINK, papers.DOSAS_GAUSSIAN
    return {
        TS: {n: n * size / link + size / core for n in counts},
        TWO_CORES: {n: n * size / (core * papers.DOSAS_CORES) for n in counts},
        ONE_CORE: {n: n * size / core for n in counts},
    }


THEIRS = "the paper's model"
PAPER = (
    "equations 4 to 7 with the paper's rates, 80 MB/s a core and 118 MB/s a link, and a result of no length; with the two "
    "cores of a node that the paper names AS cannot lose, with one it loses from the fourth request on, as in its table IV"
)


def findings(table):
    ts = table[TS]
    for name in (TWO_CORES, ONE_CORE, TO_CLIENT):
        if name not in table:
            continue
        of = {n: table[name][n][0] / ts[n][0] for n in ts}
        slower = [n for n in of if of[n] > 1]
        loses = f"slower than TS with {', '.join(map(str, slower))} requests" if slower else "never slower than TS"
        first, last = min(of), max(of)
        yield f"{name}: {of[first]:.2f} of the time of TS with {first} request, {of[last]:.2f} with {last}; {loses}"
    yield (
        "the paper: AS takes about 0.6 of the time of TS with few requests and 1.27 with many (section IV.B: DOSAS takes 40 % "
        "less than TS there, and 21 % less than AS here), and is the slower one with four requests or more (table IV)"
    )
