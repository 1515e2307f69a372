"""Son 2010, figure 11: SUM of 512 MB on more and more nodes."""

import papers
import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1 / 2, 1 / 2, 7
TITLE = "Son 2010, figure 11: SUM of 512 MB"
X, Y = "servers (and as many clients for TS)", "seconds"
LOG = True
SIZE, QUICK_SIZE = 512 << 20, 16 << 20


def counts(quick, most=8):
    return tuple(n for n in ((1, 2) if quick else (1, 2, 4, 8)) if n <= most)


def machine(described, quick, most=8):
    return described.with_hosts(storage=max(counts(quick, most)), client=max(counts(quick, most)))


def situations(bench, quick):
    for n in counts(quick, len(bench.clients)):
        file = bench.file(workload.doubles, QUICK_SIZE if quick else SIZE, n, unit=None)
        truth = bench.truth(file, workload.SUM)
        ranks = bench.clients[:n]
        ts = lambda file=file, ranks=ranks: schemes.traditional(bench.storage, file, workload.SUM, ranks)
        yield Situation("TS", n, ts, truth)
        one = lambda file=file: schemes.active(bench.storage, file, workload.SUM, bench.clients[0])
        yield Situation("AS", n, one, truth)


def paper():
    return {
        "TS": {n: papers.SON_SUM_FOUR * 4 / n for n in counts(False)},
        "AS": {n: papers.SON_SUM_FOUR * 4 * papers.SON_ACTIVE / n for n in counts(False)},
    }


PAPER = papers.SON_CURVES


def findings(table):
    ts, as_ = table["TS"], table["AS"]
    saved = [1 - as_[n][0] / ts[n][0] for n in ts]
    most = max(ts)
    yield f"AS saves {min(saved):.1%} to {max(saved):.1%} of the time of TS (the paper: 50.9 % on average of its kernels)"
    if 4 in ts:
        yield f"one active node takes {as_[1][0] / ts[4][0]:.2f} of the time of four traditional ones (the paper: less)"
    else:
        yield f"one active node takes {as_[1][0] / ts[most][0]:.2f} of the time of {most} traditional ones"
