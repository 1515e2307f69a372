"""Every built-in kernel by `--place storage`, `client` and `auto`: one storage node, one request.

The hosts share no processor. So a client may be the better place here, because its core and its link are free while a node is
busy.
"""

from placing import Figure

FIGURE = Figure(__name__, __doc__, nodes=1, others=0)
