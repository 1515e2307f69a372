"""Son 2010, figure 11: SUM of 512 MB on more and more nodes.

Son shows only SUM. We add GREP (2^24 records of 128 bytes).
"""

import papers
import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1 / 2, 1 / 2, 7
TITLE = "Son 2010, figure 11: 512 MB on more and more nodes"
X, Y = "servers (and as many clients for TS)", "seconds"
LOG = True
SIZE, QUICK_SIZE = 512 << 20, 16 << 20


def counts(quick, most=8):
    return tuple(n for n in ((1, 2) if quick else (1, 2, 4, 8)) if n <= most)


def machine(described, quick, most=8):
    return described.with_hosts(storage=max(counts(quick, most)), client=max(counts(quick, most)))


def situations(bench, quick):
    for n in counts(quick, len(bench.clients)):
        for name, make, request in workload.KERNELS:
            file = bench.file(make, QUICK_SIZE if quick else SIZE, n, unit=None)
            truth = bench.truth(file, request)

            def ts(file=file, request=request, ranks=bench.clients[:n]):
                return schemes.traditional(bench.storage, file, request, ranks)

            def as_(file=file, request=request):
                return schemes.active(bench.storage, file, request, bench.clients[0])

            yield Situation(f"TS {name}", n, ts, truth)
            yield Situation(f"AS {name}", n, as_, truth)


def paper():
    return {
        "TS SUM": {n: papers.SON_SUM_FOUR * 4 / n for n in counts(False)},
        "AS SUM": {n: papers.SON_SUM_FOUR * 4 * papers.SON_ACTIVE / n for n in counts(False)},
        "TS GREP": {4: papers.SON_GREP_FOUR},
    }


PAPER = papers.SON_CURVES


def findings(table):
    for name, *_ in workload.KERNELS:
        ts, as_ = table[f"TS {name}"], table[f"AS {name}"]
        saved = [1 - as_[n][0] / ts[n][0] for n in ts]
        most = max(ts) if 4 not in ts else 4
        yield f"{name}: AS saves {min(saved):.1%} to {max(saved):.1%} of the time of TS (the paper: 50.9 % on average)"
        yield f"{name}: one active node takes {as_[1][0] / ts[most][0]:.2f} of the time of {most} traditional ones"
