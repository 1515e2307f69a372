"""Son 2010, figure 16: SUM on one server. The client is on another machine, on the same one, or not needed.

Son shows only SUM. We add GREP.
"""

import papers
import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1 / 2, 1 / 2, 3
TITLE = "Son 2010, figure 16: one server"
X, Y = "MB", "seconds"
LOG = True
# Larger files are left out of the first round, which does not count.
WARM = 64


def sizes(quick):
    return (8, 16) if quick else (10, 64, 128, 256, 512, 1024, 2048)


def machine(described, quick):
    return described.with_hosts(storage=1, client=1)


def situations(bench, quick):
    there, [here] = bench.clients, bench.servers
    for size in sizes(quick):
        for name, make, request in workload.KERNELS:
            file = bench.file(make, size << 20, 1, unit=None)
            truth = bench.truth(file, request)
            for scheme, on in (("TS", there), ("TS, same node,", [here])):

                def ts(file=file, request=request, on=on):
                    return schemes.traditional(bench.storage, file, request, on)

                yield Situation(f"{scheme} {name}", size, ts, truth, warm=size <= WARM)

            def as_(file=file, request=request):
                return schemes.active(bench.storage, file, request, here)

            yield Situation(f"AS {name}", size, as_, truth, warm=size <= WARM)


def paper():
    one = {size: papers.SON_SUM_FOUR * 4 * size / 512 for size in sizes(False)}
    return {
        "TS SUM": one,
        "TS, same node, SUM": {size: seconds * papers.SON_SAME for size, seconds in one.items()},
        "AS SUM": {size: seconds * papers.SON_ACTIVE for size, seconds in one.items()},
    }


PAPER = papers.SON_CURVES


def findings(table):
    for name, *_ in workload.KERNELS:
        ts, same, as_ = table[f"TS {name}"], table[f"TS, same node, {name}"], table[f"AS {name}"]
        saved = [1 - same[size][0] / ts[size][0] for size in ts]
        yield f"{name}: reading on the same node takes {sum(saved) / len(saved):.0%} less on average (the paper: 73 %)"
        saved = [1 - as_[size][0] / same[size][0] for size in ts]
        yield f"{name}: AS takes {sum(saved) / len(saved):.1%} less than that on average (the paper: 53.1 %)"
