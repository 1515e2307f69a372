"""DOSAS 2012, figure 6: SUM, 128 MB a request by TS, AS and DOSAS.

Active requests have one core of the node. TS reads the file into memory and then sums it.
"""

from decisions import Figure

FIGURE = Figure(
    __name__, __doc__, "DOSAS 2012, figure 6: SUM, 128 MB a request", "SUM", size=128, shorter=6
)
