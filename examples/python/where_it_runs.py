"""Asks where an expression would be reduced, chooses the place, and shows a bar of progress while it waits.

The bar is on standard error, and only if that is a terminal. It prints:

    reduced where it is stored: ((x * 1.8) + 32) with x = air[0:2000, 0:1000]
    read before it is reduced: storage nodes do not compute sin
    storage: ... bytes came here
    client: 160... bytes came here
    the bits are the same: True
"""

import numpy as np
import xarray as xr

import gristmill as gm

air = np.random.default_rng(4).normal(15, 5, size=(2000, 1000))

with gm.up(nodes=4) as nodes:
    url = nodes.path("air.nc")
    gm.put(xr.Dataset({"air": (("time", "place"), air)}), url)

    # Nothing is sent or read to explain an expression.
    ds = gm.open_dataset(url)
    print(gm.explain(ds.air * 1.8 + 32))
    print(gm.explain(np.sin(ds.air)))

    found = {}
    # "auto" is the default: the place that moves fewer bytes, if the nodes are not busy.
    for place in ("storage", "client"):
        # Answers and bytes are remembered while a data set is open, so each place opens it again.
        ds = gm.open_dataset(url)
        with gm.set_options(place=place), gm.progress(), gm.trace() as trace:
            found[place] = (ds.air * 1.8 + 32).mean("time")
        print(f"{place}: {trace.bytes_in} bytes came here")

    print("the bits are the same:", found["storage"].values.tobytes() == found["client"].values.tobytes())
