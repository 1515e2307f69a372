"""lookup: rows and counts of the values that meet a condition, compared with NumPy and exact comparisons."""

import json
import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from reference import dtype, same

COMPARISONS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


def rows_of(result):
    """(index, value) of JSON rows. Large integers and numbers that are not finite are strings there."""
    out = []
    for row in result["rows"]:
        assert list(row) == ["index", "value"]
        value = row["value"]
        if isinstance(value, str):
            value = float(value) if value in ("NaN", "Infinity", "-Infinity") else int(value)
        out.append((row["index"], value))
    return out


def check(grist, path, values, name, where, mask, *more, first=0):
    """Compares the rows, the printed rows and the count of one condition."""
    want = [(first + int(i), values[i].item()) for i in np.flatnonzero(mask)]
    result = grist.ask("lookup", path, "--type", name, *more, where=where)
    got = rows_of(result)
    assert result["count"] == len(want)
    assert [i for i, _ in got] == [i for i, _ in want]
    assert all(same(a, b) for (_, a), (_, b) in zip(got, want))
    counted = grist.ask("lookup", path, "--type", name, *more, where=where, count_only="true")
    assert counted == {"count": len(want)}
    text = grist.ok("run", "lookup", path, "--type", name, *more, "--param", f"where={where}").decode()
    shown = [line.split("\t") for line in text.splitlines()]
    assert [int(index) for index, _ in shown] == [i for i, _ in want]
    read = float if name in ("f32", "f64") else int
    assert all(same(read(a), b) for (_, a), (_, b) in zip(shown, want))


@pytest.mark.parametrize("sign", COMPARISONS)
@pytest.mark.parametrize("name", ["f64", "f32", "i16", "u8"])
def test_comparisons_with_numpy(grist, layouts, sign, name):
    rng = np.random.default_rng(20)
    values = np.round(rng.standard_normal(1500) * 20).clip(-100, 100)
    values = (np.abs(values) if name == "u8" else values).astype(dtype(name))
    for path in layouts(values.tobytes(), "13B", 3):
        check(grist, path, values, name, f"{sign} 12", COMPARISONS[sign](values, 12))
    check(grist, path, values, name, f"{sign}-3.5", COMPARISONS[sign](values.astype("f8"), -3.5))


@pytest.mark.parametrize("big", [False, True])
def test_ranges(grist, layouts, big):
    values = np.random.default_rng(21).standard_normal(2000)
    values[::50] = 1.5
    values[::75] = -0.5
    more = ["--big-endian"] if big else []
    for path in layouts(values.astype(dtype("f64", big)).tobytes(), "1000B", 4):
        for where, mask in [
            ("-0.5..1.5", (values >= -0.5) & (values < 1.5)),
            ("-0.5..=1.5", (values >= -0.5) & (values <= 1.5)),
            ("> -0.5 and < 1.5", (values > -0.5) & (values < 1.5)),
            (">= -0.5 and <= 1.5", (values >= -0.5) & (values <= 1.5)),
            ("<1 and >= 0.25", (values >= 0.25) & (values < 1)),
            ("1.5..-0.5", np.zeros(len(values), bool)),
            ("> 2 and < 1", np.zeros(len(values), bool)),
        ]:
            check(grist, path, values, "f64", where, mask, *more)


@pytest.mark.parametrize("name", ["i64", "u64"])
def test_integers_are_compared_exactly_beyond_2_to_the_53(grist, layouts, name):
    base = 2**53 if name == "i64" else 2**64 - 20
    numbers = [base + d for d in range(-3, 12)] + [np.iinfo(dtype(name)).min, np.iinfo(dtype(name)).max]
    values = np.array(numbers, dtype(name))
    for path in layouts(values.tobytes(), "5B", 3):
        for sign, compare in COMPARISONS.items():
            for literal in (base, base + 1, base + 5):
                mask = np.array([compare(x, literal) for x in values.tolist()])
                check(grist, path, values, name, f"{sign} {literal}", mask)
    for sign, compare in COMPARISONS.items():
        for literal in ("9007199254740993.5", "-0.5", "1e300", "-1e300", str(2**70), "-1", "inf", "-inf"):
            exact = math.inf if literal == "inf" else -math.inf if literal == "-inf" else Fraction(literal)
            want = sum(compare(x, exact) for x in values.tolist())
            got = grist.ask("lookup", path, "--type", name, where=f"{sign} {literal}", count_only="true")
            # A literal with a fraction may be rounded to the nearest f64 first.
            rounded = sum(compare(x, float(literal)) for x in values.tolist())
            assert got["count"] in ({want} if exact == float(literal) else {want, rounded}), (sign, literal)


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_nan_meets_only_not_equal(grist, layouts, name):
    values = np.array([1.0, math.nan, -math.inf, math.inf, -0.0, 0.0, math.nan, 2.0], dtype(name))
    for path in layouts(values.tobytes(), "3B", 4):
        for sign, compare in COMPARISONS.items():
            for literal in ("0", "1", "-0.0", "inf", "-inf", "1e400"):
                check(grist, path, values, name, f"{sign} {literal}", compare(values.astype("f8"), float(literal)))


