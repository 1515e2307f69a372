"""Expressions compared with NumPy 2: the type and every value."""

import numpy as np
import pytest

from arrays import Reducer, Refused, ulps

TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
SAME = {
    "where": np.where, "isnan": np.isnan, "isfinite": np.isfinite, "clip": np.clip, "abs": np.abs, "sqrt": np.sqrt,
    "exp": np.exp, "log": np.log, "log10": np.log10, "min": np.minimum, "max": np.maximum, "floor": np.floor,
    "ceil": np.ceil, "round": np.round, "nan": np.nan, "inf": np.inf, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64,
}
EXACT = (
    "x + 1", "x - 7", "x * 3", "x / 3", "x // 3", "x % 3", "x // -4", "x % -4.5", "x // 0.7", "2 - x", "100 // x", "100 % x",
    "x / 0", "x // 0", "x % 0", "-x", "+x", "x ** 2", "x ** 0", "abs(x)", "x + 2.5", "x * 1e3", "x + x", "x * x - x",
    "x > 3", "x <= 3", "x == 4", "x != 4.5", "(x > 1) & (x < 5)", "(x > 5) | ~(x >= 1)", "where(x > 2, x, 0)",
    "where(x > 2, x, 0.5)", "where(x > 2, 1, 0)", "where(isnan(x), -1, x)", "isnan(x)", "isfinite(x)", "clip(x, 2, 5)",
    "min(x, 3)", "max(x, 3.5)", "min(x, x * 2)", "x + f32(1)", "x + f64(1)", "f32(x)", "f64(x)", "i64(x > 2)", "x + i8(1)",
    "x + u8(1)", "x * i32(2)", "x + i64(1)", "x < u64(3)", "x < i64(3)", "x == 2 ** 3", "x * (1 / 3)", "(x > 2) + (x > 3)",
    "x - 0.1 * 3",
)
NEAR = ("exp(x / 10)", "log(x)", "log10(x)", "x ** 0.5", "x ** 1.5", "sqrt(x)", "x ** -2.0", "x ** 3.0")


@pytest.fixture(scope="module")
def reducer(tmp_path_factory):
    reducer = Reducer(tmp_path_factory.mktemp("arrays"))
    yield reducer
    reducer.close()


def data_of(dtype):
    rng = np.random.default_rng(5)
    if dtype.startswith("float"):
        data = np.concatenate([rng.normal(0, 10, 40), [0.0, -0.0, 1, 3, 4, 4.5, 2.5, np.nan, np.inf, -np.inf]])
        return data.astype(dtype)
    info = np.iinfo(dtype)
    return np.concatenate([rng.integers(info.min, info.max, 40, dtype, True), np.arange(10).astype(dtype)])


def evaluated(reducer, data, text):
    """Evaluates an expression for each element, as a maximum over no axes. Booleans become 0 and 1."""
    got = reducer.one(data, "max", axes=[], skipna=False, expr=text, chunk=[7])
    return got


def numpy_says(data, text):
    with np.errstate(all="ignore"):
        return eval(text, {**SAME, "x": data})


@pytest.mark.parametrize("dtype", TYPES)
def test_what_is_exact_is_numpys(reducer, dtype):
    data = data_of(dtype)
    for text in EXACT:
        if dtype.startswith("uint") and text == "where(isnan(x), -1, x)":
            # NumPy wraps -1 to 255 only here.
            with pytest.raises(Refused, match="out of the range"):
                evaluated(reducer, data, text)
            continue
        try:
            expected = numpy_says(data, text)
        except OverflowError:
            with pytest.raises(Refused, match="out of the range"):
                evaluated(reducer, data, text)
            continue
        got = evaluated(reducer, data, text)
        assert got.dtype == expected.dtype, (text, got.dtype, expected.dtype)
        np.testing.assert_array_equal(got, expected, err_msg=text)


@pytest.mark.parametrize("dtype", ("float32", "float64", "int32", "int64", "int16"))
def test_functions_are_within_two_ulp_of_numpys(reducer, dtype):
    data = data_of(dtype)
    if dtype.startswith("int"):
        data = abs(data // 1000) + 1
    for text in NEAR:
        expected = numpy_says(data, text)
        got = evaluated(reducer, data, text)
        assert got.dtype == expected.dtype, text
        distance = ulps(got, expected)
        assert distance <= 2, (text, distance)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_rounding(reducer, dtype):
    data = np.array([0.5, 1.5, -0.5, -2.5, 2.4, np.nan, np.inf, 1e30], dtype)
    for text in ("round(x)", "floor(x)", "ceil(x)"):
        np.testing.assert_array_equal(evaluated(reducer, data, text), numpy_says(data, text))


def test_casts_within_range_are_numpys(reducer):
    data = np.array([-100.9, -0.5, 0.5, 99.99])
    for name in ("i8", "i16", "i32", "i64", "f32"):
        got = evaluated(reducer, data, f"{name}(x)")
        np.testing.assert_array_equal(got, data.astype(SAME[name]))
    data = np.array([-129, 300, 2**31], np.int64)
    for name in ("i8", "u8", "i16", "u32", "i32"):
        np.testing.assert_array_equal(evaluated(reducer, data, f"{name}(x)"), data.astype(SAME[name]))


def test_an_expression_before_a_reduction(reducer):
    rng = np.random.default_rng(6)
    data = rng.normal(280, 10, (30, 40)).astype(np.float32)
    got = reducer.one(data, "mean", chunk=[7, 11], axes=[0], expr="where(x > 273.15, x - 273.15, nan)")
    kept = np.where(data > np.float32(273.15), data - np.float32(273.15), np.float32(np.nan))
    np.testing.assert_allclose(got, np.nanmean(kept.astype(float), axis=0), rtol=1e-6)
    days = reducer.one(data, "sum", chunk=[7, 11], axes=[0], expr="x > 285")
    assert days.dtype == np.int64
    np.testing.assert_array_equal(days, (data > 285).sum(axis=0))


@pytest.mark.parametrize("text, place, why", [
    ("x +", 4, "missing"), ("x + y", 5, "'y' is not known"), ("sin(x)", 1, "no function"), ("x << 2", 4, "missing"),
    ("1 < x < 2", 7, "chained"), ("where(x)", 1, "3 arguments"), ("__import__('os')", 1, "no function"),
])
def test_mistakes_are_told_with_their_place(reducer, text, place, why):
    with pytest.raises(Refused) as refused:
        reducer.one(np.ones(3), "sum", expr=text)
    assert f"at character {place}:" in str(refused.value) and why in str(refused.value)
