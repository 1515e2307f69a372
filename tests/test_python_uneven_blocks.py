"""Blocks of dask of several lengths, down to one element, compared with NumPy's result for the whole array."""

import itertools

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm

pytest.importorskip("dask.array", reason="dask is not installed")

SHAPE = (7, 5, 4)
DIMS = ("t", "y", "x")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(scope="module")
def theirs():
    rng = np.random.default_rng(505)
    values = rng.integers(-2, 3, SHAPE).astype("f8")
    values[rng.random(SHAPE) < 0.1] = np.nan
    dataset = xr.Dataset({"a": (DIMS, values), "f4": (DIMS, values.astype("f4")), "one": ((), 3.0)})
    return dataset.assign_coords({dim: np.arange(length) for dim, length in zip(DIMS, SHAPE)})


@pytest.fixture(scope="module")
def path(theirs, tmp_path_factory):
    path = tmp_path_factory.mktemp("uneven") / "uneven.nc"
    theirs.to_netcdf(path, encoding={name: {"chunksizes": (2, 3, 4)} for name in ("a", "f4")})
    return path


@pytest.fixture(autouse=True)
def nothing_known():
    from gristmill._pushdown import batches

    batches.forget()
    gm._variables.variable.answers.clear()


CHUNKS = [{}, {"t": 3, "y": 3}, {"t": 6, "y": 3, "x": 3}, {"t": 1, "y": 4, "x": 1}, {"t": (1, 4, 2), "y": (3, 1, 1)}]


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("boundary", ["trim", "pad"])
@pytest.mark.parametrize("reduce", ["sum", "mean", "count", "std", "max"])
def test_windows_of_uneven_blocks(path, theirs, chunks, boundary, reduce):
    # The order of the blocks is unknown, and the first block decides the form of the requests.
    for dims in ({"y": 3}, {"y": 3, "x": 3}, {"t": 2, "y": 5, "x": 4}):
        got = getattr(gm.open_dataset(path, chunks=chunks).a.coarsen(dims, boundary=boundary), reduce)().compute()
        expected = getattr(theirs.a.coarsen(dims, boundary=boundary), reduce)()
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.values, expected.values, rtol=1e-12)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("name", ["a", "f4"])
def test_reductions_of_uneven_blocks(path, theirs, chunks, name):
    ours = gm.open_dataset(path, chunks=chunks)[name]
    for count in (1, 2, 3):
        for dims in itertools.combinations(DIMS, count):
            # In both cases the second block, which has another length, comes before the first one.
            for part in (slice(None), slice(None, None, -1)):
                got = (ours.isel(t=part) + xr.zeros_like(ours[:, :1, :1])).sum(dims)
                expected = (theirs[name].isel(t=part) + xr.zeros_like(theirs[name][:, :1, :1])).sum(dims)
                np.testing.assert_allclose(got.values, expected.values, rtol=1e-6)


@pytest.mark.parametrize("values", [[[0.0, 0], [0, 1]], [[0.0, 1], [0, 1]], [[2.0, 2], [2, 2]]], ids=str)
def test_arithmetic_with_equal_blocks_of_an_array_that_is_here(path, theirs, values):
    ours, few = gm.open_dataset(path, chunks={"t": 1, "y": 1, "x": 4}).a[:2, :2], theirs.a[:2, :2]
    beside = xr.DataArray(values, dims=("t", "y"))
    for question in (lambda a, b: a + b, lambda a, b: (a - b).sum("x"), lambda a, b: a.where(b > 0)):
        np.testing.assert_array_equal(question(ours, beside.chunk(1)).compute().values, question(few, beside).values)


def test_single_numbers_have_no_blocks(path, theirs):
    ours = gm.open_dataset(path, chunks={})
    assert ours.one.chunks is None
    assert float(ours.one.median()) == float(ours.one.quantile([0.5])[0]) == 3.0
    np.testing.assert_array_equal(ours.quantile(0.5, "x").one, theirs.quantile(0.5, "x").one)


@pytest.mark.parametrize("taken", [slice(None, -1, 6), slice(0, 1), slice(2, 3), slice(1, 7, 5), slice(3, 3)], ids=str)
def test_blocks_of_which_nothing_is_taken(path, theirs, taken):
    ds = gm.open_dataset(path, chunks={"t": 2, "y": 2})
    for change in (lambda x: x > 0, lambda x: x + 1, lambda x: -x):
        xr.testing.assert_identical(change(ds[["a"]].isel(t=taken)).compute(), change(theirs[["a"]].isel(t=taken)))
