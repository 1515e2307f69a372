"""Son 2010, figure 10: AS against TS on four nodes, for SUM and GREP, by how files lie and where records end.

Son's files are one piece on each server. The further columns have round-robin stripes of 64 KiB, and records of 80 bytes
(Son's figure 2), which no stripe of 64 KiB has in whole numbers: the end of each stripe's last record is pulled from the
next server.
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

COLUMNS = [
    ("SUM,\na piece each", workload.doubles, workload.SUM, None),
    ("GREP,\na piece each", workload.records, workload.GREP, None),
    ("SUM,\n64 KiB stripes", workload.doubles, workload.SUM, STRIPE),
    ("GREP,\n64 KiB stripes", workload.records, workload.GREP, STRIPE),
    ("SUM of 80 B records,\n64 KiB stripes", workload.doubles, workload.SUM_80, STRIPE),
]


def machine(described, quick):
    return described.with_hosts(storage=NODES, client=NODES)


def situations(bench, quick):
    for name, make, request, unit in COLUMNS:
        file = bench.file(make, QUICK_SIZE if quick else SIZE, NODES, unit)
        truth = bench.truth(file, request)

        def ts(file=file, request=request):
            return schemes.traditional(bench.storage, file, request, bench.clients)

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
    yield "the paper: 50.9 % less on average of four kernels"
