"""Son 2010, figure 14: KMEANS of a million points, threshold 0.001, on more and more nodes, without the GPU.

TS is a parallel program that reads its part into memory once and iterates there. Its ranks add up their results over the network
after each pass. With AS the storage nodes make all passes among themselves. Both make the same number of iterations over the same
points, which are ours (see figure 13).
"""

import papers
import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1, 1 / 2, 3
TITLE = "Son 2010, figure 14: KMEANS on more and more nodes"
X, Y = "servers (and as many clients for TS)", "seconds"
LOG = True
DELTA, QUICK_POINTS = 0.001, 100_000


def counts(quick):
    return (1, 2) if quick else (1, 2, 4, 8)


def machine(described, quick):
    return described.with_hosts(storage=max(counts(quick)), client=max(counts(quick)))


def situations(bench, quick):
    request = workload.kmeans(0.05 if quick else DELTA)
    points = QUICK_POINTS if quick else papers.SON_POINTS
    for n in counts(quick):
        file = bench.file(workload.points, points * workload.POINT, n, unit=None)
        truth = bench.truth(file, request)

        def ts(file=file, ranks=bench.clients[:n]):
            return schemes.program(bench.storage, file, request, ranks)

        def as_(file=file):
            return schemes.active(bench.storage, file, request, bench.clients[0])

        # The runs on the largest number of nodes make all connections.
        last = n == max(counts(quick))
        yield Situation("TS", n, ts, truth, warm=last)
        yield Situation("AS", n, as_, truth, warm=last)


def paper():
    return {}


PAPER = ""


def findings(table):
    ts, as_ = table["TS"], table["AS"]
    part = ", ".join(f"{as_[n][0] / ts[n][0]:.3f} on {n}" for n in ts)
    yield f"AS takes {part} nodes of the time of TS (the paper: the gain is negligible, computing dominates)"
    most = max(ts)
    gains = " and ".join(f"{name} {of[1][0] / of[most][0]:.1f} times" for name, of in (("TS", ts), ("AS", as_)))
    yield f"{most} nodes are faster than one: {gains} (the paper: more nodes make all schemes faster)"
