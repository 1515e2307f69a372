"""Datasets and arrays of xarray that become files of a cluster: by ``put``, by the methods of xarray, and through fsspec."""

import h5py
import numpy as np
import pytest
import xarray as xr
from python_arrays import gm

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(scope="module")
def cluster():
    with gm.up(nodes=2) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def made():
    values = np.random.default_rng(9).normal(size=(20, 6)).astype("f4")
    values[3] = np.nan
    coords = {"t": np.arange("2001-01-01", "2001-01-21", dtype="M8[D]").astype("M8[ns]"), "x": np.arange(6) * 1.5}
    return xr.Dataset({"v": (("t", "x"), values, {"units": "K"}), "n": ("x", np.arange(6))}, coords, {"title": "made up"})


@pytest.fixture(scope="module")
def stored(made, tmp_path_factory):
    """The same dataset, with its elements in a file."""
    path = tmp_path_factory.mktemp("stored") / "stored.nc"
    made.to_netcdf(path)
    return gm.open_dataset(path)


@pytest.mark.parametrize("name", ["a.nc", "b.nc4", "c.zarr", "d.ZARR/", "folder/e.h5"])
def test_a_dataset_is_put_by_its_name(cluster, made, stored, name):
    for source in (made, stored):
        info = gm.put(source, cluster.path(name), stripe="64KiB")
        assert info.url == cluster.path(name).rstrip("/")
        xr.testing.assert_identical(gm.open_dataset(cluster.path(name)).compute(), made)


def test_a_zarr_folder_is_replaced_whole(cluster, made):
    """Chunks with only the fill value are not written, so an old chunk of the same name would take their place."""
    url = cluster.path("again.zarr")
    encoding = {"v": {"chunks": (2, 3), "_FillValue": np.float32(0)}}
    made.fillna(7).gristmill.to_zarr(url, encoding=encoding)
    fewer = (made.fillna(7) * 0 + xr.where(made.t.dt.day < 5, 1, 0))[["v"]].astype("f4")
    fewer.gristmill.to_zarr(url, encoding={"v": {"chunks": (2, 3)}})
    found = gm.open_dataset(url)
    assert list(found.data_vars) == ["v"]
    np.testing.assert_array_equal(found.v.values, fewer.v.values)
    gm.put(b"no zarr", cluster.path("file.zarr"))
    gm.put(b"no zarr", cluster.path("folder.zarr/file"))
    for name in ("file.zarr", "folder.zarr"):
        with pytest.raises(gm.Conflict, match="no Zarr folder"):
            gm.put(made, cluster.path(name))


def test_an_array_is_put_by_its_name(cluster, made):
    for name in ("v.nc", "v.zarr"):
        gm.put(made.v, cluster.path(name))
        xr.testing.assert_identical(gm.open_dataset(cluster.path(name)).v.compute(), made.v)


def test_a_name_that_says_no_format_is_refused(cluster, made):
    for name in ("data", "data.bin"):
        with pytest.raises(gm.Usage, match="ends? in .nc for netCDF-4"):
            gm.put(made, cluster.path(name))
    with pytest.raises(gm.Usage, match="end in .zarr"):
        made.gristmill.to_zarr(cluster.path("z.nc"))


def test_xarray_writes_there(cluster, made, stored):
    made.to_netcdf(cluster.path("own.nc"), encoding={"v": {"zlib": True}})
    stored.v.to_netcdf(cluster.path("array.nc"), engine="h5netcdf")
    made.gristmill.to_zarr(cluster.path("own.zarr"), encoding={"v": {"chunks": (4, 6)}})
    stored.v.gristmill.to_netcdf(cluster.path("accessor.nc"))
    for name in ("own.nc", "own.zarr"):
        xr.testing.assert_identical(gm.open_dataset(cluster.path(name)).compute(), made)
    for name in ("array.nc", "accessor.nc"):
        xr.testing.assert_identical(gm.open_dataset(cluster.path(name)).v.compute(), made.v)
    with pytest.raises(gm.Usage, match="written whole"):
        made.to_netcdf(cluster.path("own.nc"), mode="a")


def test_xarray_writes_elsewhere_as_before(made, tmp_path):
    made.to_netcdf(tmp_path / "here.nc")
    xr.testing.assert_identical(xr.load_dataset(tmp_path / "here.nc"), made)
    assert isinstance(made.to_netcdf(), (bytes, memoryview))


def test_writers_that_go_back_and_forth(cluster, made):
    url = cluster.path("seek.h5")
    with fsspec.open(url, "wb") as raw, h5py.File(raw, "w") as file:
        file["first"] = np.arange(1000.0)
        file.create_dataset("second", data=np.arange(100), chunks=(7,), compression="gzip")
        file["first"][3] = -1
    arrays = gm.open_arrays(url)
    assert float(arrays["first"][3]) == -1 and int(np.sum(arrays["second"])) == 4950
    with fsspec.open(cluster.path("through.nc"), "wb") as raw:
        made.to_netcdf(raw, engine="h5netcdf")
    xr.testing.assert_identical(gm.open_dataset(cluster.path("through.nc")).compute(), made)


def test_what_is_written_can_be_read_and_cut_until_it_is_closed(cluster):
    with fsspec.open(cluster.path("cut"), "wb") as file:
        assert file.seekable() and file.write(b"0123456789") == 10
        file.seek(2)
        assert file.read(3) == b"234" and file.tell() == 5
        file.write(b"x")
        file.truncate(8)
        file.seek(0, 2)
        file.write(b"end")
    assert gm.get(cluster.path("cut")) == b"01234x67end"
    with fsspec.open(cluster.path("cut"), "rb") as file, pytest.raises(ValueError, match="open for reading"):
        file.write(b"more")
