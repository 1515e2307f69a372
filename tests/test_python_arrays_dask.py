"""Stored arrays inside dask: one request for each block, and one for each of several files."""

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, places, same, theirs  # noqa: F401

pytest.importorskip("dask", reason="dask is not installed")

BLOCKS = 4 * 3 * 2  # blocks of (10, 5, 8) in (36, 12, 16)

PUSHED = [
    'ds.tos.mean("time")',
    "ds.tos.sum()",
    'ds.tos.max(["lat", "lon"])',
    "ds.tos.std()",
    'ds.tos.var("time", ddof=1)',
    'ds.tos.count("time")',
    'ds.tos.sum("time", min_count=3)',
    'ds.tos.isnull().sum("time")',
    '(ds.tos > 300).any("time")',
    'ds.tos.mean("time", skipna=False)',
    'ds.i4.mean("time")',
    'ds.packed.mean("time")',
    '(ds.tos - 273.15).mean("time")',
    'ds.tos.where(ds.tos > 280).mean("time")',
    'ds.tos.fillna(0).sum("time")',
    'ds.tos.clip(270, 290).mean("time")',
]


# Each with the maximum number of requests for one block.
MORE = {
    'ds.b.fillna(0).argmax("time")': 2,
    'ds.a.idxmax("time")': 3,
    'ds.tos.argmin("lat", skipna=False)': 2,
    'ds.tos.where(ds.lat > 0).mean(["lat", "lon"])': 1,
    '((ds.a - ds.a.mean("time")) ** 2).mean("time")': 2,
    'ds.tos.weighted(np.cos(np.deg2rad(ds.lat))).mean(["lat", "lon"])': 2,
    "ds.tos.coarsen(lat=2, lon=2).mean()": 1,
    'ds.tos.resample(time="QS").mean()': 4,
    'ds.a.groupby("time.month").mean()': 12,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("text", MORE)
def test_all_reductions_of_whole_files(places, theirs, text):
    ours = gm.open_dataset(places["cluster"], chunks=-1)
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = compute(text, ours).compute()
    assert trace.fallbacks == [] and trace.reads == 0 and trace.requests <= MORE[text]
    same(got, compute(text, theirs))


def compute(text, ds):
    return eval(text, {"ds": ds, "np": np, "xr": xr})


@pytest.fixture(scope="module", params=["netcdf", "cluster"])
def ours(request, places):
    return gm.open_dataset(places[request.param], chunks={})


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("text", PUSHED)
def test_blocks_are_asked_about_together(ours, theirs, text):
    gm._variables.variable.answers.clear()
    with gm.set_options(fallback="error"), gm.trace() as building:
        lazy = compute(text, ours)
    assert building.requests == building.reads == 0
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = lazy.compute()
    assert trace.fallbacks == [] and trace.reads == 0 and trace.requests <= BLOCKS // 2
    same(got, compute(text, theirs))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_blocks_that_are_not_reduced_are_read_at_once(ours, theirs, places):
    gm._variables.variable.elements.clear()
    with gm.trace() as trace:
        got = (ours.tos - 273.15).values
    np.testing.assert_array_equal(got, (theirs.tos - 273.15).values)
    stored = gm.open_arrays(places["netcdf"])._about["tos"]["stored_bytes"]
    assert trace.requests == 0 and trace.reads == 1 and trace.bytes_in == stored


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_several_files_are_one_request_each(places, theirs):
    files = [places["netcdf"], places["zarr"], places["cluster"]]
    both = gm.open_mfdataset(files, combine="nested", concat_dim="time")
    expected = xr.concat([theirs] * 3, "time")
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = both.tos.mean().compute()
    assert trace.requests == 3 and trace.fallbacks == []
    same(got, expected.tos.mean())
    same(both.a.std("time").compute(), expected.a.std("time"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("place", ["netcdf", "cluster"])
def test_the_engine_of_xarray(places, theirs, place):
    with xr.open_dataset(places[place], engine="gristmill") as ours:
        with gm.set_options(fallback="error"), gm.trace() as trace:
            got = ours.tos.mean("time")
        assert trace.requests == 1 and trace.fallbacks == []
        same(got, theirs.tos.mean("time"))
        same(ours.packed.isel(time=slice(2, 9)).std("lat"), theirs.packed.isel(time=slice(2, 9)).std("lat"))
