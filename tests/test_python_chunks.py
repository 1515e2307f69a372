"""xarray's ways to use dask: the chunk manager, and arrays with new chunks. Other users' choice of a manager is not changed."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, places, same, theirs  # noqa: F401
from python_package import TIMEOUT

da = pytest.importorskip("dask.array", reason="dask is not installed")

HOW = {"engine": "gristmill", "chunked_array_type": "gristmill"}

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(autouse=True)
def nothing_known():
    from gristmill._pushdown import batches

    batches.forget()
    gm._variables.variable.answers.clear()


@pytest.mark.parametrize("more", [{}, {"inline_array": True}, {"from_array_kwargs": {"meta": np.empty((0, 0, 0))}}])
def test_blocks_of_the_engine_stay_where_they_are(places, theirs, more):
    with xr.open_dataset(places["cluster"], chunks={}, **HOW, **more) as ours:
        assert isinstance(ours.tos.data, da.Array) and ours.tos.data.npartitions == 24
        with gm.set_options(fallback="error"), gm.trace() as trace:
            got = ours.tos.mean("time").compute(), ours.packed.isel(lat=slice(2, 9)).std().compute()
        assert trace.reads == 0 and trace.requests <= 24
        same(got[0], theirs.tos.mean("time"))
        same(got[1], theirs.packed.isel(lat=slice(2, 9)).std())


def test_several_files_of_the_engine(places, theirs):
    files = [places["netcdf"], places["zarr"]]
    with xr.open_mfdataset(files, combine="nested", concat_dim="time", chunks={}, **HOW) as both:
        with gm.set_options(fallback="error"), gm.trace() as trace:
            got = both.tos.max("lat").compute()
        assert trace.reads == 0
        same(got, xr.concat([theirs, theirs], "time").tos.max("lat"))


def test_chunks_of_a_dataset_that_is_open(places, theirs):
    ours = gm.open_dataset(places["netcdf"])
    chunked = ours.isel(time=slice(3, None)).chunk({"time": 5, "lat": 4}, chunked_array_type="gristmill")
    again = chunked.chunk({"time": 11}, chunked_array_type="gristmill")
    with gm.set_options(fallback="error"):
        for one in (chunked, again):
            same(one.tos.mean("time").compute(), theirs.tos.isel(time=slice(3, None)).mean("time"))


@pytest.mark.parametrize(
    "text",
    [
        'ds.tos.chunk({"time": 7, "lon": 3}).mean("time")',
        "ds.a.coarsen(time=6, lat=4, lon=16).max()",
        "ds.tos.coarsen(lat=2, lon=2).mean()",
        'ds.a.isel(time=[0, 3, 4, 9, 30]).std("time")',
        'ds.packed.sortby("lat", ascending=False).min("lat")',
        '(ds.tos - 273.15).chunk({"time": 9}).sum()',
        'ds.tos.where(ds.tos > 280).chunk({"lat": -1}).count("lat")',
    ],
)
def test_pieces_of_blocks_are_put_together_where_they_are(places, theirs, text):
    ours = gm.open_dataset(places["netcdf"], chunks={})
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = eval(text, {"ds": ours}).compute()
    assert trace.reads == 0
    same(got, eval(text, {"ds": theirs}))


def test_what_is_put_together_is_what_numpy_has(places, theirs):
    array, values = gm.open_arrays(places["netcdf"])["tos"], theirs.tos.values
    row = np.arange(16.0)
    for parts in (
        lambda x: [x[:10], x[10:]],
        lambda x: [x[10:], x[:10]],
        lambda x: [x[3:4], x[:, :][7:8]],
        lambda x: [x[:5] + row, x[5:9] + row],
        lambda x: [x[:5] * x[:5], x[5:9] * x[5:9]],
        lambda x: [x[:5] - x[:1], x[5:9] - x[:1]],
        lambda x: [x[:5] - x[:1], x[5:9] - x[1:2]],
        lambda x: [np.where(row > 4, x[:5], 0), np.where(row > 5, x[5:9], 0)],
        lambda x: [x[:5] + 1, x[5:9] + 2],
        lambda x: [x[0:6, None], x[6:9, None]],
        lambda x: [x[:5].T[..., :2], x[5:9].T[..., 1:]],
    ):
        for axis in (0, -1):
            try:
                expected = np.concatenate(parts(values), axis)
            except ValueError:
                continue
            got = np.concatenate(parts(array), axis)
            assert got.shape == expected.shape and got.dtype == expected.dtype
            np.testing.assert_array_equal(np.asarray(got), expected)
            np.testing.assert_allclose(np.nanmax(got, axis=0), np.nanmax(expected, axis=0))


def test_pieces_of_several_arrays_of_dask_are_put_together(places, theirs):
    ours = gm.open_dataset(places["netcdf"])
    late = ours.tos.isel(time=slice(20, None)).chunk(time=5, chunked_array_type="gristmill")
    early = ours.tos.isel(time=slice(0, 20)).chunk(time=8, chunked_array_type="gristmill")
    both, expected = xr.concat([late, early], "time"), xr.concat([theirs.tos[20:], theirs.tos[:20]], "time")
    for lazy, local in ((both, expected), (both[10:20], expected[10:20])):
        same(lazy.chunk(time=-1).astype("f8").median("time").compute(), local.astype("f8").median("time"))
        same(lazy.chunk(time=-1).max("lat").compute(), local.max("lat"))


CHOICE = """
import sys, warnings
warnings.simplefilter("error")
if sys.argv[2] == "without":
    sys.modules["dask"] = None
import xarray as xr
from xarray.namedarray.parallelcompat import list_chunkmanagers
print(sorted(list_chunkmanagers()))
chunks = None if sys.argv[2] == "without" else {}
data = xr.open_dataset(sys.argv[1], engine="netcdf4", chunks=chunks)["i4"].data
print(type(data).__module__.split(".")[0])
if chunks is not None:
    assert type(xr.Dataset({"x": ("t", data[:, 0, 0])}).chunk({"t": 2}).mean().compute().x.item()) is float
"""


@pytest.mark.parametrize("dask, managers, module", [("with", "['dask', 'gristmill']", "dask"), ("without", "[]", "numpy")])
def test_whoever_does_not_ask_for_it_has_what_xarray_has(places, dask, managers, module):
    done = subprocess.run(
        [sys.executable, "-c", CHOICE, places["netcdf"], dask], capture_output=True, text=True, timeout=TIMEOUT
    )
    assert (done.stdout, done.stderr) == (f"{managers}\n{module}\n", "")


@pytest.mark.parametrize("chunks", [{}, {"time": 3}, -1])
def test_coordinates_that_are_no_index_are_cut_too(tmp_path, chunks):
    area = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("lat", "lon"))
    made = xr.Dataset({"a": (("time", "lat", "lon"), np.ones((7, 2, 3)))}, {"time": np.arange(7), "area": area})
    made.to_netcdf(tmp_path / "area.nc")
    ours = gm.open_dataset(tmp_path / "area.nc", chunks=chunks)
    assert ours.area.chunks is not None and ours.time.chunks is None
    xr.testing.assert_identical(ours.compute(), made)
