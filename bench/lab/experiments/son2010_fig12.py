"""Son 2010, figure 12: SUM of more and more data on four nodes."""

import papers
import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1 / 2, 1 / 2, 5
TITLE = "Son 2010, figure 12: SUM of more and more data on four nodes"
X, Y = "MB", "seconds"
LOG = True
NODES = 4


def sizes(quick):
    return (16, 32) if quick else (64, 128, 256, 512, 1024, 2048)


def machine(described, quick):
    return described.with_hosts(storage=NODES, client=NODES)


def situations(bench, quick):
    for size in sizes(quick):
        file = bench.file(workload.doubles, size << 20, NODES, unit=None)
        truth = bench.truth(file, workload.SUM)
        ts = lambda file=file: schemes.traditional(bench.storage, file, workload.SUM, bench.clients)
        yield Situation("TS", size, ts, truth)
        as_ = lambda file=file: schemes.active(bench.storage, file, workload.SUM, bench.clients[0])
        yield Situation("AS", size, as_, truth)


def paper():
    one = {size: papers.SON_SUM_FOUR * size / 512 for size in sizes(False)}
    return {"TS": one, "AS": {size: seconds * papers.SON_ACTIVE for size, seconds in one.items()}}


PAPER = papers.SON_CURVES


def findings(table):
    ts, as_ = table["TS"], table["AS"]
    least, most = min(ts), max(ts)
    yield f"AS takes {as_[least][0] / ts[least][0]:.3f} of TS at {least} MB and {as_[most][0] / ts[most][0]:.3f} at {most} MB"
