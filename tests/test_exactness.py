"""Sums, means and variances of difficult values are rounded correctly."""

import math

import numpy as np
import pytest
from reference import Moments, agree, dtype, nearest_root, same

RNG = np.random.default_rng(11)
MAX = np.finfo("f8").max
MAX32 = float(np.finfo("f4").max)
TINY = 5e-324


def bits(count):
    """Finite floats of every exponent."""
    raw = RNG.integers(0, 2**64, count, "u8", endpoint=False).view("f8")
    return raw[np.isfinite(raw)]


def cancelling(values):
    both = np.concatenate([values, -values, [2.0**-1000, 3.0]])
    RNG.shuffle(both)
    return both


CASES = {
    "random": RNG.standard_normal(3000),
    "every exponent": bits(2000),
    "cancellation": cancelling(bits(1000)),
    "cancels to nothing": [1e300, 1.0, -1e300, -1.0],
    "subnormal": RNG.integers(1, 2**52, 2000, "u8").view("f8") * 1.0,
    "smallest": [TINY] * 7 + [-TINY] * 2,
    "largest": [MAX, MAX, -MAX, -MAX, MAX],
    "beyond the range": [MAX, MAX, 1.0],
    "below the range": [-MAX] * 3,
    "just within the range": [MAX, 2.0**969],
    "just beyond the range": [MAX, 2.0**970],
    "halfway, to even": [2.0**53, 1.0],
    "halfway, to odd neighbour": [2.0**53 + 2, 1.0],
    "halfway and a hair": [2.0**53, 1.0, TINY],
    "minus zero": [-0.0, -0.0],
    "fill values": [1e20] * 500 + list(RNG.random(500)) + [1e36] * 10,
    "near each other": 1e15 + RNG.random(1000),
    "equal": [0.1] * 1000,
    "huge spread": [1e308, -1e308, 1e-308, 7.0],
    "infinite": [1.0, math.inf, 2.0],
    "minus infinite": [-math.inf, 2.0, MAX, MAX],
    "both infinities": [math.inf, 1.0, -math.inf],
    "NaN": [1.0, math.nan, 2.0],
    "NaN and infinity": [math.inf, math.nan],
}


@pytest.fixture
def ask(grist, layouts):
    """Runs a kernel on a plain and on a striped file, and requires the same answer."""

    def make(values, name, stripe="13B", targets=3):
        paths = layouts(np.asarray(values).astype(dtype(name)).tobytes(), stripe, targets)

        def one(kernel, **params):
            plain, striped = [grist.ask(kernel, path, "--type", name, **params) for path in paths]
            agree(striped, plain)
            return plain

        return one

    return make


@pytest.mark.parametrize("case", CASES)
def test_f64(ask, case):
    values = np.asarray(CASES[case], "f8")
    moments, of, count = Moments(values), ask(values, "f64"), len(values)
    got = of("sum")
    agree(got, {"sum": moments.rounded_sum(), "count": count})
    try:
        fsum = math.fsum(values)
    except (OverflowError, ValueError):
        fsum = math.nan
    if math.isfinite(fsum):
        assert got["sum"] == fsum
    agree(of("mean"), {"mean": moments.mean(), "count": count})
    for ddof in (0, 1):
        var, std = moments.variance(ddof)
        want = {"mean": moments.mean(), "var": var, "std": std, "count": count}
        agree(of("var", ddof=ddof), want)


@pytest.mark.parametrize("case", ["random", "smallest", "largest", "infinite", "NaN"])
def test_f32_is_summed_in_f64(ask, case):
    with np.errstate(over="ignore"):
        values = np.asarray(CASES[case], "f8")
        values = np.sign(values) * np.float32(1e-45) if case == "smallest" else values
        values = np.clip(values, -MAX32, MAX32) if case == "largest" else values
        values = values.astype("f4")
    moments, of = Moments(values), ask(values, "f32")
    agree(of("sum"), {"sum": moments.rounded_sum(), "count": len(values)})
    var, std = moments.variance()
    agree(of("var"), {"mean": moments.mean(), "var": var, "std": std, "count": len(values)})


@pytest.mark.parametrize("name", ["i64", "u64"])
def test_integers_at_their_ends(ask, name):
    info = np.iinfo(dtype(name))
    values = np.array([info.max] * 300 + [info.min] * 299 + [info.max - 1, 7], dtype(name))
    moments, of = Moments(values), ask(values, name, "9B", 4)
    agree(of("sum"), {"sum": moments.total, "count": 601})
    var, std = moments.variance(1)
    agree(of("var", ddof=1), {"mean": moments.mean(), "var": var, "std": std, "count": 601})


def test_integer_variance_where_floats_would_cancel(ask):
    values = np.array([2**62 + d for d in (1, 2, 3, 4, 5)], "i8")
    got = ask(values, "i64")("var")
    assert same(got["var"], 2.0) and same(got["std"], math.sqrt(2.0))


def test_infinities_and_minus_zero_are_extremes(ask):
    of = ask([1.0, math.inf, -math.inf, math.inf], "f64")
    agree(of("minmax"), {"min": -math.inf, "min_index": 2, "max": math.inf, "max_index": 1, "count": 4})
    agree(of("sum"), {"sum": math.nan, "count": 4})


