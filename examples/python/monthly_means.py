"""Opens a netCDF data set on storage nodes with xarray, and makes the mean of each month where the data is stored.

It prints:

    netCDF on 3 nodes: 15 chunks of (73, 18, 36)
    12 maps: 1 request, 0 reads, ... of 2838240 bytes came here
    north of the equator: 5.0 degC in January, 25.0 degC in July
    xarray has the same maps: True
"""

import numpy as np
import xarray as xr

import gristmill as gm

# Three years of temperature: warm in July in the north, and in January in the south.
time = xr.date_range("2001-01-01", "2003-12-31")
lat, lon = np.arange(-85.0, 90, 10), np.arange(0.0, 360, 10)
season = np.cos(2 * np.pi * (time.month.values - 7) / 12)[:, None, None] * np.sign(lat)[:, None]
noise = np.random.default_rng(2).normal(size=(time.size, lat.size, lon.size))
air = (15 + 10 * season + noise).astype("f4")
how = {"chunksizes": (73, 18, 36)}
made = xr.Dataset(
    {"air": (("time", "lat", "lon"), air, {"units": "degC"}, how)}, {"time": time, "lat": lat, "lon": lon}
)

# place="storage": busy nodes would hand work back, and the counts below would differ. The numbers never do.
# fallback="error": an operation that the nodes do not have is an error here. By default its data is read.
with gm.up(nodes=3) as nodes, gm.set_options(place="storage", fallback="error"):
    # gm.put also takes the path of a file that exists.
    info = gm.put(made, nodes.path("air.nc"))

    ds = gm.open_dataset(nodes.path("air.nc"))
    chunks = ds.air.data.storage_chunks
    print(f"netCDF on {len(info.targets)} nodes: {time.size // chunks[0]} chunks of {chunks}")

    with gm.trace() as trace:
        monthly = ds.air.groupby("time.month").mean()
    asked = f"{trace.requests} request, {trace.reads} reads"
    print(f"{monthly.sizes['month']} maps: {asked}, {trace.bytes_in} of {trace.bytes_folded} bytes came here")

north = monthly.sel(lat=slice(0, 90)).mean(["lat", "lon"]).values
print(f"north of the equator: {north[0]:.1f} degC in January, {north[6]:.1f} degC in July")
theirs = made.air.astype("f8").groupby("time.month").mean()
print("xarray has the same maps:", np.allclose(monthly, theirs, rtol=1e-6))
