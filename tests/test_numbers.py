"""Numeric kernels over every type, byte order, selection and layout, compared with exact references and NumPy."""

import json
import math

import numpy as np
import pytest
from reference import FLOATS, INTEGERS, Moments, agree, dtype, histogram, nearest, same, select

STRIPES = [("13B", 3), ("7B", 5), ("64KiB", 4), ("1000B", 2), ("1B", 1)]
KINDS = [(name, big) for name in INTEGERS + FLOATS for big in (False, True)]


def sample(name, count, seed):
    """Values over the whole range of the type, with its extremes."""
    rng = np.random.default_rng(seed)
    kind = dtype(name)
    if name in INTEGERS:
        info = np.iinfo(kind)
        values = rng.integers(info.min, info.max, count, kind, endpoint=True)
        values[: count // 3] = rng.integers(0, 7, count // 3)
        values[[count // 2, count // 2 + 5]] = info.max, info.min
        return values
    values = rng.standard_normal(count) * 2.0 ** rng.integers(-60, 60, count)
    return np.concatenate([values, -values[::-1]]).astype(kind)[:count]


def flags(name, big, skip=0, record=None, window=None):
    out = ["--type", name]
    out += ["--big-endian"] if big else []
    out += ["--skip", skip] if skip else []
    out += ["--record", record] if record else []
    if window:
        out += ["--range", f"{window[0]}:{'' if window[1] is None else window[1]}"]
    return out


def extremes(values, first):
    low, high = int(np.argmin(values)), int(np.argmax(values))
    return {
        "min": values[low].item(),
        "min_index": first + low,
        "max": values[high].item(),
        "max_index": first + high,
        "count": len(values),
    }


def check_all(grist, path, data, name, big, **chosen):
    """Compares every numeric kernel on one selection of a file with this content."""
    values, first = select(data, dtype(name, big), **chosen)
    assert len(values) > 3
    how = flags(name, big, **chosen)
    moments, count = Moments(values), len(values)

    def ask(kernel, **params):
        return grist.ask(kernel, path, *how, **params)

    agree(ask("count"), {"count": count})
    agree(ask("sum"), {"sum": moments.rounded_sum(), "count": count})
    agree(ask("mean"), {"mean": moments.mean(), "count": count})
    var, std = moments.variance(1)
    want = {"mean": moments.mean(), "var": var, "std": std, "count": count}
    agree(ask("var", ddof=1), want)
    ends = extremes(values, first)
    agree(ask("minmax"), ends)
    agree(ask("min"), {"min": ends["min"], "index": ends["min_index"]})
    agree(ask("max"), {"max": ends["max"], "index": ends["max_index"]})
    agree(ask("first"), {"first": values[0].item(), "index": first})
    agree(ask("last"), {"last": values[-1].item(), "index": first + count - 1})
    got = ask("histogram", bins=7)
    edges = np.histogram_bin_edges(values.astype("f8"), 7).tolist()
    agree(got, {"edges": edges, "counts": histogram(values, edges)})


@pytest.mark.parametrize(("name", "big"), KINDS)
def test_whole_plain_and_striped(grist, layouts, name, big):
    data = sample(name, 1500, 1).astype(dtype(name, big)).tobytes()
    stripe, targets = STRIPES[(2 * KINDS.index((name, big)) + big) % 4]
    for path in layouts(data, stripe, targets):
        check_all(grist, path, data, name, big)


@pytest.mark.parametrize(("name", "big"), [k for k in KINDS if k[0] in ("i16", "u64", "f32", "f64")])
def test_selections(grist, layouts, name, big):
    size = dtype(name).itemsize
    record, skip = 5 * size, 11
    data = b"header.byte" + sample(name, 5 * 120, 2).astype(dtype(name, big)).tobytes()
    stripe, targets = STRIPES[(KINDS.index((name, big)) + 1) % 5]
    # Ranges begin or end inside a record, inside an element, before the first record and at the end.
    windows = [(0, 600), (skip + record + 1, 7 * record), (skip + 3 * record, 2 * record), (500, None)]
    plain, striped = layouts(data, stripe, targets)
    for n, window in enumerate(windows):
        path = (plain, striped)[n % 2]
        check_all(grist, path, data, name, big, skip=skip, record=record, window=window)
    check_all(grist, striped, data, name, big, skip=skip)


def test_ranges_that_tile_a_file_count_every_record_once(grist, layouts):
    data = bytes(3) + sample("i32", 900, 3).tobytes()
    cuts = [0, 1, 3, 4, 100, 101, 115, 1999, 2000, len(data) - 1, len(data)]
    for path in layouts(data, "13B", 4):
        sums, counts = [], []
        for start, end in zip(cuts, cuts[1:]):
            how = flags("i32", False, skip=3, record=12, window=(start, end - start))
            got = grist.ask("sum", path, *how)
            sums.append(got["sum"])
            counts.append(got["count"])
        assert sum(counts) == 900
        assert sum(sums) == sum(sample("i32", 900, 3).tolist())


@pytest.mark.parametrize(("stripe", "targets"), [("1MiB", 5), ("64KiB", 3)])
def test_many_blocks_of_many_stripes(grist, layouts, stripe, targets):
    values = np.random.default_rng(4).lognormal(0, 10, 800_000)
    values[::7] *= -1
    data, moments = values.tobytes(), Moments(values)
    answers = []
    for path in layouts(data, stripe, targets):
        for lanes in (1, 2, 5):
            got = grist.ask("sum", path, "--type", "f64", "--lanes", lanes)
            agree(got, {"sum": moments.rounded_sum(), "count": len(values)})
        agree(grist.ask("minmax", path, "--type", "f64"), extremes(values, 0))
        answers.append(grist.ask("var", path, "--type", "f64"))
        counts, edges = np.histogram(values, 50)
        got = grist.ask("histogram", path, "--type", "f64", bins=50)
        agree(got, {"edges": edges.tolist(), "counts": counts.tolist()})
    var, std = moments.variance()
    assert answers[0] == answers[1]
    agree(answers[0], {"mean": moments.mean(), "var": var, "std": std, "count": len(values)})
    assert math.isclose(var, float(np.var(values)), rel_tol=1e-9)


def test_every_striping_gives_the_same_bits(grist, striped, tmp_path):
    values = sample("f64", 700, 5)
    plain = tmp_path / "plain"
    plain.write_bytes(values.tobytes())
    kernels = ("sum", "var", "minmax", "last")
    want = {kernel: grist.ask(kernel, plain, "--type", "f64") for kernel in kernels}
    for targets in range(1, 6):
        path = striped(plain, ["3B", "8B", "13B", "1KiB", "64KiB"][targets - 1], targets)
        for kernel in kernels:
            assert grist.ask(kernel, path, "--type", "f64") == want[kernel], (kernel, targets)


def test_histograms_are_those_of_numpy(grist, tmp_path):
    rng = np.random.default_rng(6)
    path = tmp_path / "values"
    cases = [
        (rng.standard_normal(3000), 10, None),
        (rng.standard_normal(3000), 1, None),
        (rng.standard_normal(3000), 777, (-1.5, 2.25)),
        (np.round(rng.random(3000), 1), 10, (0.0, 1.0)),
        (np.linspace(0, 1, 2001), 100, None),
        (np.full(10, 3.25), 4, None),
        (rng.random(3000) * 1e-310, 30, None),
        (rng.standard_normal(3000) * 1e305, 13, None),
        (np.array([0.0, 1e16, 1e16 - 2, 3.0]), 7, None),
        (rng.integers(-9, 9, 3000), 18, None),
        (rng.integers(0, 255, 3000).astype("u1"), 256, (0, 256)),
        (rng.integers(-(2**52), 2**52, 3000), 33, None),
        (rng.integers(0, 2, 100).astype("u8"), 5, (-1, 5)),
    ]
    for values, bins, ends in cases:
        path.write_bytes(values.tobytes())
        name = values.dtype.kind + str(8 * values.dtype.itemsize)
        params = {"range": f"{ends[0]}:{ends[1]}"} if ends else {}
        got = grist.ask("histogram", path, "--type", name, bins=bins, **params)
        counts, edges = np.histogram(values, bins, ends)
        agree(got, {"edges": edges.tolist(), "counts": counts.tolist()})


@pytest.mark.parametrize("values", [[0.0, 5e-324, 1e-323], [1e300] * 3, [1.0, 1.0 + 2**-52]])
def test_bins_too_narrow_for_floats_are_refused_as_by_numpy(grist, tmp_path, values):
    with pytest.raises(ValueError, match="Too many bins"):
        np.histogram(np.array(values), 10)
    path = tmp_path / "narrow"
    path.write_bytes(np.array(values).tobytes())
    assert "bins" in grist.refuses(1, "run", "histogram", path, "--type", "f64")


def test_bins_of_integers_that_no_float_holds(grist, tmp_path):
    values = np.array([2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3, 2**62 + 1, 2**62 - 1], "i8")
    path = tmp_path / "large"
    path.write_bytes(values.tobytes())
    got = grist.ask("histogram", path, "--type", "i64", bins=4, range="9007199254740992:4611686018427387904")
    assert got["counts"] == histogram(values, [float(edge) for edge in got["edges"]])
    assert sum(got["counts"]) == 5


@pytest.mark.parametrize("name", INTEGERS + FLOATS)
def test_empty_files(grist, layouts, name):
    for path in layouts(b"", "13B", 2):
        how = ("--type", name)
        assert same(grist.ask("sum", path, *how)["sum"], 0.0 if name in FLOATS else 0)
        assert grist.ask("count", path, *how) == {"count": 0}
        for kernel in ("min", "max", "minmax", "mean", "var", "histogram", "first", "last"):
            message = grist.refuses(1, "run", kernel, path, *how)
            assert "empty selection" in message and kernel in message


def test_too_few_values_for_a_variance(grist, tmp_path):
    path = tmp_path / "one"
    path.write_bytes(np.array([2.5]).tobytes())
    agree(
        grist.ask("var", path, "--type", "f64"), {"mean": 2.5, "var": 0.0, "std": 0.0, "count": 1}
    )
    message = grist.refuses(1, "run", "var", path, "--type", "f64", "--param", "ddof=1")
    assert "ddof + 1" in message


def test_integers_beyond_the_reach_of_json_are_strings(grist, tmp_path):
    path = tmp_path / "large"
    for values, kind in [
        (np.full(1000, 2**64 - 1, "u8"), "u64"),
        (np.full(1000, -(2**63), "i8"), "i64"),
        (np.array([2**53 + 1], "u8"), "u64"),
        (np.array([2**53], "u8"), "u64"),
        (np.array([-(2**53), -1], "i8"), "i64"),
    ]:
        path.write_bytes(values.tobytes())
        total = sum(values.tolist())
        raw = grist.answer("sum", path, "--type", kind)["result"]["sum"]
        assert raw == (str(total) if abs(total) > 2**53 else total)
        assert grist.ask("mean", path, "--type", kind)["mean"] == nearest(Moments(values).sum / len(values))
        for key in ("min", "max"):
            raw = grist.answer("minmax", path, "--type", kind)["result"][key]
            want = int(getattr(values, key)())
            assert raw == (str(want) if abs(want) > 2**53 else want)
        assert f"sum    {total}\n".encode() in grist.ok("run", "sum", path, "--type", kind)


def test_numbers_for_people_read_back_as_the_same_numbers(grist, tmp_path):
    path = tmp_path / "values"
    for value in (0.1, 1e300, 5e-324, -0.0, 1e16, 123456789.125):
        path.write_bytes(np.array([value]).tobytes())
        shown = dict(
            line.split(None, 1) for line in grist.ok("run", "first", path, "--type", "f64").decode().splitlines()
        )
        assert same(float(shown["first"]), value)
        raw = grist.ok("run", "first", path, "--type", "f64", "--json")
        assert same(float(json.loads(raw)["result"]["first"]), value)
