"""DOSAS 2012, figure 7: Gaussian filter, 128 MB a request by TS, AS and DOSAS.

The filter has the fixed mask of three by three over images of bytes. The result is the sum and the extremes of the filtered image,
because the paper's result has nearly no size. Active requests have one core of the node. The paper names two cores, but its
equations give the numbers of its text only with one. TS reads the image into memory and then filters it, as the paper's clients
do.
"""

from decisions import Figure

FIGURE = Figure(
    __name__, __doc__, "DOSAS 2012, figure 7: Gaussian filter, 128 MB a request", "Gaussian", size=128, shorter=8
)
