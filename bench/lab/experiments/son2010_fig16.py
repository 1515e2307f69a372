"""Son 2010, figure 16: SUM on one server, the client elsewhere, beside it, or not needed."""

import papers
import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1 / 2, 1 / 2, 3
TITLE = "Son 2010, figure 16: SUM on one server"
X, Y = "MB", "seconds"
LOG = True


def sizes(quick):
    return (8, 16) if quick else (10, 64, 128, 256, 512, 1024, 2048)


def machine(described, quick):
    return described.with_hosts(storage=1, client=1)


def situations(bench, quick):
    there, [here] = bench.clients, bench.servers
    for size in sizes(quick):
        file = bench.file(workload.doubles, size << 20, 1, unit=None)
        truth = bench.truth(file, workload.SUM)
        for name, on in (("TS", there), ("TS, same node", [here])):
            ts = lambda file=file, on=on: schemes.traditional(bench.storage, file, workload.SUM, on)
            yield Situation(name, size, ts, truth)
        as_ = lambda file=file: schemes.active(bench.storage, file, workload.SUM, here)
        yield Situation("AS", size, as_, truth)


def paper():
    one = {size: papers.SON_SUM_FOUR * 4 * size / 512 for size in sizes(False)}
    return {
        "TS": one,
        "TS, same node": {size: seconds * papers.SON_SAME for size, seconds in one.items()},
        "AS": {size: seconds * papers.SON_ACTIVE for size, seconds in one.items()},
    }


PAPER = papers.SON_CURVES


def findings(table):
    ts, same, as_ = table["TS"], table["TS, same node"], table["AS"]
    saved = [1 - same[size][0] / ts[size][0] for size in ts]
    yield f"reading on the same node takes {sum(saved) / len(saved):.0%} less time on average (the paper: 73 %)"
    saved = [1 - as_[size][0] / same[size][0] for size in ts]
    yield f"AS takes {sum(saved) / len(saved):.1%} less than that on average (the paper: 53.1 %)"
