"""A file with variables of every kind, stored in several places, for the tests of arrays in Python."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

gm = pytest.importorskip("gristmill", reason="the package is not installed: pip install .")

SHAPE = (36, 12, 16)
DIMS = ("time", "lat", "lon")
PLACES = ["netcdf", "zarr", "striped", "cluster"]


def fields():
    """The variables. In some of them whole columns and days are missing."""
    rng = np.random.default_rng(20260711)
    time = xr.Variable("time", np.arange(SHAPE[0]) * 10.0, {"units": "days since 2001-01-01", "calendar": "standard"})
    lat = xr.Variable("lat", np.linspace(-82.5, 82.5, SHAPE[1]), {"units": "degrees_north"})
    lon = xr.Variable("lon", np.arange(SHAPE[2]) * 22.5, {"units": "degrees_east"})
    tos = rng.normal(285, 10, SHAPE).astype("f4")
    tos[rng.random(SHAPE) < 0.1] = np.nan
    tos[:, 3, 5] = np.nan
    tos[7] = np.nan
    a = rng.normal(0, 3, SHAPE)
    a[rng.random(SHAPE) < 0.05] = np.nan
    a[:, 2, 2] = np.nan
    b = 0.5 * a + rng.normal(0, 1, SHAPE)
    packed = rng.integers(-30000, 30000, SHAPE).astype("i2")
    packed[rng.random(SHAPE) < 0.1] = -32768
    variables = {
        "tos": xr.Variable(DIMS, tos, {"units": "K", "standard_name": "sea_surface_temperature"}),
        "a": xr.Variable(DIMS, a),
        "b": xr.Variable(DIMS, b),
        "i4": xr.Variable(DIMS, rng.integers(-1000, 1000, SHAPE).astype("i4")),
        "packed": xr.Variable(
            DIMS,
            packed,
            {"scale_factor": 0.01, "add_offset": 273.0, "_FillValue": np.int16(-32768)},
        ),
    }
    return xr.Dataset(variables, {"time": time, "lat": lat, "lon": lon}, {"title": "made up"})


class Places:
    """The same file in each kind of place."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "fields.nc"
        raw = fields()
        encoding = {name: {"zlib": True, "chunksizes": (10, 5, 8)} for name in raw.data_vars}
        raw.to_netcdf(self.path, engine="netcdf4", encoding=encoding, unlimited_dims=["time"])
        raw.to_zarr(folder / "fields.zarr", encoding={name: {"chunks": (10, 5, 8)} for name in raw.data_vars})
        self.cluster = None

    def __getitem__(self, place):
        if place == "zarr":
            return self.folder / "fields.zarr"
        if place == "striped":
            url = self.folder / "fields.grist"
            if not url.exists():
                gm.put(self.path, url, stripe="4KiB", on=[self.folder / f"target{n}" for n in range(3)])
            return url
        if place == "cluster":
            if self.cluster is None:
                self.cluster = gm.up(nodes=3, lanes=1)
                gm.put(self.path, self.cluster.path("fields.nc"), stripe="64KiB")
            return self.cluster.path("fields.nc")
        return self.path

    def close(self):
        if self.cluster is not None:
            self.cluster.stop()


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    places = Places(tmp_path_factory.mktemp("arrays"))
    yield places
    places.close()


@pytest.fixture(scope="module")
def theirs(places):
    """The file as xarray opens it, in memory."""
    with xr.open_dataset(places["netcdf"], engine="netcdf4") as dataset:
        return dataset.load()


def same(got, expected):
    """Asserts the same dimensions, coordinates, types and missing values. The numbers may differ by one rounding."""
    assert got.dims == expected.dims and got.dtype == expected.dtype
    assert set(got.coords) == set(expected.coords)
    for name in expected.coords:
        np.testing.assert_array_equal(got.coords[name].values, expected.coords[name].values)
    numbers(got.values, expected.values)


def numbers(got, expected):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        close = 1e-5 if got.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(got, expected, rtol=close, atol=close * 1e-3)
    else:
        np.testing.assert_array_equal(got, expected)


def unlimited(path, longer):
    """A file in which one variable has fewer records than another."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createVariable("long", "f8", ("time",))[:] = np.arange(float(longer))
        file.createVariable("short", "f8", ("time",))[:] = np.arange(3.0)
    return path
