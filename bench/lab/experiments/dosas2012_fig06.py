"""DOSAS 2012, figure 6: SUM, 128 MB a request by TS, AS and DOSAS.

One core of the node is for active requests. TS reads the file into memory and then sums it.
"""

import decisions

MACHINE, SCALE, QUICK_SCALE, REPEATS = "dosas2012-sum", 1 / 2, 1 / 2, 3
TITLE = "DOSAS 2012, figure 6: SUM, 128 MB a request"
X, Y = "requests at once", "seconds until all are answered"
LOG = True
SHORTER = 4
KERNEL, SIZE, QUICK_SIZE = "SUM", 128, 8
JUDGED = True


def machine(described, quick):
    return described


def situations(bench, quick):
    return decisions.situations(bench, KERNEL, QUICK_SIZE if quick else SIZE, decisions.counts(quick))


def paper():
    return decisions.paper(KERNEL, SIZE, decisions.COUNTS)


THEIRS, PAPER = decisions.THEIRS, decisions.PAPER
findings = decisions.findings
