"""Array reductions compared with xarray and NumPy. Types and NaN are theirs. Values are the exact ones, rounded once."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

from arrays import Reducer, Refused, exact, root, ulps

SEED = 20240611
FLOATS = ("float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SHAPE = (5, 7, 6)
AXES = (None, [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2])
DIMS = ("t", "y", "x")


@pytest.fixture(scope="module")
def reducer(tmp_path_factory):
    reducer = Reducer(tmp_path_factory.mktemp("arrays"))
    yield reducer
    reducer.close()


def floats(rng, dtype, shape=SHAPE):
    """Values of all sizes with NaN. Some whole rows are NaN."""
    data = rng.normal(250, 40, shape) * 10.0 ** rng.integers(-3, 4, shape)
    data[rng.random(shape) < 0.15] = np.nan
    data[0, 0] = np.nan
    data[:, 1, 1] = np.nan
    data[rng.random(shape) < 0.1] = 0
    return data.astype(dtype)


def integers(rng, dtype, shape=SHAPE):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def chunks(rng, shape=SHAPE):
    return [int(rng.integers(1, n + 2)) for n in shape]


def xarray_says(data, op, axes, skipna=None, keepdims=False, **more):
    array = xr.DataArray(data, dims=DIMS[: data.ndim])
    dims = None if axes is None else [DIMS[axis] for axis in axes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kwargs = {} if op == "count" else {"skipna": skipna}
        if op in ("any", "all"):
            kwargs = {}
        return getattr(array, op)(dim=dims, keepdims=keepdims, **kwargs, **more).values


def by_cell(data, axes, of, keepdims=False):
    """Applies `of` to the elements of each cell and returns the results as an array."""
    axes = tuple(range(data.ndim)) if axes is None else tuple(axes)
    kept = [axis for axis in range(data.ndim) if axis not in axes]
    rows = np.transpose(data, [*kept, *axes]).reshape([data.shape[axis] for axis in kept] + [-1])
    out = np.empty(rows.shape[:-1], object)
    for at in np.ndindex(*out.shape):
        out[at] = of(rows[at])
    if keepdims:
        out = out.reshape([1 if axis in axes else n for axis, n in enumerate(data.shape)])
    return out


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["sum", "mean", "var", "std"])
def test_sums_of_floats_are_the_exact_ones_rounded(reducer, dtype, op):
    rng = np.random.default_rng(SEED)
    worst = theirs = 0
    for axes, skipna, keepdims in itertools.product(AXES, (None, True, False), (False, True)):
        data = floats(rng, dtype)
        ddof = int(rng.integers(0, 3)) if op in ("var", "std") else 0
        more = {"ddof": ddof} if op in ("var", "std") else {}
        got = reducer.ask(data, op, chunk=chunks(rng), axes=axes, skipna=skipna, keepdims=keepdims, **more)
        expected = xarray_says(data, op, axes, skipna, keepdims, **more)
        value = got[op]
        assert got["numerics"] == ("exact" if value.size == 1 else "binned")
        assert value.dtype == expected.dtype and value.shape == expected.shape
        if ddof == 0:
            np.testing.assert_array_equal(np.isnan(value), np.isnan(expected))
        np.testing.assert_allclose(value, expected, rtol=2e-3 if dtype == "float32" else 1e-9)

        def once(cell):
            if skipna is not False:
                cell = cell[~np.isnan(cell)]
            return np.nan if np.isnan(cell).any() else exact(op, cell, value.dtype, ddof)

        right = by_cell(data, axes, once, keepdims).astype(value.dtype)
        worst = max(worst, ulps(value, right))
        theirs = max(theirs, ulps(expected, right) if ddof == 0 else 0)
    print(f"{op} of {dtype}: at most {worst} ulp from the exact result, xarray {theirs}")
    assert worst == 0


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("op", ["count", "min", "max", "any", "all"])
def test_what_is_exact_anyway_is_xarrays(reducer, dtype, op):
    rng = np.random.default_rng(SEED + 1)
    for axes, keepdims in itertools.product(AXES, (False, True)):
        data = floats(rng, dtype) if dtype in FLOATS else integers(rng, dtype)
        for skipna in (None, False) if op in ("min", "max") else (None,):
            got = reducer.one(data, op, chunk=chunks(rng), axes=axes, skipna=skipna, keepdims=keepdims)
            expected = xarray_says(data, op, axes, skipna, keepdims)
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sums_of_integers(reducer, dtype):
    rng = np.random.default_rng(SEED + 2)
    for axes, keepdims in itertools.product(AXES, (False, True)):
        data = integers(rng, dtype) // (1 << 9 if np.dtype(dtype).itemsize == 8 else 1)
        for op in ("sum", "mean", "var", "std"):
            got = reducer.ask(data, op, chunk=chunks(rng), axes=axes, keepdims=keepdims)
            assert got["numerics"] == "exact"
            expected = xarray_says(data, op, axes, keepdims=keepdims)
            assert got[op].dtype == expected.dtype and got[op].shape == expected.shape
            if op == "sum":
                np.testing.assert_array_equal(got[op], expected)
                continue
            numbers = data.astype(object)

            def once(cell):
                total, n = sum(map(int, cell)), len(cell)
                mean = Fraction(total, n)
                if op == "mean":
                    return float(mean)
                spread = sum((int(x) - mean) ** 2 for x in cell) / n
                return float(spread) if op == "var" else root(spread)

            right = by_cell(numbers, axes, once, keepdims).astype(float)
            assert ulps(got[op], right) == 0


@pytest.mark.parametrize("dtype", FLOATS + ("int16", "uint64"))
@pytest.mark.parametrize("op", ["argmin", "argmax"])
def test_places(reducer, dtype, op):
    rng = np.random.default_rng(SEED + 3)
    for axis in (0, 1, 2, None):
        for keepdims in (False, True):
            data = np.round(floats(rng, dtype) if dtype in FLOATS else integers(rng, dtype) % 5)
            data = data.astype(dtype)
            if dtype in FLOATS:
                np.put(data, rng.integers(0, data.size, 20), 0.0)
                np.put(data, rng.integers(0, data.size, 20), -0.0)
                data[:, 1, 1], data[0, 0, :] = 3, 4
            axes = None if axis is None else [axis]
            for skipna in (True, False):
                of = np.nanargmin if op == "argmin" else np.nanargmax
                of = of if skipna else getattr(np, op)
                expected = of(data, axis=axis, keepdims=keepdims)
                got = reducer.one(data, op, chunk=chunks(rng), axes=axes, skipna=skipna, keepdims=keepdims)
                assert got.dtype == np.int64
                np.testing.assert_array_equal(got, expected)
    if dtype in FLOATS:
        with pytest.raises(Refused, match="NaN"):
            reducer.one(np.full((2, 3), np.nan, dtype), op, axes=[0])


@pytest.mark.parametrize("dtype", FLOATS + ("int8", "uint32", "int64"))
def test_quantiles(reducer, dtype):
    rng = np.random.default_rng(SEED + 4)
    shares = [0.0, 0.1, 0.5, 0.73, 1.0]
    for axes in AXES:
        data = floats(rng, dtype) if dtype in FLOATS else integers(rng, dtype)
        got = reducer.one(data, "quantile", chunk=chunks(rng), axes=axes, q=shares)
        dims = None if axes is None else [DIMS[axis] for axis in axes]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # With integers NumPy 2.4 computes differences that wrap: it gives 123.3 for the quantile 0.7 of int8 -125 and 120.
            given = data if dtype in FLOATS else data.astype(float)
            expected = xr.DataArray(given, dims=DIMS).quantile(shares, dim=dims).values
        assert got.dtype == np.float64 and got.shape == expected.shape
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        np.testing.assert_allclose(got, expected, rtol=1e-6 if dtype == "float32" else 1e-14)


def test_histograms(reducer):
    rng = np.random.default_rng(SEED + 5)
    edges = [-500.0, 0.0, 100.0, 250.5, 1e4]
    for dtype in FLOATS + ("int16",):
        data = floats(rng, dtype) if dtype in FLOATS else integers(rng, dtype)
        data.flat[:5] = np.asarray([-500, 0, 100, 1e4, 1e4]).astype(dtype)
        got = reducer.one(data, "histogram", chunk=chunks(rng), axes=[0, 2], bins=edges)
        expected = by_cell(data, [0, 2], lambda cell: np.histogram(cell[~np.isnan(cell)], edges)[0])
        np.testing.assert_array_equal(got, np.stack(expected))
        whole = reducer.one(data, "histogram", bins=edges)
        np.testing.assert_array_equal(whole, np.histogram(data[~np.isnan(data)], edges)[0])


def test_moments_are_those_asked_one_by_one(reducer):
    rng = np.random.default_rng(SEED + 6)
    for dtype in FLOATS + ("int32", "uint8"):
        data = floats(rng, dtype) if dtype in FLOATS else integers(rng, dtype)
        for axes in ([0], [1, 2], None):
            got = reducer.ask(data, "moments", chunk=chunks(rng), axes=axes)
            for name, op in (("n", "count"), ("sum", "sum"), ("min", "min"), ("max", "max")):
                alone = reducer.one(data, op, axes=axes)
                assert got[name].dtype == alone.dtype
                np.testing.assert_array_equal(got[name], alone)
            variance = reducer.one(data.astype(float), "var", axes=axes)
            np.testing.assert_allclose(got["m2"] / np.where(got["n"], got["n"], np.nan), variance, rtol=1e-12)


def test_equal_values_have_no_spread(reducer):
    rng = np.random.default_rng(SEED + 13)
    data = np.broadcast_to(rng.normal(1e5, 1, (1, 7, 6)), (5, 7, 6)).copy()
    assert (reducer.ask(data, "moments", chunk=chunks(rng, data.shape), axes=[0])["m2"] == 0).all()
    data[1:] = np.nan
    for op in ("std", "var"):
        assert (reducer.one(data, op, chunk=chunks(rng, data.shape), axes=[0]) == 0).all()


def test_totals_are_a_count_and_a_sum_in_the_wider_type(reducer):
    rng = np.random.default_rng(SEED + 11)
    for dtype in FLOATS + ("int32", "uint8"):
        data = floats(rng, dtype) if dtype in FLOATS else integers(rng, dtype)
        for axes in ([0], [1, 2], None):
            got = reducer.ask(data, "totals", chunk=chunks(rng), axes=axes)
            np.testing.assert_array_equal(got["n"], reducer.one(data, "count", axes=axes))
            expected = reducer.one(data.astype("float64") if dtype in FLOATS else data, "sum", axes=axes)
            assert got["sum"].dtype == expected.dtype
            np.testing.assert_array_equal(got["sum"], expected)


def test_weighted_totals(reducer):
    rng = np.random.default_rng(SEED + 12)
    data = floats(rng, "float32")
    weights = np.cos(np.linspace(-1.5, 1.5, 7))
    weighted = xr.DataArray(data, dims=DIMS).weighted(xr.DataArray(weights, dims="y"))
    for dims, axes in ((["y"], [1]), (["y", "x"], [1, 2]), (None, None)):
        got = reducer.ask(data, "totals", chunk=chunks(rng), axes=axes, weights=[[1, list(weights)]])
        np.testing.assert_allclose(got["sum"], weighted.sum(dims).values, rtol=1e-5)
        np.testing.assert_allclose(got["weights"], weighted.sum_of_weights(dims).fillna(0).values, rtol=1e-12)


def test_weighted_means(reducer):
    rng = np.random.default_rng(SEED + 7)
    data = floats(rng, "float32")
    weights = np.cos(np.linspace(-1.5, 1.5, 7))
    array = xr.DataArray(data, dims=DIMS)
    weighted = array.weighted(xr.DataArray(weights, dims="y"))
    for dims, axes in ((["y"], [1]), (["y", "x"], [1, 2]), (["t"], [0]), (None, None)):
        for op in ("mean", "sum"):
            for skipna in (True, False):
                got = reducer.one(
                    data, op, chunk=chunks(rng), axes=axes, skipna=skipna, weights=[[1, list(weights)]]
                )
                expected = getattr(weighted, op)(dims, skipna=skipna).values
                assert got.dtype == expected.dtype == np.float64
                np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
                np.testing.assert_allclose(got, expected, rtol=1e-12)
    both = reducer.one(data, "mean", axes=[1, 2], weights=[[1, list(weights)], [2, [1, 2, 3, 4, 5, 6]]])
    product = xr.DataArray(np.outer(weights, np.arange(1, 7)), dims=("y", "x"))
    np.testing.assert_allclose(both, array.weighted(product).mean(["y", "x"]).values, rtol=1e-12)


def test_groups(reducer):
    rng = np.random.default_rng(SEED + 8)
    shape = (40, 4, 5)
    data = floats(rng, "float32", shape)
    labels = rng.integers(-1, 6, 40)
    labels[labels == 4] = 3
    for op in ("mean", "sum", "max", "count", "var"):
        got = reducer.one(data, op, chunk=chunks(rng, shape), groups=[[0, labels.tolist(), 6]])
        assert got.shape == (6, 4, 5)
        for group in range(6):
            part = data[labels == group]
            if group == 4:
                nothing = {"sum": 0, "count": 0}.get(op, np.nan)
                np.testing.assert_array_equal(got[group], np.full((4, 5), nothing))
                continue
            np.testing.assert_array_equal(got[group], reducer.one(part, op, axes=[0]))
    lat = reducer.one(data, "mean", chunk=[7, 3, 2], axes=[2], groups=[[0, labels.tolist(), 6]])
    np.testing.assert_array_equal(lat[2], reducer.one(data[labels == 2], "mean", axes=[0, 2]))


@pytest.mark.parametrize("boundary", ["exact", "trim", "pad"])
def test_coarsen(reducer, boundary):
    rng = np.random.default_rng(SEED + 9)
    shape = (5, 12, 8) if boundary == "exact" else (5, 13, 7)
    data = floats(rng, "float64", shape)
    for op in ("mean", "sum", "max", "count"):
        got = reducer.one(
            data, op, chunk=chunks(rng, shape), windows=[[1, 3, boundary], [2, 4, boundary]]
        )
        coarse = xr.DataArray(data, dims=DIMS).coarsen(y=3, x=4, boundary=boundary)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = getattr(coarse, op)().values
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    if boundary == "exact":
        with pytest.raises(Refused, match="whole number of windows"):
            reducer.one(data, "mean", windows=[[1, 5, "exact"]])


def test_selections_are_python_slices(reducer):
    rng = np.random.default_rng(SEED + 10)
    data = np.arange(9 * 8 * 7, dtype=np.int32).reshape(9, 8, 7)

    def end():
        return "" if rng.random() < 0.3 else str(rng.integers(-12, 13))

    for _ in range(150):
        parts = []
        for n in data.shape:
            if rng.random() < 0.2:
                parts.append(str(rng.integers(-n, n)))
            else:
                parts.append(f"{end()}:{end()}" + rng.choice(["", ":", ":1", ":2", ":5", ":90"]))
        text = ",".join(parts)
        part = eval(f"data[{text}]")
        got = reducer.one(data, "sum", chunk=chunks(rng, data.shape), selection=text, axes=[])
        np.testing.assert_array_equal(got, part)
        whole = reducer.one(data, "sum", chunk=chunks(rng, data.shape), selection=text)
        np.testing.assert_array_equal(whole, part.sum())
    with pytest.raises(Refused, match="index 9 is out of range for axis 0 of length 9"):
        reducer.one(data, "sum", selection="9")
    with pytest.raises(Refused, match="4 parts"):
        reducer.one(data, "sum", selection="1,1,1,1")
    with pytest.raises(Refused, match="at least 1"):
        reducer.one(data, "sum", selection="::-1")


def test_of_nothing(reducer):
    data = np.ones((3, 4), np.float32)
    empty = dict(selection="2:2")
    assert reducer.one(data, "sum", **empty) == 0
    assert np.isnan(reducer.one(data, "mean", **empty))
    assert reducer.one(data, "count", **empty) == 0
    np.testing.assert_array_equal(reducer.one(data, "sum", axes=[0], **empty), np.zeros(4, np.float32))
    assert reducer.one(data, "sum", axes=[1], **empty).shape == (0,)
    for op in ("min", "argmax"):
        with pytest.raises(Refused):
            reducer.one(data.astype(int), op, **empty)
    assert reducer.one(np.float64(2.5).reshape(()), "sum") == 2.5


def test_min_count(reducer):
    data = np.array([[1, np.nan, np.nan], [2, 3, np.nan]], np.float32)
    for count in range(4):
        got = reducer.one(data, "sum", axes=[0], min_count=count)
        expected = xr.DataArray(data, dims=("t", "y")).sum("t", min_count=count).values
        np.testing.assert_array_equal(got, expected)
