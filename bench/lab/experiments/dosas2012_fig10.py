"""DOSAS 2012, figure 10: Gaussian filter, 1 GB a request by TS, AS and DOSAS.

Like figure 7, with 1 GB a request.
"""

from decisions import Figure

FIGURE = Figure(
    __name__, __doc__, "DOSAS 2012, figure 10: Gaussian filter, 1 GB a request", "Gaussian", size=1024, shorter=60
)
