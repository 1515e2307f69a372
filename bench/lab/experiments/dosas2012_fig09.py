"""DOSAS 2012, figures 9 and 12: Gaussian filter, 512 MB a request by TS, AS and DOSAS.

Like figure 7, with 512 MB a request.
"""

from decisions import Figure

FIGURE = Figure(
    __name__, __doc__, "DOSAS 2012, figures 9 and 12: Gaussian filter, 512 MB a request", "Gaussian", size=512, shorter=24, bandwidth=True
)
