"""Son 2010, figure 15: KMEANS of more and more points, threshold 0.001, on four nodes, without the GPU.

TS is a parallel program that reads its part into memory once and iterates there. With AS the storage nodes make all passes among
themselves. The number of iterations for the threshold varies a little with the number of points, which are ours (see figure 13).
Son's text does not give its numbers of points.
"""

import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1, 1 / 2, 3
TITLE = "Son 2010, figure 15: KMEANS of more and more points, four nodes"
X, Y = "thousand points", "seconds"
LOG = True
NODES, DELTA = 4, 0.001


def thousands(quick):
    return (50, 100) if quick else (250, 500, 1000, 2000)


def machine(described, quick):
    return described.with_hosts(storage=NODES, client=NODES)


def situations(bench, quick):
    request = workload.kmeans(0.05 if quick else DELTA)
    for count in thousands(quick):
        file = bench.file(workload.points, 1000 * count * workload.POINT, NODES, unit=None)
        truth = bench.truth(file, request)

        def ts(file=file):
            return schemes.program(bench.storage, file, request, bench.clients)

        def as_(file=file):
            return schemes.active(bench.storage, file, request, bench.clients[0])

        first = count == min(thousands(quick))
        yield Situation("TS", count, ts, truth, warm=first)
        yield Situation("AS", count, as_, truth, warm=first)


def paper():
    return {}


PAPER = ""


def findings(table):
    ts, as_ = table["TS"], table["AS"]
    part = ", ".join(f"{as_[count][0] / ts[count][0]:.3f} for {count}" for count in ts)
    yield f"AS takes {part} thousand points of the time of TS (the paper: almost no difference)"
