"""Pairs of arrays: ``cov``, ``corr`` and what they are made of, by one request. An element is missing in both arrays if it is
missing in one."""

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

import gristmill as gm

VALID = "(ds.a.notnull() & ds.b.notnull())"
TEXTS = [
    'xr.cov(ds.a, ds.b, "t")', 'xr.corr(ds.a, ds.b, "t")', 'xr.corr(ds.b, ds.a, "t")', 'xr.cov(ds.a, ds.b, "t", ddof=0)',
    'xr.corr(ds.a, ds.b, ["t", "x"])', 'xr.cov(ds.a, ds.b)', 'xr.corr(ds.b, ds.a)',
    f'ds.a.where({VALID}).mean("t")', f'ds.b.where({VALID}).std("t")', f'ds.b.where({VALID}).sum("t")',
    f'ds.a.where({VALID}).count("t")', f'{VALID}.sum("t")', f'ds.a.where({VALID}).var(["t", "x"], ddof=1)',
    f'(ds.a.where({VALID}) * ds.b.where({VALID})).sum("t")', f'ds.a.where({VALID}).mean("t", skipna=False)',
]  # fmt: skip


def dataset(of_a="f8", of_b="f8"):
    """Cells with missing elements, without a pair, with one pair, and with equal elements."""
    rng = np.random.default_rng(4)
    a, b = (rng.normal(size=(25, 6)) for _ in range(2))
    b += a
    a[rng.random(a.shape) < 0.2] = np.nan
    b[rng.random(b.shape) < 0.2] = np.nan
    a[::2, 0], b[1::2, 0] = np.nan, np.nan
    a[:, 1], a[7, 1], b[7, 1] = np.nan, 2.5, 3.5
    a[:, 2], b[:, 2] = 0.1, 7.0
    return xr.Dataset({"a": (("t", "x"), a.astype(of_a)), "b": (("t", "x"), b.astype(of_b))})


def compute(text, ds):
    with np.errstate(all="ignore"):
        return eval(text, {"xr": xr, "ds": ds}).compute()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f4", "f8"), ("f4", "f4")])
@pytest.mark.parametrize("chunks", [None, {"t": 10, "x": 2}])
def test_pairs_are_as_in_memory(tmp_path, text, dtypes, chunks):
    theirs = dataset(*dtypes)
    theirs.to_netcdf(tmp_path / "pairs.nc")
    ours = gm.open_dataset(str(tmp_path / "pairs.nc"), chunks=chunks)
    with gm.set_options(fallback="error" if chunks is None else "read"):
        got = compute(text, ours)
    want = compute(text, theirs)
    assert got.dims == want.dims and got.dtype == want.dtype
    rtol = 3e-6 if "f4" in dtypes else 1e-12
    if want.dims and text.startswith("xr.corr"):
        # Rounding decides whether a column of equal elements has a correlation in memory. Here it has none.
        assert np.isnan(got[2])
        got, want = got.drop_isel(x=2), want.drop_isel(x=2)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_infinity_is_only_in_its_own_cell(tmp_path):
    theirs = dataset()
    theirs.a[3, 4] = np.inf
    theirs.b[3, 4] = 1.0
    theirs.to_netcdf(tmp_path / "pairs.nc")
    ours = gm.open_dataset(str(tmp_path / "pairs.nc"))
    for text in ('xr.cov(ds.a, ds.b, "t")', 'xr.corr(ds.a, ds.b, "t")', f'ds.a.where({VALID}).mean("t")'):
        got, want = compute(text, ours).drop_isel(x=2), compute(text, theirs).drop_isel(x=2)
        np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=text)


def test_a_pair_is_one_request(tmp_path):
    dataset().to_netcdf(tmp_path / "pairs.nc")
    ds = gm.open_dataset(str(tmp_path / "pairs.nc"))
    with gm.set_options(fallback="error"), gm.trace() as trace:
        xr.corr(ds.a, ds.b, "t")
        xr.cov(ds.a, ds.b, "t")
    assert trace.requests == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_large_elements_of_one_array_do_not_stop_the_mean_of_the_other(tmp_path):
    theirs = dataset()
    theirs.b[3] = 1e200
    theirs.to_netcdf(tmp_path / "pairs.nc")
    ours = gm.open_dataset(str(tmp_path / "pairs.nc"))
    for text in (f'ds.a.where({VALID}).mean("t")', f'ds.a.where({VALID}).count("t")', f'{VALID}.sum("t")'):
        np.testing.assert_allclose(compute(text, ours), compute(text, theirs), rtol=1e-12, err_msg=text)


def test_a_single_number_of_a_pair_is_exact(tmp_path):
    a, b = np.array([1e100, 1.0, -1e100]), np.ones(3)
    xr.Dataset({"a": ("t", a), "b": ("t", b)}).to_netcdf(tmp_path / "pairs.nc")
    ds = gm.open_dataset(str(tmp_path / "pairs.nc"))
    assert float(ds.a.where(ds.a.notnull() & ds.b.notnull()).sum()) == 1.0


def test_statistics_of_a_member_are_one_request(tmp_path):
    dataset().to_netcdf(tmp_path / "pairs.nc")
    ds = gm.open_dataset(str(tmp_path / "pairs.nc"))
    member = ds.a.where(ds.a.notnull() & ds.b.notnull())
    with gm.set_options(fallback="error"), gm.trace() as trace:
        member.gristmill.stats("t", ["mean", "std", "min", "max"])
    assert trace.requests == 1


def test_squared_distances_of_both_columns_are_exact(grist, tmp_path):
    rng = np.random.default_rng(9)
    a, b = 1e10 + rng.normal(size=(40, 3)) * 1e-5, rng.normal(size=(40, 3)) * 1e-30
    path = tmp_path / "far.nc"
    xr.Dataset({"a": (("t", "x"), a), "b": (("t", "x"), b)}).to_netcdf(path)
    how = ("--var", "a", "--with", "y=b", "--expr", "x * y", "--axes", "t")
    found = grist.answer("comoments", path, *how)["result"]
    for name, columns in (("x_m2", a), ("y_m2", b)):
        for got, column in zip(found[name]["values"], columns.T):
            values = [Fraction(float(v)) for v in column]
            exact = sum(v * v for v in values) - sum(values) ** 2 / len(values)
            assert got == float(exact), name
