"""Writes and reads files of storage nodes with pandas and fsspec, and reduces arrays of dask where they are stored.

It prints:

    pandas read: 24 rows, at most 11.5
    fsspec read: hour,air
    the nodes computed: 5.75
    reduced where it is stored: (x - 273.15) with x = air[0:400, 0:50], with one request for all 4 blocks of dask
    dask: 50 means, 1 request, 0 reads
"""

import fsspec
import numpy as np
import pandas as pd
import xarray as xr

import gristmill as gm

table = pd.DataFrame({"hour": np.arange(24), "air": np.arange(24) / 2})
kelvin = np.random.default_rng(3).normal(280, 5, size=(400, 50))

with gm.up(nodes=2) as nodes, gm.set_options(place="storage"):
    # Any library that uses fsspec takes the URLs. The bytes travel, as with any file system.
    url = nodes.path("day.csv")
    table.to_csv(url, index=False)
    read = pd.read_csv(url)
    print(f"pandas read: {len(read)} rows, at most {read.air.max()}")
    with fsspec.open(url, "r") as file:
        print("fsspec read:", file.readline().strip())

    # The same file as a data set: the nodes read the column, and one number comes back.
    print("the nodes computed:", float(gm.open_dataset(url).air.mean()))

    # With chunks, variables are arrays of dask. A reduction is one request and one task for all blocks.
    gm.put(xr.Dataset({"air": (("time", "place"), kelvin)}), nodes.path("air.nc"))
    celsius = gm.open_dataset(nodes.path("air.nc"), chunks={"time": 100}).air - 273.15
    print(gm.explain(celsius))
    with gm.trace() as trace:
        means = celsius.mean("time").compute()
    print(f"dask: {means.size} means, {trace.requests} request, {trace.reads} reads")

assert np.allclose(means, (kelvin - 273.15).mean(axis=0))
