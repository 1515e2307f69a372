"""DOSAS 2012, figures 2 and 4: the Gaussian filter with more and more simultaneous processes, 128 MB each, on one storage node.

This figure shows the cost of always computing at storage. The filter has the fixed mask of three by three over images of bytes,
and a filtered image is as long as the image. The paper does not say what happens to the filtered image. For one core a node and
results without size, its model gives AS 0.60 of the time of TS for one request and 1.48 for many. This is nearest to the paper's
text (0.6 and 1.27). For two cores and results as long as the data it gives 0.70 and 1.74. For two cores and no results AS never
loses.

So we show several curves. With *AS* and *AS, one core* the node hands the image to a process on the storage node, which only
hashes it. Nothing crosses the link, as if the image was dropped. *AS, image to the client* is what Gristmill does without
`--output grist://...`, on two cores: it sends as many bytes as a plain read, while it filters. TS reads and filters block by
block. The rate of a node includes the time to hand over the image. The text gives no sizes for figure 2, so we take it for the
same measurement.
"""

import contention

MACHINE, SCALE, QUICK_SCALE, REPEATS = "dosas2012-gaussian", 1 / 2, 1 / 2, 2
TITLE = "DOSAS 2012, figures 2 and 4: Gaussian filter, 128 MB a request"
X, Y = "requests at once", "seconds until all are answered"
LOG = True
SHORTER = 4
SIZE, QUICK_SIZE = 128 << 20, 32 << 20


def counts(quick):
    return (1, 4) if quick else (1, 2, 4, 8, 16, 32, 64)


def machine(described, quick):
    return described


def situations(bench, quick):
    return contention.situations(bench, QUICK_SIZE if quick else SIZE, counts(quick), to_client=True)


def paper():
    return contention.paper(SIZE, counts(False))


THEIRS, PAPER = contention.THEIRS, contention.PAPER
findings = contention.findings
