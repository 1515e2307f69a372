"""Operations that load elements: ``load`` and ``compute`` of xarray and plots. Each chunk is read once."""

import asyncio

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, places, same, theirs  # noqa: F401

SHAPE, CHUNKS = (40, 30, 36), (12, 10, 12)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "stored.nc"
    values = np.random.default_rng(1).normal(size=SHAPE).astype("f4")
    made = xr.Dataset({"v": (("t", "y", "x"), values)}, {"t": np.arange(SHAPE[0])})
    made.to_netcdf(path, encoding={"v": {"chunksizes": CHUNKS, "zlib": True}})
    return path, made, gm.open_arrays(path).variable("v").stored_bytes


@pytest.mark.parametrize("engine", [False, True])
@pytest.mark.parametrize("chunks", [None, {}], ids=["whole", "blocks"])
def test_values_outlive_the_cluster(stored, engine, chunks):
    path, made, _ = stored
    with gm.up(nodes=2) as nodes:
        gm.put(path, nodes.path("stored.nc"))
        url = nodes.path("stored.nc")
        ds = xr.open_dataset(url, engine="gristmill", chunks=chunks) if engine else gm.open_dataset(url, chunks=chunks)
        computed, expression = ds.v[3:9].compute(), (ds.v + 1).load()
        later = asyncio.run(ds.v[:2].load_async()) if chunks is None else ds.v[:2].load()
        assert ds.v[3:9].gristmill.load().identical(computed)
        whole = ds.compute()
        ds.load()
    for found in (ds, whole):
        assert isinstance(found.v.variable._data, np.ndarray)
        np.testing.assert_array_equal(found.v.mean("t"), made.v.mean("t"))
        xr.testing.assert_identical(found, made)
    np.testing.assert_array_equal(computed, made.v[3:9])
    np.testing.assert_array_equal(expression, made.v + 1)
    np.testing.assert_array_equal(later, made.v[:2])


def test_compute_leaves_the_array_where_it_is(stored):
    path, made, _ = stored
    ds = gm.open_dataset(path)
    with pytest.raises(gm.PushdownError), gm.set_options(fallback="error"):
        ds.v.compute()
    assert isinstance(ds.v.compute().data, np.ndarray) and isinstance(ds.v.data, gm.Array)


def test_other_arrays_load_as_before():
    blocks = xr.DataArray(np.arange(6.0), dims="x").chunk(2)
    assert blocks.copy().load().chunks is None and blocks.chunks is not None


def test_a_small_slice_shows_its_numbers(stored):
    path, made, _ = stored
    ds = gm.open_dataset(path)
    few = ds.v[3, 4:6, 7:10]
    assert str(made.v.values[3, 4, 8])[:8] in repr(few) and str(made.v.values[3, 4, 8])[:8] in repr(few.data)
    assert "[" not in repr(ds.v.data) and "[" not in repr(ds.v[:, :, 0].data)
    with gm.set_options(fallback="error"):
        assert repr(ds.v.data[0, :2, 0] > 0).startswith("<gristmill.Array (2,) bool>\n[")


def test_a_small_slice_of_what_is_gone_is_still_shown(tmp_path):
    np.save(tmp_path / "gone.npy", np.arange(5.0))
    array = gm.open_arrays(tmp_path / "gone.npy")["data"]
    (tmp_path / "gone.npy").write_bytes(b"")
    assert repr(array) == "<gristmill.Array (5,) float64>"


@pytest.mark.parametrize(
    "pieces",
    [
        [(slice(t, t + 7), slice(y, y + 9), slice(x, x + 5)) for t in range(0, 40, 7) for y in range(0, 30, 9) for x in range(0, 36, 5)],
        [(t, slice(None), slice(None)) for t in range(40)],
        [(slice(None), slice(y, None, 3), [x, x + 1]) for y in range(3) for x in range(0, 36, 2)],
    ],
    ids=["blocks that end within chunks", "days", "steps and lists"],
)
def test_each_chunk_is_read_once(stored, pieces):
    path, made, size = stored
    array = gm.open_arrays(path)["v"]
    with gm.trace() as trace:
        for piece in pieces:
            np.testing.assert_array_equal(np.asarray(array[piece]), made.v.values[piece])
    assert trace.bytes_in <= size and trace.reads <= len(pieces)


