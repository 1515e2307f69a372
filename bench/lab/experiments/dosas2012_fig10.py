"""DOSAS 2012, figure 10: Gaussian filter, 1 GB a request by TS, AS and DOSAS.

The fixed mask of three by three over images of bytes; the result is the sum and the extremes of the filtered image, as the
paper's has next to no length. One core of the node is for active requests: the paper names two, but only with one do its
equations give what its text says. TS reads the image into memory and then filters it, as the paper's clients do.
"""

import decisions

MACHINE, SCALE, QUICK_SCALE, REPEATS = "dosas2012-filter", 1 / 2, 1 / 2, 3
TITLE = "DOSAS 2012, figure 10: Gaussian filter, 1 GB a request"
X, Y = "requests at once", "seconds until all are answered"
LOG = True
SHORTER = 24
KERNEL, SIZE, QUICK_SIZE = "Gaussian", 1024, 64
JUDGED = True


def machine(described, quick):
    return described


def situations(bench, quick):
    return decisions.situations(bench, KERNEL, QUICK_SIZE if quick else SIZE, decisions.counts(quick))


def paper():
    return decisions.paper(KERNEL, SIZE, decisions.COUNTS)


THEIRS, PAPER = decisions.THEIRS, decisions.PAPER
findings = decisions.findings
