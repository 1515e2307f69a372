"""Every built-in kernel by `--place storage`, `client` and `auto`: 2 storage nodes, 3 requests at once.

Hosts share no processor, so here a client may be the better place: its own core and its link are free while a node is busy.
"""

from placing import Figure

FIGURE = Figure(__name__, __doc__, nodes=2, others=2)
