"""DOSAS 2012, figures 8 and 11: Gaussian filter, 256 MB a request by TS, AS and DOSAS.

Like figure 7, with 256 MB a request.
"""

from decisions import Figure

FIGURE = Figure(
    __name__, __doc__, "DOSAS 2012, figures 8 and 11: Gaussian filter, 256 MB a request", "Gaussian", size=256, shorter=14, bandwidth=True
)
