"""DOSAS 2012, table IV: SUM, 512 MB a request by TS, AS and DOSAS.

Like figure 6, with 512 MB a request.
"""

from decisions import Figure

FIGURE = Figure(
    __name__, __doc__, "DOSAS 2012, table IV: SUM, 512 MB a request", "SUM", size=512, shorter=24
)