@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0], [3.0, -0.0, 0.0, -1.0, -1.0, 3.0]])
def test_ties_and_zeros_go_to_the_first_as_in_numpy(ask, values):
    array = np.array(values)
    low, high = int(array.argmin()), int(array.argmax())
    want = {"min": values[low], "min_index": low, "max": values[high], "max_index": high}
    agree(ask(values, "f64")("minmax"), {**want, "count": len(values)})


WITH_NAN = np.array([3.0, -1.0, math.nan, 7.5, math.nan, -1.0, 2.0])


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_nan_propagates_by_default(ask, name):
    of = ask(WITH_NAN, name)
    for params in ({}, {"nan": "propagate"}):
        nan = math.nan
        agree(of("sum", **params), {"sum": nan, "count": 7})
        agree(of("mean", **params), {"mean": nan, "count": 7})
        agree(of("var", **params), {"mean": nan, "var": nan, "std": nan, "count": 7})
        agree(of("count", **params), {"count": 7})
        first = int(WITH_NAN.argmin())
        agree(of("min", **params), {"min": nan, "index": first})
        agree(of("max", **params), {"max": nan, "index": first})
        got = of("minmax", **params)
        assert (got["min_index"], got["max_index"]) == (first, first)


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_nan_skipped_counts_as_absent(ask, name):
    of, rest = ask(WITH_NAN, name), WITH_NAN[~np.isnan(WITH_NAN)]
    moments = Moments(rest)
    agree(of("sum", nan="skip"), {"sum": moments.rounded_sum(), "count": 5})
    agree(of("mean", nan="skip"), {"mean": moments.mean(), "count": 5})
    var, std = moments.variance(2)
    want = {"mean": moments.mean(), "var": var, "std": std, "count": 5}
    agree(of("var", nan="skip", ddof=2), want)
    agree(of("count", nan="skip"), {"count": 5})
    got = of("minmax", nan="skip")
    low, high = int(np.nanargmin(WITH_NAN)), int(np.nanargmax(WITH_NAN))
    assert (got["min"], got["min_index"], got["max"], got["max_index"]) == (-1.0, low, 7.5, high)
    counts, edges = np.histogram(rest, 4)
    got = of("histogram", nan="skip", bins=4)
    agree(got, {"edges": edges.tolist(), "counts": counts.tolist()})


def test_values_looked_at_leave_out_what_is_skipped(grist, tmp_path):
    path = tmp_path / "values"
    path.write_bytes(WITH_NAN.tobytes())
    got = grist.ask("minmax", path, "--type", "f64", nan="skip")
    assert got["count"] == 5


def test_nan_as_an_error_names_an_element_that_is_nan(grist, layouts):
    for path in layouts(WITH_NAN.tobytes(), "13B", 3):
        for kernel in ("sum", "mean", "var", "count", "min", "max", "minmax", "histogram"):
            message = grist.refuses(1, "run", kernel, path, "--type", "f64", "--param", "nan=error")
            assert "element 2 is NaN" in message or "element 4 is NaN" in message
            assert "nan=skip" in message
    for kernel in ("sum", "mean", "var", "minmax"):
        how = ("--type", "f64", "--range", "0:16")
        assert grist.ask(kernel, path, *how, nan="error") == grist.ask(kernel, path, *how)


def test_nothing_but_nan(grist, layouts):
    for path in layouts(np.full(5, math.nan).tobytes(), "13B", 2):
        agree(grist.ask("sum", path, "--type", "f64", nan="skip"), {"sum": 0.0, "count": 0})
        assert grist.ask("count", path, "--type", "f64", nan="skip") == {"count": 0}
        for kernel in ("min", "max", "minmax", "mean", "var", "histogram"):
            message = grist.refuses(1, "run", kernel, path, "--type", "f64", "--param", "nan=skip")
            assert kernel in message


def test_histograms_of_what_has_no_ends(grist, tmp_path):
    path = tmp_path / "values"
    for values, word in [(WITH_NAN, "nan=skip"), (np.array([1.0, math.inf]), "range="), (np.array([-MAX, MAX]), "range=")]:
        path.write_bytes(values.tobytes())
        assert word in grist.refuses(1, "run", "histogram", path, "--type", "f64")
        got = grist.ask("histogram", path, "--type", "f64", bins=3, range="-10:10")
        counts, edges = np.histogram(values, 3, (-10, 10))
        agree(got, {"edges": edges.tolist(), "counts": counts.tolist()})


def test_the_reference_itself():
    """A reference that was never compared with anything would prove nothing."""
    from fractions import Fraction

    for x in (2.0, 3.0, 1e300, 5e-324, 1e-300, 0.1, 6.25):
        assert nearest_root(Fraction(x)) == math.sqrt(x)
    assert nearest_root(Fraction(10) ** 700) == math.inf
    moments = Moments(np.array([1.0, 2.0, 4.0]))
    assert moments.rounded_sum() == 7.0 and math.isclose(moments.variance()[0], np.var([1, 2, 4]))
