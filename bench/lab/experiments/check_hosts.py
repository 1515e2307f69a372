"""How many hosts this machine can carry: TS with 128 MB a rank, and more and more pairs of a server and a client.

The pairs share nothing, so any number of pairs must take the same time. They take longer once all hosts together need more than
this machine has. The largest number of pairs before that is the largest honest one.
"""

import workload
from experiment import Situation
from schemes import traditional

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1 / 2, 1 / 2, 5
TITLE = "The lab: TS, 128 MB a rank, a server a rank"
X, Y = "pairs of a server and a client", "seconds"
LOG = False
SHARE, QUICK_SHARE = 128 << 20, 8 << 20

# How much longer than one pair the largest honest number may take.
NEAR = 0.05


def counts(quick):
    return (1, 2) if quick else (1, 2, 4, 6, 8, 10, 12, 14, 16)


def machine(described, quick):
    return described.with_hosts(storage=max(counts(quick)), client=max(counts(quick)))


def situations(bench, quick):
    for n in counts(quick):
        file = bench.file(workload.doubles, n * (QUICK_SHARE if quick else SHARE), n, unit=None)
        ranks = bench.clients[:n]
        run = lambda file=file, ranks=ranks: traditional(bench.storage, file, workload.SUM, ranks)
        yield Situation("TS", n, run, bench.truth(file, workload.SUM))


def paper():
    return {}


PAPER = ""


def honest(table):
    """The largest number of pairs up to which all numbers take as long as one pair."""
    times = table["TS"]
    most = 1
    for n in sorted(times):
        if times[n][0] > times[1][0] * (1 + NEAR):
            break
        most = n
    return most


def findings(table):
    most = honest(table)
    yield f"up to {most} pairs, {2 * most} hosts, take as long as one pair (within {NEAR:.0%})"
