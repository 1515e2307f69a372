"""DOSAS 2012, figure 6: SUM by more and more processes at once, 128 MB each, on one storage node."""

import papers
import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "dosas2012", 1 / 2, 1 / 2, 3
TITLE = "DOSAS 2012, figure 6: SUM, 128 MB a request, one storage node"
X, Y = "requests at once", "seconds until all are answered"
LOG = True
SIZE = 128
WARM = 4


def counts(quick):
    return (1, 4) if quick else (1, 2, 4, 8, 16, 32, 64)


def machine(described, quick):
    return described


def situations(bench, quick):
    file = bench.file(workload.doubles, (8 if quick else SIZE) << 20, 1, unit=None)
    truth = bench.truth(file, workload.SUM)
    for n in counts(quick):
        on = [bench.clients[i % len(bench.clients)] for i in range(n)]
        for name, place in (("TS", "client"), ("AS", "storage")):
            run = lambda place=place, on=on: schemes.several(bench.storage, file, workload.SUM, place, on)
            # All processes are there before the first round, which counts for nothing.
            schemes.processes(bench.storage, on)
            yield Situation(name, n, run, truth, warm=n <= WARM)


def paper():
    size, link, core = SIZE * 2**20, papers.DOSAS_LINK, papers.DOSAS_SUM
    return {
        "TS": {n: n * size / link + size / core for n in counts(False)},
        "AS": {n: n * size / (core * papers.DOSAS_CORES) for n in counts(False)},
    }


THEIRS = "the paper's model"
PAPER = "equations 4 to 7 with the paper's rates: 860 MB/s a core, two cores a node, 118 MB/s"


def findings(table):
    ts, as_ = table["TS"], table["AS"]
    better = [n for n in ts if as_[n][0] < ts[n][0]]
    yield f"AS is faster for {len(better)} of {len(ts)} numbers of requests (the paper: for all)"
    saved = [1 - as_[n][0] / ts[n][0] for n in ts]
    yield f"AS saves {min(saved):.0%} to {max(saved):.0%}"