@pytest.mark.parametrize("part", [{}, {"t": slice(5, 33), "y": slice(3, None)}], ids=str)
def test_copies_read_each_chunk_once(stored, part, tmp_path):
    path, made, size = stored
    ds = gm.open_dataset(path).isel(part)
    with gm.trace() as trace:
        (ds + 0).to_zarr(tmp_path / "copy.zarr", encoding={"v": {"chunks": (9, 7, 11)}})
    assert trace.bytes_in <= size
    xr.testing.assert_equal(xr.open_zarr(tmp_path / "copy.zarr", chunks=None).load(), made.isel(part))


def test_without_a_cache_what_is_read_is_still_right(stored):
    path, made, _ = stored
    array = gm.open_arrays(path)["v"]
    with gm.set_options(cache_bytes=0):
        np.testing.assert_array_equal(np.asarray(array[3:7, 2:5, ::2]), made.v.values[3:7, 2:5, ::2])


def test_blocks_of_the_engine_are_reduced_where_they_are(places, theirs):
    with xr.open_dataset(places["cluster"], engine="gristmill", chunks={}) as ours:
        assert ours.tos.chunks is not None
        with gm.set_options(fallback="error"), gm.trace() as trace:
            got = ours.tos.mean("time").compute(), ours.packed[2:9].std().compute()
        assert trace.reads == 0 and trace.requests == 2
        same(got[0], theirs.tos.mean("time"))
        same(got[1], theirs.packed[2:9].std())
    later = xr.open_dataset(places["cluster"], engine="gristmill").chunk(time=5)
    with gm.set_options(fallback="error"), gm.trace() as trace:
        same(later.tos.max("time").compute(), theirs.tos.max("time"))
    assert trace.reads == 0
    files = [places["netcdf"], places["zarr"]]
    with xr.open_mfdataset(files, combine="nested", concat_dim="time", engine="gristmill") as both:
        with gm.set_options(fallback="error"):
            same(both.tos.max("lat").compute(), xr.concat([theirs, theirs], "time").tos.max("lat"))


def test_what_the_engine_gives_is_what_xarray_has_otherwise(places, theirs):
    ours = xr.open_dataset(places["netcdf"], engine="gristmill")
    assert type(ours.tos.variable).__name__ == "Variable" and repr(ours.tos.variable).startswith("<xarray.Variable")
    xr.testing.assert_identical(ours.tos.isel(time=0).compute(), theirs.tos.isel(time=0).assign_attrs(ours.tos.attrs))
    blocks = ours.chunk(time=5).chunk(time=7)
    assert blocks.tos.chunks[0][0] == 7


def test_arrays_of_dask_are_explained(places):
    ours = gm.open_dataset(places["netcdf"], chunks={})
    assert gm.explain(ours.tos[3:] - 1).endswith("tos[3:36, 0:12, 0:16], with one request for all 24 blocks of dask")
    assert "do not compute sin" in gm.explain(np.sin(ours.tos)) and "one by one" in gm.explain(np.sin(ours.tos))
    assert "made of 1 reduction where the data is stored" in gm.explain(ours.tos.mean("time"))
    assert "blocks of dask over tos" in gm.explain(ours.tos.rolling(time=3).mean())
    assert "none of which Gristmill stores" in gm.explain(xr.DataArray(np.ones(4), dims="x").chunk(2))
    assert gm.explain(ours.tos.isel(time=0).compute()) == gm.explain(np.ones(3)) == "it is here"
