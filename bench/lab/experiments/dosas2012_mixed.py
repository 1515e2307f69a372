"""DOSAS 2012, table IV: simultaneous requests of different kernels and sizes, by TS, AS and DOSAS.

The paper has one kernel and one size at a time; here are eight mixtures. On a core of the lab the Gaussian filter has the paper's
rate, and SUM has the rate of our SUM on such a core.
"""

import decisions
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "dosas2012-filter", 1 / 2, 1 / 2, 3
TITLE = "DOSAS 2012: mixed requests"
X, Y = "requests at once, MB each", "time over that of TS"
RELATIVE_TO = decisions.TS
LOG = False
SHORTER = 6
JUDGED = True

# How many requests of which kernel, and their size in MB.
MIXED = {
    "4 Gaussian 128\n4 SUM 128": [(4, "Gaussian", 128), (4, "SUM", 128)],
    "4 Gaussian 128\n4 SUM 512": [(4, "Gaussian", 128), (4, "SUM", 512)],
    "4 Gaussian 128\n4 Gaussian 256": [(4, "Gaussian", 128), (4, "Gaussian", 256)],
    "1 Gaussian 256\n8 SUM 128": [(1, "Gaussian", 256), (8, "SUM", 128)],
    "8 Gaussian 128\n1 SUM 512": [(8, "Gaussian", 128), (1, "SUM", 512)],
    "16 Gaussian 128\n16 SUM 128": [(16, "Gaussian", 128), (16, "SUM", 128)],
    "2 Gaussian 128\n2 Gaussian 512": [(2, "Gaussian", 128), (2, "Gaussian", 512)],
    "16 SUM 128\n16 SUM 256": [(16, "SUM", 128), (16, "SUM", 256)],
}


def machine(described, quick):
    return described


def situations(bench, quick):
    for name, parts in list(MIXED.items())[: 1 if quick else None]:
        each = [one for n, kernel, size in parts for one in [decisions.asked(bench, kernel, size)] * n]
        for scheme, run in decisions.ways(bench, each).items():
            yield Situation(scheme, name, run, [truth for _, _, truth in each], warm=len(each) <= 5)


def paper():
    return {}


PAPER = ""
findings = decisions.findings
