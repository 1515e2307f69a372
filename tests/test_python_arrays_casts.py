"""Casts in the middle of an expression, compared with xarray."""

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm

SHAPE = (9, 6, 5)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(scope="module")
def theirs():
    rng = np.random.default_rng(5)
    full = rng.normal(0, 40, SHAPE)
    holes = np.where(rng.random(SHAPE) < 0.2, np.nan, rng.normal(0, 40, SHAPE))
    dims = ("time", "lat", "lon")
    return xr.Dataset({"full": (dims, full), "holes": (dims, holes), "f4": (dims, full.astype("f4"))})


@pytest.fixture(scope="module")
def ours(theirs, tmp_path_factory):
    path = tmp_path_factory.mktemp("casts") / "casts.nc"
    theirs.to_netcdf(path)
    return gm.open_dataset(path)


def same(question, ours, theirs, **tolerance):
    """Compares both answers, with a relative tolerance of 1e-9 unless another one is given."""
    got, expected = question(ours), question(theirs)
    assert got.dtype == expected.dtype and got.dims == expected.dims
    np.testing.assert_allclose(got.values, expected.values, **(tolerance or {"rtol": 1e-9}))


#: The same number or map is subtracted from both, because means of f4 differ in their last bit.
DISTANCES = {
    "a number": lambda array, theirs: array - np.float64(0.1),
    "a map": lambda array, theirs: array - theirs.mean("time"),
    "the mean": lambda array, theirs: array - theirs.mean(),
}


@pytest.mark.parametrize("reduce", ["sum", "mean", "std", "var", "min", "max", "count"])
@pytest.mark.parametrize("dtype", ["i4", "i8", "i1", bool])
@pytest.mark.parametrize("distance", DISTANCES)
def test_distances_that_are_cut_off_to_whole_numbers(ours, theirs, distance, dtype, reduce):
    for dims in (None, "time"):
        same(lambda ds: getattr(DISTANCES[distance](ds.full, theirs.full).astype(dtype), reduce)(dims), ours, theirs)


@pytest.mark.parametrize("reduce", ["sum", "mean", "std", "min", "max"])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", ["full", "holes", "f4"])
def test_distances_that_are_rounded_to_f4_and_widened_again(ours, theirs, name, distance, reduce):
    def question(ds):
        return getattr(DISTANCES[distance](ds[name], theirs[name]).astype("f4").astype("f8"), reduce)("time")

    # Extremes have the bits of NumPy. A sum that nearly cancels has the error of its elements, which for f4 is that of their
    # distances.
    error = 0 if reduce in ("min", "max") else (1e-7 if name == "f4" else 1e-15) * 200 * SHAPE[0]
    same(question, ours, theirs, rtol=0 if reduce in ("min", "max") else 1e-9, atol=error)


@pytest.mark.parametrize("dtype", [bool, "f4"])
def test_what_is_filled_before_it_is_cast(ours, theirs, dtype):
    same(lambda ds: ds.holes.fillna(0).astype(dtype).sum("time"), ours, theirs, rtol=1e-5)
    same(lambda ds: (ds.holes.fillna(0) > 3).astype(dtype).sum("time"), ours, theirs)


def test_squares_and_products_of_distances_that_are_cast(ours, theirs):
    for dims in (None, "time"):
        same(lambda ds: ((ds.full - ds.full.mean(dims)) ** 2).astype("i4").sum(dims), ours, theirs)
        same(lambda ds: ((ds.full - ds.full.mean(dims)) ** 2).astype("f4").astype("f8").sum(dims), ours, theirs, rtol=1e-12)
        same(lambda ds: ((ds.full - ds.full.mean(dims)).astype("i4") ** 2).sum(dims), ours, theirs)
        same(
            lambda ds: ((ds.full - ds.full.mean(dims)).astype(bool) * (ds.holes - 1.0)).sum(dims), ours, theirs
        )


def test_what_is_masked_and_rounded(ours, theirs):
    def question(ds):
        kept = xr.DataArray(np.arange(SHAPE[0]) % 3 != 1, dims="time")
        return ds.full.where(kept).astype("f4").astype("f8").sum("time")

    same(question, ours, theirs, rtol=1e-12)


def test_two_roundings_are_two_operations(ours, theirs):
    def question(ds):
        one, two = ds.holes.round(1), ds.holes.round(0)
        return xr.where(np.isnan(one), 0, two).sum("time")

    same(question, ours, theirs)


@pytest.mark.parametrize("power", [0, 1, 2, 3, 2.0, 0.5, np.int64(2), np.float32(2), True], ids=repr)
def test_powers_of_what_is_true_or_false(ours, theirs, power):
    same(lambda ds: (ds.full > 0) ** power, ours, theirs)
    same(lambda ds: ((ds.full > 0) ** power).sum("time"), ours, theirs)
    same(lambda ds: xr.corr((ds.full > 0) ** power, ds.f4 > 1, "time"), ours, theirs, rtol=1e-5)


def test_squares_of_what_is_true_or_false(ours, theirs):
    for function in (np.square, lambda a: np.power(a, 2), lambda a: np.power(2, a)):
        same(lambda ds: function(ds.full > 0), ours, theirs)
        same(lambda ds: function(ds.full > 0).mean("lat"), ours, theirs)


@pytest.mark.parametrize("ends", [(-1, 300), (-1, 3), (None, 300), (-5, None), (0.5, 300), (-1.0, 2**40), (3, 2)], ids=str)
@pytest.mark.parametrize("dtype", ["u1", "i4", "i8", "f4"])
def test_ends_beyond_a_type_do_not_clip(ours, theirs, dtype, ends):
    def question(ds):
        return abs(ds.full).astype(dtype).clip(*ends)

    same(question, ours, theirs)
    same(lambda ds: question(ds).sum("time"), ours, theirs, rtol=1e-5)


def test_ends_that_leave_nothing_of_a_type_are_refused(ours, theirs):
    for ds in (ours, theirs):
        with pytest.raises(OverflowError):
            ds.full.astype("i1").clip(300, 400).values
