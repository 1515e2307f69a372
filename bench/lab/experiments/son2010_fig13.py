"""Son 2010, figure 13: KMEANS of a million points under TS on four nodes, with stricter and stricter thresholds.

The client is a parallel program that reads its part into memory once and iterates there. The points lie around 20 centres with a
spread of 5, in a cube of 20 (Son does not describe the points). So the number of iterations for a threshold depends on our points,
and the labels give it. Each run makes two passes more than iterations: one before, for the first centres and the largest
coordinate, and one after, for the counts. The text names some thresholds, and we chose those between them.
"""

from statistics import median

import papers
import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1, 1 / 2, 3
TITLE = "Son 2010, figure 13: KMEANS under TS by its threshold, four nodes"
X, Y = "threshold: share of the points that may still change their centre", "seconds"
STACKED = "seconds"
LOG = False
NODES, QUICK_POINTS = 4, 100_000

# The passes of a run that are not iterations.
PASSES_MORE = 2


def deltas(quick):
    return (1, 0.05) if quick else (1, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0005)


def machine(described, quick):
    return described.with_hosts(storage=NODES, client=NODES)


def situations(bench, quick):
    count = QUICK_POINTS if quick else papers.SON_POINTS
    file = bench.file(workload.points, count * workload.POINT, NODES, unit=None)
    for delta in deltas(quick):
        request = workload.kmeans(delta)
        truth = bench.truth(file, request)
        iterations = truth["iterations"]
        label = f"{delta:g}\n{iterations} iteration{'s' * (iterations > 1)}"
        run = lambda request=request: schemes.program(bench.storage, file, request, bench.clients)
        yield Situation("TS", label, run, truth, (schemes.READING, schemes.COMPUTING), warm=delta >= 1)


def paper():
    return {"TS": {"1": papers.SON_KMEANS_FOUR, "0.05": papers.SON_KMEANS_05, "0.01": papers.SON_KMEANS_01}}


PAPER = "0.44 s with a threshold of 1.0 (table II), 0.8 s with 0.05 and 5.2 s with 0.01 (section V.C)"


def findings(table):
    reading, computing = table[schemes.READING], table[schemes.COMPUTING]
    for x in reading:
        threshold, iterations = x.split("\n")
        whole = reading[x][0] + computing[x][0]
        yield f"threshold {threshold}, {iterations}: {whole:.2f} s, of which {reading[x][0] / whole:.0%} are reading"
    passes = {x: int(x.split("\n")[1].split()[0]) + PASSES_MORE for x in computing}
    each = [computing[x][0] / passes[x] for x in computing]
    once = next(iter(reading))
    share = papers.SON_LEAST_READING
    yield f"one pass takes {min(each):.3f} to {max(each):.3f} s, on average of each run"
    yield (
        f"a pass takes {median(each) / reading[once][0]:.2f} of the time of reading; the paper's one pass at most "
        f"{(1 - share) / share:.2f}, for reading is at least {share:.1%} of the time of any of its kernels: the ratio of "
        "KMEANS to the link is ours and not the paper's, which its text does not give"
    )
