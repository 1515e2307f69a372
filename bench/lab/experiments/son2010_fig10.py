"""Son 2010, figure 10: AS compared with TS on four nodes, for SUM, GREP and KMEANS, by the layout of files and the end of records.

Son's files are one piece on each server. The other columns have round-robin stripes of 64 KiB and records of 80 bytes (Son's
figure 2). A stripe of 64 KiB is not a whole number of such records, so a server pulls the end of each stripe's last record from
the next server.

Under TS, SUM and GREP fold while they read. KMEANS is a program that first reads its part of a million points into memory and then
makes one iteration (Son's threshold 1.0). This takes our kernel three passes, where Son has one (see figure 9).
"""

import papers
import schemes
import workload
from experiment import Situation
from storage import STRIPE

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1 / 2, 1 / 2, 7
TITLE = "Son 2010, figure 10: time of AS relative to TS, four nodes"
X, Y = "kernel, and how the file lies", "time relative to the median of TS"
RELATIVE_TO = "TS"
NODES, SIZE, QUICK_SIZE = 4, 512 << 20, 16 << 20
POINTS, QUICK_POINTS = papers.SON_POINTS, 50_000

KMEANS = workload.kmeans(1)

COLUMNS = [
    ("SUM,\na piece each", workload.doubles, SIZE, workload.SUM, None),
    ("GREP,\na piece each", workload.records, SIZE, workload.GREP, None),
    ("KMEANS,\na piece each", workload.points, POINTS * workload.POINT, KMEANS, None),
    ("SUM,\n64 KiB stripes", workload.doubles, SIZE, workload.SUM, STRIPE),
    ("GREP,\n64 KiB stripes", workload.records, SIZE, workload.GREP, STRIPE),
    ("SUM of 80 B records,\n64 KiB stripes", workload.doubles, SIZE, workload.SUM_80, STRIPE),
]


def machine(described, quick):
    return described.with_hosts(storage=NODES, client=NODES)


def situations(bench, quick):
    for name, make, size, request, unit in COLUMNS:
        if quick:
            size = QUICK_POINTS * workload.POINT if make is workload.points else QUICK_SIZE
        file = bench.file(make, size, NODES, unit)
        truth = bench.truth(file, request)
        scheme = schemes.program if request is KMEANS else schemes.traditional

        def ts(file=file, request=request, scheme=scheme):
            return scheme(bench.storage, file, request, bench.clients)

        def as_(file=file, request=request):
            return schemes.active(bench.storage, file, request, bench.clients[0])

        yield Situation("TS", name, ts, truth)
        yield Situation("AS", name, as_, truth)


def paper():
    return {
        "AS, average of four kernels (the paper's text)": papers.SON_AVERAGE,
        "AS for SUM (from the paper's text)": papers.SON_ACTIVE,
    }


PAPER = (
    "50.9 % less on average of SUM, GREP, KMEANS and VREN (section V.A); 0.27 x 0.469 for SUM on one node (section V.D)"
)


def findings(table):
    ts, as_ = table["TS"], table["AS"]
    for x in ts:
        yield f"{x.replace(chr(10), ' ')}: AS takes {as_[x][0] / ts[x][0]:.3f} of TS, {1 - as_[x][0] / ts[x][0]:.1%} less"
    saved = [1 - as_[x][0] / ts[x][0] for x in ts if x.endswith("a piece each")]
    yield f"a piece each: {sum(saved) / len(saved):.1%} less on average of SUM, GREP and KMEANS"
    yield "the paper: 50.9 % less on average of four kernels, VREN the fourth"
