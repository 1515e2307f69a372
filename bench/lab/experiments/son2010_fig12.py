"""Son 2010, figure 12: SUM of more and more data on four nodes.

Son shows only SUM. We add GREP.
"""

import papers
import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1 / 2, 1 / 2, 5
TITLE = "Son 2010, figure 12: more and more data on four nodes"
X, Y = "MB", "seconds"
LOG = True
NODES = 4


def sizes(quick):
    return (16, 32) if quick else (64, 128, 256, 512, 1024, 2048)


def machine(described, quick):
    return described.with_hosts(storage=NODES, client=NODES)


def situations(bench, quick):
    for size in sizes(quick):
        for name, make, request in workload.KERNELS:
            file = bench.file(make, size << 20, NODES, unit=None)
            truth = bench.truth(file, request)

            def ts(file=file, request=request):
                return schemes.traditional(bench.storage, file, request, bench.clients)

            def as_(file=file, request=request):
                return schemes.active(bench.storage, file, request, bench.clients[0])

            yield Situation(f"TS {name}", size, ts, truth)
            yield Situation(f"AS {name}", size, as_, truth)


def paper():
    one = {size: papers.SON_SUM_FOUR * size / 512 for size in sizes(False)}
    return {
        "TS SUM": one,
        "AS SUM": {size: seconds * papers.SON_ACTIVE for size, seconds in one.items()},
        "TS GREP": {512: papers.SON_GREP_FOUR},
    }


PAPER = papers.SON_CURVES


def findings(table):
    for name, *_ in workload.KERNELS:
        ts, as_ = table[f"TS {name}"], table[f"AS {name}"]
        parts = ", ".join(f"{as_[size][0] / ts[size][0]:.3f} at {size} MB" for size in (min(ts), max(ts)))
        yield f"{name}: AS takes {parts} of the time of TS"