def test_f32_is_widened_not_the_literal_narrowed(grist, tmp_path):
    values = np.array([0.1, 0.2, 0.3], "f4")
    path = tmp_path / "values"
    path.write_bytes(values.tobytes())
    for sign, compare in COMPARISONS.items():
        for literal in ("0.1", "0.2", "0.30000001192092896"):
            check(grist, path, values, "f32", f"{sign} {literal}", compare(values.astype("f8"), float(literal)))


def test_selected_rows_are_numbered_from_the_first_record(grist, layouts):
    values = np.arange(600, dtype="i4")
    data = b"hdr" + values.tobytes()
    for path in layouts(data, "10B", 5):
        more = ["--skip", 3, "--record", 24, "--range", "100:1000"]
        # Record number 5 is the first one that starts at byte 100 or later: 3 + 5 * 24 = 123.
        chosen = [i for i in range(100) if 100 <= 3 + 24 * i < 1100]
        part = values[6 * chosen[0] : 6 * (chosen[-1] + 1)]
        check(grist, path, part, "i32", ">= 0", part >= 0, *more, first=6 * chosen[0])


@pytest.mark.parametrize("lanes", [1, 4])
def test_many_rows_come_in_order(grist, layouts, lanes):
    values = np.random.default_rng(22).integers(0, 1000, 300_000).astype("u2")
    mask = values > 300
    for path in layouts(values.tobytes(), "4097B", 5):
        text = grist.ok(
            "run", "lookup", path, "--type", "u16", "--lanes", lanes, "--param", "where=> 300"
        )
        got = np.array(text.split(), "i8").reshape(-1, 2)
        assert np.array_equal(got[:, 0], np.flatnonzero(mask))
        assert np.array_equal(got[:, 1], values[mask])


def test_nothing_found(grist, layouts):
    for path in layouts(np.zeros(100).tobytes(), "13B", 2):
        how = ("run", "lookup", path, "--type", "f64", "--param", "where=> 1")
        assert grist.ok(*how) == b""
        result = json.loads(grist.ok(*how, "--json"))["result"]
        assert result == {"rows": [], "count": 0}
    for path in layouts(b"", "1KiB", 2):
        assert grist.ok("run", "lookup", path, "--type", "f64", "--param", "where=> 1") == b""


@pytest.mark.parametrize("where", ["3.5", "", "> x", "== nan", ">> 3", "> 1 or < 2", "1..x", "=3", "> 1 and", "!= "])
def test_conditions_that_make_no_sense(grist, tmp_path, where):
    path = tmp_path / "values"
    path.write_bytes(bytes(80))
    message = grist.refuses(2, "run", "lookup", path, "--type", "f64", "--param", f"where={where}")
    assert "where" in message


@pytest.mark.parametrize("name", ["f64", "f32", "i32", "u8"])
@pytest.mark.parametrize(
    "parts",
    [
        [(">", 1), ("!=", 5)],
        [("!=", 1), ("<", 5)],
        [("==", 1), ("<", 5)],
        [("!=", 1), ("!=", 7)],
        [("!=", 1), ("!=", 1.0), ("!=", 2.5)],
        [(">=", 0), ("!=", 0), ("!=", 9), ("<", 9), ("!=", 300)],
        [("!=", 3), ("==", 3)],
    ],
    ids=str,
)
def test_values_that_are_left_out(grist, tmp_path, name, parts):
    values = np.random.default_rng(4).integers(0, 12, 700).astype(dtype(name))
    if name[0] == "f":
        values[::41] = np.nan
        values[1::97] = -0.0
    (tmp_path / "values").write_bytes(values.tobytes())
    mask = np.all([COMPARISONS[sign](values.astype("f8"), number) for sign, number in parts], axis=0)
    where = " and ".join(f"{sign} {number}" for sign, number in parts)
    check(grist, "values", values, name, where, mask)


def test_more_values_than_can_be_left_out(grist, tmp_path):
    (tmp_path / "values").write_bytes(np.arange(20.0).tobytes())
    where = " and ".join(f"!= {n}" for n in range(12))
    said = grist.refuses(2, "run", "lookup", "values", "--type", "f64", "--param", f"where={where}")
    assert "more than 8 values" in said
