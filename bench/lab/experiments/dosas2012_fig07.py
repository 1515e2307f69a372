"""DOSAS 2012, figure 7: Gaussian filter, 128 MB a request by TS, AS and DOSAS.

The fixed mask of three by three over images of bytes; the result is the sum and the extremes of the filtered image, as the
paper's has next to no length. One core of the node is for active requests: the paper names two, but only with one do its
equations give what its text says. TS reads the image into memory and then filters it, as the paper's clients do.
"""

from decisions import Figure

FIGURE = Figure(
    __name__, __doc__, "DOSAS 2012, figure 7: Gaussian filter, 128 MB a request", "Gaussian", size=128, shorter=8
)
