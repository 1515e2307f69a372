"""median, quantile, top and unique compared with NumPy."""

import numpy as np
import pytest

TYPES = {"i8": "i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "u8": "u1", "u16": "<u2", "u32": "<u4", "u64": "<u8"}
TYPES |= {"f32": "<f4", "f64": "<f8"}


def data(dtype, count, seed=5):
    """Values over the whole range of a type, with ties."""
    dtype, rng = np.dtype(TYPES[dtype]), np.random.default_rng(seed)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, count, dtype, endpoint=True)
        values[::3] = rng.integers(0, 7, len(values[::3]))
        return values
    values = (rng.normal(0, 1, count) * 10.0 ** rng.integers(-20, 20, count)).astype(dtype)
    values[::5] = rng.integers(-3, 4, len(values[::5]))
    return values


@pytest.mark.parametrize("count", [1, 2, 1000, 1001])
@pytest.mark.parametrize("dtype", TYPES)
def test_median(grist, tmp_path, dtype, count):
    values = data(dtype, count)
    values.tofile(tmp_path / "values")
    result = grist.ask("median", "values", "--type", dtype)
    middle = np.sort(values)[(count - 1) // 2 : count // 2 + 1].astype("f8")
    assert result == {"median": middle.sum() / len(middle), "count": count}
    if dtype in ("f64", "f32", "i16"):
        assert result["median"] == np.median(values.astype("f8"))


@pytest.mark.parametrize("method", ["linear", "lower", "higher"])
@pytest.mark.parametrize("dtype", ["f64", "f32", "i32", "u8"])
def test_quantiles(grist, tmp_path, dtype, method):
    values, shares = data(dtype, 777), [0, 0.05, 1 / 3, 0.5, 0.95, 1]
    values.tofile(tmp_path / "values")
    result = grist.ask("quantile", "values", "--type", dtype, q=",".join(map(repr, shares)), method=method)
    theirs = np.quantile(values.astype("f8"), shares, method=method)
    if method == "linear":
        np.testing.assert_allclose(result["quantiles"], theirs, rtol=1e-14)
    else:
        assert result["quantiles"] == theirs.tolist()


def test_quantiles_of_a_file_on_many_targets(grist, tmp_path):
    data("f64", 10_000).tofile(tmp_path / "values")
    plain = grist.ask("quantile", "values", "--type", "f64", q="0.1,0.5,0.9")
    grist.ok("put", "values", "striped.grist", "--on", "a,b,c", "--stripe", "100")
    assert grist.ask("quantile", "striped.grist", "--type", "f64", q="0.1,0.5,0.9") == plain


def test_nan_among_the_values(grist, tmp_path):
    values = data("f64", 101)
    values[[3, 50]] = np.nan
    values.tofile(tmp_path / "values")
    assert np.isnan(grist.ask("median", "values", "--type", "f64")["median"])
    skipped = grist.ask("median", "values", "--type", "f64", nan="skip")
    assert skipped == {"median": np.nanmedian(values), "count": 99}
    assert "element 3" in grist.refuses(1, "run", "median", "values", "--type", "f64", "--param", "nan=error")


def test_infinities_and_the_ends_of_the_range(grist, tmp_path):
    np.array([-np.inf, 1.0, np.inf, np.inf]).tofile(tmp_path / "values")
    assert grist.ask("median", "values", "--type", "f64")["median"] == np.inf
    np.array([1.7e308, 1.6e308]).tofile(tmp_path / "values")
    assert grist.ask("median", "values", "--type", "f64")["median"] == 1.7e308 / 2 + 1.6e308 / 2
    np.array([-np.inf, np.inf]).tofile(tmp_path / "values")
    assert np.isnan(grist.ask("median", "values", "--type", "f64")["median"])


@pytest.mark.parametrize("q", ["1.5", "-0.1", "x", "", ",".join(["0.5"] * 17)])
def test_shares_that_are_none(grist, tmp_path, q):
    data("f64", 10).tofile(tmp_path / "values")
    assert "from 0 to 1" in grist.refuses(2, "run", "quantile", "values", "--type", "f64", "--param", f"q={q}")


@pytest.mark.parametrize("kernel", ["median", "quantile"])
def test_no_values(grist, tmp_path, kernel):
    (tmp_path / "values").write_bytes(b"")
    given = ["--param", "q=0.5"] if kernel == "quantile" else []
    assert "empty" in grist.refuses(1, "run", kernel, "values", "--type", "f64", *given)


@pytest.mark.parametrize("which", ["largest", "smallest"])
@pytest.mark.parametrize("k", [1, 7, 5000])
@pytest.mark.parametrize("dtype", ["f64", "i64", "u8"])
def test_top(grist, tmp_path, dtype, k, which):
    values = data(dtype, 1000)
    values.tofile(tmp_path / "values")
    result = grist.ask("top", "values", "--type", dtype, k=k, which=which)
    rank = values if which == "smallest" else (-values if dtype == "f64" else ~values)
    order = np.argsort(rank, kind="stable")[:k]
    assert result == {"values": values[order].tolist(), "indices": order.tolist()}


def test_top_passes_nan_over(grist, tmp_path):
    np.array([1.0, np.nan, 3.0]).tofile(tmp_path / "values")
    assert grist.ask("top", "values", "--type", "f64", k=5) == {"values": [3, 1], "indices": [2, 0]}


@pytest.mark.parametrize("dtype", ["f64", "i64", "u8", "f32"])
def test_unique(grist, tmp_path, dtype):
    values = data(dtype, 3000)
    values.tofile(tmp_path / "values")
    result = grist.ask("unique", "values", "--type", dtype)
    theirs, counts = np.unique(values, return_counts=True)
    assert result == {"values": theirs.tolist(), "counts": counts.tolist(), "distinct": len(theirs)}


def test_more_different_values_than_the_bound_are_an_error_not_a_guess(grist, tmp_path):
    np.arange(100, dtype="<f8").tofile(tmp_path / "values")
    assert grist.ask("unique", "values", "--type", "f64", max=100)["distinct"] == 100
    said = grist.refuses(1, "run", "unique", "values", "--type", "f64", "--param", "max=99")
    assert "more than max=99" in said and "raise max" in said


def test_zeros_of_both_signs_are_one_value_and_so_are_nan(grist, tmp_path):
    np.array([0.0, -0.0, np.nan, -np.nan, 1.0]).tofile(tmp_path / "values")
    result = grist.ask("unique", "values", "--type", "f64")
    assert result["counts"] == [2, 1, 2] and result["values"][:2] == [0, 1] and np.isnan(result["values"][2])
    assert grist.ask("unique", "values", "--type", "f64", nan="skip")["counts"] == [2, 1]


@pytest.mark.parametrize("values", [[1.0, np.nan], [np.nan, 1.0, np.nan], [np.nan, np.nan, 1.0]], ids=str)
def test_a_nan_is_one_of_the_different_values(grist, tmp_path, values):
    (tmp_path / "values").write_bytes(np.array(values).tobytes())
    assert grist.ask("unique", "values", "--type", "f64", max=2)["distinct"] == 2
    assert grist.ask("unique", "values", "--type", "f64", max=1, nan="skip")["distinct"] == 1
    assert "max=1" in grist.refuses(1, "run", "unique", "values", "--type", "f64", "--param", "max=1")


@pytest.mark.parametrize("dtype", ["i64", "u64"])
def test_medians_of_large_integers_are_rounded_once(grist, tmp_path, dtype):
    rng = np.random.default_rng(64)
    ends = np.iinfo(np.int64 if dtype == "i64" else np.uint64)
    for _ in range(50):
        values = rng.integers(ends.min, ends.max, 6, dtype="i8" if dtype == "i64" else "u8", endpoint=True)
        (tmp_path / "values").write_bytes(values.tobytes())
        low, high = sorted(values.tolist())[2:4]
        # Python divides integers and rounds to the nearest float.
        assert grist.ask("median", "values", "--type", dtype)["median"] == (low + high) / 2
        assert grist.ask("quantile", "values", "--type", dtype, q="0.5")["quantiles"] == [(low + high) / 2]
