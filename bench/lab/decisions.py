"""DOSAS's three schemes with more and more simultaneous processes on one storage node, as in figures 6 to 12 and table IV.

TS: each process reads the file into memory and then computes, as the paper's clients do. AS: the node folds for all. DOSAS: each
request is decided for itself, and may be decided again (`--place auto`, with the default objective of a node).
"""

import judge
import papers
import schemes
import workload
from experiment import Situation
from judge import AS, DOSAS, TS

MIB = 1 << 20

# The first round does not count. It runs only situations with at most this many requests.
WARM = 2

COUNTS, QUICK_COUNTS = (1, 2, 4, 8, 16, 32, 64), (1, 4)
QUICK_SIZE = 16

KERNELS = {
    "SUM": (workload.doubles, lambda _: workload.SUM, papers.DOSAS_SUM),
    "Gaussian": (workload.image, workload.summary, papers.DOSAS_GAUSSIAN),
}


# The minimum size that a single request reads, in MB.
WHOLE = 128

# The machine on which each kernel has the paper's rate.
MACHINES = {"SUM": "dosas2012-sum", "Gaussian": "dosas2012-filter"}


def asked(bench, kernel, size, shorter=None):
    """A file of one piece, the request for it, and the answer."""
    make, request, _ = KERNELS[kernel]
    file = bench.file(make, size * MIB, 1, unit=None, shorter=shorter)
    request = request(file.size)
    return file, request, bench.truth(file, request)


def ways(bench, each):
    """Runs simultaneous requests under each scheme. Each is (file, request, answer)."""
    storage = bench.storage
    on = [bench.clients[number % len(bench.clients)] for number in range(len(each))]
    schemes.processes(storage, on)
    whats = [(file, request) for file, request, _ in each]
    placed = [(*what, host) for what, host in zip(whats, on)]
    return {
        TS: lambda: schemes.programs(storage, on, whats),
        AS: lambda: schemes.mixed(storage, "storage", placed),
        DOSAS: lambda: schemes.mixed(storage, "auto", placed),
    }


THEIRS = "the paper's model"
PAPER = (
    "equations 4 to 7 with the paper's rates, 80 MB/s a core for the filter, 860 MB/s for SUM, 118 MB/s a link, one core a "
    "node and a result of no length; DOSAS as the better of the two"
)


class Figure:
    """An experiment with one kernel and one size, as described in `experiment`. `size` is in MB. Figures 11 and 12 show the
    `bandwidth` of figures 8 and 9."""

    SCALE, QUICK_SCALE, REPEATS = 1 / 2, 1 / 2, 3
    X, Y = "requests at once", "seconds until all are answered"
    LOG = JUDGED = True
    THEIRS, PAPER = THEIRS, PAPER

    def __init__(self, name, doc, title, kernel, size, shorter, bandwidth=False):
        self.__name__, self.__doc__, self.TITLE = name, doc, title
        self.KERNEL, self.SIZE, self.SHORTER = kernel, size, shorter
        self.MACHINE = MACHINES[kernel]
        if bandwidth:
            self.BANDWIDTH = size * MIB

    def machine(self, described, quick):
        return described

    def situations(self, bench, quick):
        for n in QUICK_COUNTS if quick else COUNTS:
            shorter = self.SHORTER if quick else self.shorter(n)
            one = asked(bench, self.KERNEL, QUICK_SIZE if quick else self.SIZE, shorter)
            for name, run in ways(bench, [one] * n).items():
                yield Situation(name, n, run, one[2], warm=n <= WARM, shorter=shorter)

    def shorter(self, n):
        """A few requests take little time, so their files need not be much shorter. All together read at least as much as one of
        WHOLE."""
        return min(self.SHORTER, max(1, n * self.SIZE / WHOLE))

    def paper(self):
        """The paper's model (equations 4 to 7) with its rates, one core, and without the size of a result."""
        link, core, size = papers.DOSAS_LINK, KERNELS[self.KERNEL][2], self.SIZE * MIB
        ts = {n: n * size / link + size / core for n in COUNTS}
        as_ = {n: n * size / core for n in COUNTS}
        return {TS: ts, AS: as_, DOSAS: {n: min(ts[n], as_[n]) for n in COUNTS}}

    @staticmethod
    def findings(rows):
        return findings(rows)


def findings(rows):
    verdicts = judge.judged(rows)
    for x, verdict in verdicts.items():
        who = str(x).replace("\n", ", ")
        yield (
            f"{who}: DOSAS takes {verdict.over[TS]:.2f} of the time of TS and {verdict.over[AS]:.2f} of that of AS; "
            f"better: {verdict.better}; decided: mostly {verdict.decided}{'' if verdict.right else ', WRONG'}"
        )
    yield from judge.summary(list(verdicts.values()))
