"""DOSAS 2012, figure 5: as figure 4, with 512 MB a request.

There are up to 32 requests; the paper has 64. The text at figure 4 says what happens to the filtered image.
"""

import contention

MACHINE, SCALE, QUICK_SCALE, REPEATS = "dosas2012-gaussian", 1 / 2, 1 / 2, 2
TITLE = "DOSAS 2012, figure 5: Gaussian filter, 512 MB a request"
X, Y = "requests at once", "seconds until all are answered"
LOG = True
SHORTER = 8
SIZE, QUICK_SIZE = 512 << 20, 64 << 20


def counts(quick):
    return (1, 4) if quick else (1, 2, 4, 8, 16, 32)


def machine(described, quick):
    return described


def situations(bench, quick):
    return contention.situations(bench, QUICK_SIZE if quick else SIZE, counts(quick), to_client=False)


def paper():
    return contention.paper(SIZE, counts(False))


THEIRS, PAPER = contention.THEIRS, contention.PAPER
findings = contention.findings
