"""Son 2010, figure 9: the share of reading in the time of TS, with four clients and four servers.

The client is a parallel program that reads its part into memory and then computes, as in Son's figure 4. It reads from the
servers' page caches; in Son's measurement the disks are included. VREN is missing. KMEANS makes one iteration (Son's threshold
1.0). This takes our kernel three passes: one to find the first centres and the largest coordinate, one to move the centres, and
one to count the points of the new centres. Son has one pass.
"""

import papers
import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1 / 2, 1 / 2, 7
TITLE = "Son 2010, figure 9: reading and computing under TS, four nodes"
X, Y = "kernel", "part of the median time of TS"
STACKED = "share"
LOG = False
NODES, SIZE, QUICK_SIZE = 4, 512 << 20, 16 << 20

COLUMNS = [
    ("SUM", workload.doubles, workload.SUM, SIZE),
    ("GREP", workload.records, workload.GREP, SIZE),
    ("KMEANS", workload.points, workload.kmeans(1), workload.POINT * papers.SON_POINTS),
]


def machine(described, quick):
    return described.with_hosts(storage=NODES, client=NODES)


def situations(bench, quick):
    for name, make, request, size in COLUMNS:
        file = bench.file(make, QUICK_SIZE if quick else size, NODES, unit=None)
        run = lambda file=file, request=request: schemes.program(bench.storage, file, request, bench.clients)
        yield Situation("TS", name, run, bench.truth(file, request), (schemes.READING, schemes.COMPUTING))


def paper():
    return {
        "reading, the paper's average of four kernels": papers.SON_READING,
        "the same of the kernel with the most": papers.SON_MOST_READING,
        "the same of the kernel with the least": papers.SON_LEAST_READING,
    }


PAPER = "reading takes 37.3 % to 96.4 % of the time, 64.4 % on average of SUM, GREP, KMEANS and VREN (section V.A)"


def findings(table):
    reading, computing = table[schemes.READING], table[schemes.COMPUTING]
    for x in reading:
        whole = reading[x][0] + computing[x][0]
        yield f"{x}: {reading[x][0] / whole:.1%} of {whole:.2f} s is reading"
    yield f"the paper: SUM {papers.SON_SUM_FOUR} s, GREP {papers.SON_GREP_FOUR} s, KMEANS {papers.SON_KMEANS_FOUR} s"
