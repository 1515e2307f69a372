"""Programs that end with empty arrays: no common label, no index, windows of nothing; and programs over one number."""

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("nothing") / "nothing.nc"
    xr.Dataset({"a": (("t", "x"), np.ones((4, 2))), "b": (("t", "x"), np.full((4, 2), 2.0))}).to_netcdf(path)
    return path


def labels(array, first):
    return array.assign_coords(t=np.arange(first, first + 4))


WEIGHTS = xr.DataArray([1.0, 1], coords={"t": [8, 9]}, dims="t")

PROGRAMS = {
    "dot": lambda ds: xr.dot(labels(ds.a, 0), labels(ds.b, 9), dim="t"),
    "dot of all": lambda ds: xr.dot(labels(ds.a, 0), labels(ds.b, 9)),
    "dot of nothing and something": lambda ds: xr.dot(ds.a.isel(t=[]), ds.b.isel(t=0), dim="x"),
    "dot of a constant": lambda ds: xr.dot(ds.a.isel(x=[]), xr.DataArray(np.ones(0), dims="x"), dim="x"),
    "weighted mean": lambda ds: labels(ds.a, 0).weighted(WEIGHTS).mean("t"),
    "weighted sum": lambda ds: labels(ds.a, 0).weighted(WEIGHTS).sum("t"),
    "no index": lambda ds: ds.a.isel(t=[]).weighted(xr.DataArray([1.0, 2], dims="x")).mean("x"),
    "sum of no index": lambda ds: ds.a.isel(t=[]).sum("x"),
    "mean of no index": lambda ds: ds.a.isel(t=[]).mean("t"),
    "cov": lambda ds: xr.cov(labels(ds.a, 0), labels(ds.b, 9), "t"),
    "windows": lambda ds: ds.a[:0, :0].expand_dims(z=2, axis=2).coarsen(t=1, z=2).max(),
    "padded windows": lambda ds: ds.a[:, :0].coarsen(t=3, boundary="pad").sum(),
    "places": lambda ds: ds.a[:0].argmax("x"),
    "one number": lambda ds: ds.a[0, 0].sum(),
    "place of one number": lambda ds: ds.a[0, 0].argmax(dim=...)["missing"] if ds.a[0, 0].argmax(dim=...) else ds.a[0, 0],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_what_xarray_says(path, name):
    with xr.open_dataset(path) as theirs:
        expected = PROGRAMS[name](theirs)
        got = PROGRAMS[name](gm.open_dataset(path))
        assert got.dims == expected.dims and got.dtype == expected.dtype
        np.testing.assert_array_equal(got.values, expected.values)


def test_axes_of_one_number(path):
    one = gm.open_arrays(path)["a"][0, 0]
    for axis in (0, -1, None):
        assert np.argmax(one, axis=axis) == 0 and np.sum(one, axis=axis) == 1
    with pytest.raises(np.exceptions.AxisError):
        np.sum(one, axis=1)
