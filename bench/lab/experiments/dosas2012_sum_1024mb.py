"""DOSAS 2012, table IV: SUM, 1 GB a request by TS, AS and DOSAS.

Like figure 6, with 1 GB a request.
"""

from decisions import Figure

FIGURE = Figure(
    __name__, __doc__, "DOSAS 2012, table IV: SUM, 1 GB a request", "SUM", size=1024, shorter=48
)
