"""Variances and covariances of grids, compared with fractions. Each cell keeps the digits of its own elements, whatever the other
cells contain."""

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

import gristmill as gm

EPS = 2.0**-52


def comoment(x, y):
    """The exact sum of the products of distances from the means."""
    x, y = [Fraction(float(v)) for v in x], [Fraction(float(v)) for v in y]
    return sum(a * b for a, b in zip(x, y)) - sum(x) * sum(y) / len(x)


def columns(rng, n=40):
    """Cells of all kinds: far from zero and close together, of ordinary size, huge, tiny and constant."""
    base = rng.normal(size=(n, 7))
    return np.stack(
        [
            4e15 + np.round(base[:, 0] * 4) / 2,
            4294967293.9 + base[:, 1],
            1e10 + base[:, 2] * 1e-5,
            base[:, 3],
            base[:, 4] * 9.96921e36,
            base[:, 5] * 1e-30,
            np.full(n, 0.1),
        ],
        axis=1,
    )


@pytest.fixture
def stored(tmp_path):
    rng = np.random.default_rng(11)
    a, b = columns(rng), columns(rng)[:, ::-1].copy()
    path = str(tmp_path / "a.nc")
    xr.Dataset({"a": (("t", "x"), a), "b": (("t", "x"), b)}).to_netcdf(path)
    return path, a, b


@pytest.mark.parametrize("chunks", [None, {}, {"t": 7, "x": 3}])
def test_variances_of_grids_have_all_digits(stored, chunks):
    path, a, _ = stored
    ds = gm.open_dataset(path, chunks=chunks)
    for ddof in (0, 1):
        want = np.array([float(comoment(c, c) / (len(c) - ddof)) for c in a.T])
        # dask subtracts a rounded mean, as NumPy does.
        rounded = 0 if chunks is None else np.spacing(abs(a).max(0)) ** 2
        for got, exact in ((ds.a.var("t", ddof=ddof), want), (ds.a.std("t", ddof=ddof) ** 2, want)):
            assert np.all(abs(got.values - exact) <= 8 * EPS * exact + rounded), (got.values, exact)


@pytest.mark.parametrize("chunks", [None, {}])
def test_covariances_of_grids_are_bounded_by_their_own_elements(stored, chunks):
    path, a, b = stored
    ds = gm.open_dataset(path, chunks=chunks)
    got = xr.cov(ds.a, ds.b, "t").values
    corr = xr.corr(ds.a, ds.b, "t").values
    for k in range(a.shape[1]):
        exact = comoment(a[:, k], b[:, k]) / (len(a) - 1)
        spread = [float(comoment(c[:, k], c[:, k])) for c in (a, b)]
        # The rounding of both means may leave half a unit of each.
        units = [np.spacing(abs(c[:, k]).max()) for c in (a, b)]
        bound = 16 * EPS * np.sqrt(spread[0] * spread[1]) / (len(a) - 1) + 2 * units[0] * units[1]
        assert abs(Fraction(float(got[k])) - exact) <= bound, (k, got[k], float(exact))
        if min(spread) > 0:
            want = float(comoment(a[:, k], b[:, k])) / np.sqrt(spread[0] * spread[1])
            rounded = sum(len(a) * unit**2 / m2 for unit, m2 in zip(units, spread))
            rounded += 2 * len(a) * units[0] * units[1] / np.sqrt(spread[0] * spread[1])
            assert abs(corr[k] - want) <= 64 * EPS + rounded, k


def test_an_ordinary_cell_beside_a_fill_value_that_is_not_masked(tmp_path):
    path = str(tmp_path / "fill.nc")
    a = np.array([[1.0, 2, 3], [9.96921e36] * 3, [1, 2, 4]])
    b = np.array([[1.0, 2, 4], [1, 2, 4], [9.96921e36, 1, 2]])
    for dtype in ("f8", "f4"):
        whole = xr.Dataset({"a": (("y", "x"), a.astype(dtype)), "b": (("y", "x"), b.astype(dtype))})
        whole.to_netcdf(path)
        ds = gm.open_dataset(path)
        rtol = 1e-12 if dtype == "f8" else 1e-6
        np.testing.assert_allclose(xr.cov(ds.a, ds.b, "x"), xr.cov(whole.a, whole.b, "x"), rtol=rtol)
        got, want = xr.corr(ds.a, ds.b, "x").values, xr.corr(whole.a, whole.b, "x").values
        # In f4 the squares of the large value overflow in NumPy, but not here.
        np.testing.assert_allclose(got[0], want[0], rtol=rtol)


def test_distances_from_a_climate_keep_their_digits(tmp_path):
    """Sums of distances from numbers near the mean. The sum of the elements is rounded, but its distance must be exact."""
    rng = np.random.default_rng(5)
    a = 1e10 + rng.normal(size=(50, 4)) * 1e-3
    climate = a.mean(0) + 1.0
    path = str(tmp_path / "c.nc")
    xr.Dataset({"a": (("t", "x"), a)}).to_netcdf(path)
    far = gm.open_dataset(path).a - xr.DataArray(climate, dims="x")
    exact = [[Fraction(float(v)) - Fraction(float(c)) for v in col] for col, c in zip(a.T, climate)]
    np.testing.assert_allclose(far.sum("t"), [float(sum(col)) for col in exact], rtol=4 * EPS)
    squares = [float(sum(d * d for d in col)) for col in exact]
    np.testing.assert_allclose((far**2).sum("t"), squares, rtol=8 * EPS)
