"""Kernels from Python. Every answer is compared with that of NumPy or with an exact one."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from python_package import cluster, gm, place, sample  # noqa: F401

CODES = ["<f8", "<f4", ">f4", ">f8", "<i8", "|u1", ">i2", "<u4"]


def exact(values):
    return [Fraction(value.item()) for value in values]


@pytest.mark.parametrize("code", CODES)
def test_numbers_are_those_of_numpy(place, code):
    values = sample(code)
    file = place(values)
    fractions = exact(values)
    mean = sum(fractions) / len(fractions)
    var = sum((x - mean) ** 2 for x in fractions) / (len(fractions) - 1)

    total = gm.run("sum", file, type=values.dtype)
    assert total.count == len(values) and total.numerics == "exact" and total.rows is None
    if values.dtype.kind == "f":
        assert total.sum == math.fsum(values) and type(total.sum) is np.float64
    else:
        assert total.sum == sum(map(int, values)) and type(total.sum) is int
    assert gm.run("mean", file, type=code).mean == float(mean)
    spread = gm.run("var", file, type=code, ddof=1)
    assert spread["var"] == float(var)
    assert spread.std == pytest.approx(values.astype(float).std(ddof=1), rel=1e-12)
    ends = gm.run("minmax", file, type=code)
    assert (ends.min, ends.max) == (values.min(), values.max())
    assert (ends.min_index, ends.max_index) == (values.argmin(), values.argmax())
    histogram = gm.run("histogram", file, type=code, bins=7)
    assert histogram.counts.dtype == np.int64 and histogram.edges.dtype == np.float64
    assert histogram.counts.sum() == len(values)
    if values.dtype.kind == "f":
        counts, edges = np.histogram(values.astype(float), bins=7)
        assert histogram.counts.tolist() == counts.tolist()
        assert histogram.edges.tolist() == edges.tolist()


@pytest.mark.parametrize("code", CODES)
def test_rows_of_lookup_are_arrays(place, code):
    values = sample(code)
    bound = np.quantile(values.astype(float), 0.9)
    answer = gm.run("lookup", place(values), type=code, where=f"> {float(bound)!r}")
    wanted = np.flatnonzero(values.astype(float) > bound)
    assert answer.count == len(answer.rows) == len(wanted) > 0
    assert answer.rows.index.dtype == np.uint64 and answer.rows.index.tolist() == wanted.tolist()
    assert answer.rows.value.dtype == values.dtype.newbyteorder("=")
    assert answer.rows.value.tolist() == values[wanted].tolist()
    assert next(iter(answer.rows)) == (wanted[0], values[wanted[0]])
    none = gm.run("lookup", place(values, "again"), type=code, where="> 1e300")
    assert len(none.rows) == 0 and none.rows.value.dtype == values.dtype.newbyteorder("=")


def test_rows_of_grep_are_lines(place):
    lines = [f"line {n} {'x' * (n % 90)}".encode() for n in range(2000)] + [b"caf\xe9 7"]
    answer = gm.run("grep", place(b"\n".join(lines)), pattern="7$|7 ")
    starts = np.cumsum([0] + [len(line) + 1 for line in lines])
    wanted = [n for n, line in enumerate(lines) if b"7 " in line or line.endswith(b"7")]
    assert answer.count == len(wanted)
    assert answer.rows.offset.dtype == np.uint64
    assert answer.rows.offset.tolist() == starts[wanted].tolist()
    assert answer.rows.line == [lines[n] for n in wanted]
    assert gm.run("grep", place(b"a\nA\n", "two"), pattern="a", ignore_case=True, count_only=True)["count"] == 2


def test_integers_are_exact_however_large(place):
    values = np.full(10_000, np.iinfo(np.int64).max)
    assert gm.run("sum", place(values), type=np.int64).sum == 10_000 * (2**63 - 1)
    largest = np.array([2**64 - 1], dtype=np.uint64)
    assert gm.run("max", place(largest, "one"), type="uint64").max == 2**64 - 1


def test_records_headers_and_ranges(place):
    table = np.arange(3000.0).reshape(-1, 10).astype(">f4")
    file = place(b"h" * 80 + table.tobytes())
    asked = dict(skip=80, record=40)
    assert gm.run("sum", file, type=">f4", **asked).sum == table.sum(dtype=float)
    assert gm.run("sum", file, type="f32", big_endian=True, **asked).sum == table.sum(dtype=float)
    part = gm.run("sum", file, type=">f4", range=(80 + 400, "400B"), **asked)
    assert part.sum == table[10:20].sum(dtype=float)
    rest = gm.run("sum", file, type=">f4", range=(80 + 400, None), lanes=1, **asked)
    assert rest.sum == table[10:].sum(dtype=float)
    assert gm.run("count", file, record=np.int64(40), skip="80B").count == 300


def test_parameters_that_share_a_name_are_never_guessed(place):
    values = sample("<f8")
    file = place(values)
    with pytest.raises(gm.Usage, match="params"):
        gm.run("histogram", file, type="f64", range=(0, 1))
    counts, edges = np.histogram(values, bins=4, range=(-1.5, 2))
    answer = gm.run("histogram", file, type="f64", bins=4, params={"range": (-1.5, 2)})
    assert answer.counts.tolist() == counts.tolist() and answer.edges.tolist() == edges.tolist()
    first = gm.run("histogram", file, type="f64", range=(0, 800), params={"range": (np.float64(-1.5), 2)}, bins=4)
    assert first.counts.tolist() == np.histogram(values[:100], bins=4, range=(-1.5, 2))[0].tolist()
    with pytest.raises(gm.Usage, match="twice"):
        gm.run("histogram", file, type="f64", bins=4, params={"bins": 4})


@pytest.mark.parametrize("given", ["i8", "u8", "c16", "f2", "nonsense", object, "datetime64[s]", np.dtype("f8,f8")])
def test_types_that_could_be_wrong_are_refused(tmp_path, given):
    (tmp_path / "data").write_bytes(bytes(64))
    with pytest.raises(gm.Usage, match="type="):
        gm.run("sum", tmp_path / "data", type=given)


def test_an_answer_is_a_mapping(place):
    answer = gm.run("minmax", place(np.array([3.0, -1.0])), type=float)
    assert dict(answer) == {"min": -1.0, "min_index": 1, "max": 3.0, "max_index": 0, "count": 2}
    assert "max" in answer and answer.get("sum") is None and len(answer) == 5
    assert repr(answer) == "Answer(min=-1.0, min_index=1, max=3.0, max_index=0, count=2)"
    with pytest.raises(AttributeError, match="min_index"):
        answer.sum
    with pytest.raises(KeyError):
        answer["sum"]
    again = pickle.loads(pickle.dumps(answer))
    assert dict(again) == dict(answer) and again.report == answer.report
    report = answer.report
    assert report["bytes_read"] == 16 and report["rounds"] == 1 and report["elapsed_seconds"] >= 0
    assert sum(one["bytes"] for one in report["places"]) == 16
    assert {"bytes_moved", "bytes_to_client", "bytes_not_moved"} <= set(report)


def test_where_folds_run_is_told(cluster):
    gm.put(np.arange(100_000.0), cluster.path("where.f64"), stripe="64KiB")
    storage = gm.run("sum", cluster.path("where.f64"), type="f64", place="storage")
    client = gm.run("sum", cluster.path("where.f64"), type="f64", place="client")
    assert storage.sum == client.sum == 99_999 * 50_000
    assert {one["place"] for one in storage.report["places"]} == {"storage"}
    assert {one["place"] for one in client.report["places"]} == {"client"}
    assert storage.report["bytes_to_client"] < 10_000 < 800_000 <= client.report["bytes_to_client"]
    assert storage.report["bytes_not_moved"] > 700_000
    assert storage.report["lanes"] is None and client.report["lanes"] >= 1


def test_parameters_are_lists_and_arrays_too(tmp_path):
    values = np.arange(11.0)
    values.tofile(tmp_path / "a.f64")
    for q in ([0.1, 0.5], (0.1, 0.5), np.array([0.1, 0.5]), "0.1,0.5"):
        assert gm.run("quantile", tmp_path / "a.f64", type="f64", q=q).quantiles.tolist() == [1.0, 5.0]
    for ends in ((0, 4), [0, 4], np.array([0, 4]), "0:4"):
        answer = gm.run("histogram", tmp_path / "a.f64", type="f64", bins=2, params={"range": ends})
        assert answer.counts.tolist() == [2, 3]
    for wrong in ([[0.1]], {"a": 1}, None):
        with pytest.raises(gm.Usage, match="not text, a number, a boolean or a list"):
            gm.run("quantile", tmp_path / "a.f64", type="f64", q=wrong)
    with pytest.raises(gm.Usage, match=r"give \(low, high\)"):
        gm.run("histogram", tmp_path / "a.f64", type="f64", bins=2, params={"range": (1, 2, 3)})
