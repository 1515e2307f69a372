"""The Python package, as a user of NumPy has it: every answer beside NumPy's or an exact one."""

import doctest
import errno
import importlib
import io
import math
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

gm = pytest.importorskip("gristmill", reason="the package is not installed: pip install .")

TIMEOUT = 60  # seconds; a bound on a hang, not a measure of speed
CODES = ["<f8", "<f4", ">f4", ">f8", "<i8", "|u1", ">i2", "<u4"]
HUGE = 1 << 42  # bytes of a sparse file that no test reads to its end


@pytest.fixture(scope="module")
def cluster():
    with gm.up(nodes=3, lanes=1) as nodes:
        yield nodes


@pytest.fixture(params=["plain", "striped", "cluster"])
def place(request, tmp_path):
    """Puts an array or bytes somewhere and gives its name."""
    if request.param == "cluster":
        nodes = request.getfixturevalue("cluster")
        folder = f"{request.node.name.replace('/', '_')}"

    def make(content, name="data"):
        if request.param == "plain":
            path = tmp_path / name
            path.write_bytes(content if isinstance(content, bytes) else content.tobytes())
            return path
        if request.param == "striped":
            url = tmp_path / f"{name}.grist"
            gm.put(content, url, stripe=4096, on=[tmp_path / f"target{n}" for n in range(3)])
            return url
        url = nodes.path(f"{folder}/{name}")
        gm.put(content, url, stripe="4KiB")
        return url

    return make


def sample(code, count=5000):
    rng = np.random.default_rng(7)
    dtype = np.dtype(code)
    if dtype.kind == "f":
        return (rng.normal(size=count) * 10.0 ** rng.integers(-3, 4, count)).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, count, dtype=dtype.newbyteorder("="), endpoint=True).astype(dtype)


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


def test_no_name_of_a_result_hides_another(cluster):
    shown = subprocess.run(
        [sys.executable, "-m", "gristmill", "kernels", "--json"], capture_output=True, check=True, timeout=TIMEOUT
    )
    assert b'"histogram"' in shown.stdout
    taken = {"kernel", "rows", "report", "numerics", "keys", "items", "values", "get"}
    text = b"1 2\n3 4\n"
    gm.put(text, cluster.path("names"))
    gm.put(np.arange(1.0, 4.0), cluster.path("names.f64"))
    for kernel, how in {
        "count": {}, "first": {}, "last": {}, "wc": {}, "sum": {"type": "f64"}, "mean": {"type": "f64"},
        "var": {"type": "f64"}, "min": {"type": "f64"}, "max": {"type": "f64"}, "minmax": {"type": "f64"},
        "histogram": {"type": "f64"}, "lookup": {"type": "f64", "where": "> 0"}, "grep": {"pattern": "1"},
    }.items():
        answer = gm.run(kernel, cluster.path("names.f64" if "type" in how else "names"), **how)
        assert not taken & set(answer), kernel
        for name, value in answer.items():
            np.testing.assert_equal(getattr(answer, name), value)
    assert gm.run("first", cluster.path("names")).first == "1 2"
    gm.put(b"caf\xe9\n", cluster.path("names"))
    assert gm.run("first", cluster.path("names")).first == b"caf\xe9"


def test_where_folds_run_is_told(cluster):
    gm.put(np.arange(100_000.0), cluster.path("where.f64"), stripe="64KiB")
    storage = gm.run("sum", cluster.path("where.f64"), type="f64", place="storage")
    client = gm.run("sum", cluster.path("where.f64"), type="f64", place="client")
    assert storage.sum == client.sum == 99_999 * 50_000
    assert {one["place"] for one in storage.report["places"]} == {"storage"}
    assert {one["place"] for one in client.report["places"]} == {"client"}
    assert storage.report["bytes_to_client"] < 10_000 < 800_000 <= client.report["bytes_to_client"]
    assert storage.report["bytes_not_moved"] > 700_000


# Files


def test_an_open_file_is_read_as_python_reads_files(place):
    content = np.random.default_rng(1).bytes(100_003)
    with gm.open(place(content)) as file, io.BytesIO(content) as wanted:
        assert isinstance(file, io.BufferedReader)
        assert file.readable() and file.seekable() and not file.writable()
        for move, whence in [(0, 0), (4090, 0), (20, 1), (-7, 2), (50_000, 0), (-49_999, 1), (100_003, 0), (5, 2)]:
            assert file.seek(move, whence) == wanted.seek(move, whence) == file.tell()
            assert file.read(10_000) == wanted.read(10_000)
        file.seek(3)
        buffer, array = bytearray(5000), np.empty(1000, dtype="<u4")
        assert file.readinto(buffer) == 5000 and bytes(buffer) == content[3:5003]
        assert file.readinto(array) == 4000 and array.tobytes() == content[5003:9003]
        file.seek(0)
        assert file.read() == content
        with pytest.raises(ValueError):
            file.seek(-1)
    with pytest.raises(ValueError):
        file.read(1)
    with pytest.raises(ValueError):
        file.raw.readinto(bytearray(1))


def test_lines_and_numpy_read_from_an_open_file(cluster):
    values = np.arange(1000.0)
    stored = io.BytesIO()
    np.save(stored, values)
    gm.put(stored.getvalue(), cluster.path("saved.npy"), stripe=4096)
    with gm.open(cluster.path("saved.npy")) as file:
        assert file.name == cluster.path("saved.npy")
        assert np.array_equal(np.load(file), values)
    gm.put(b"one\ntwo\nthree", cluster.path("lines"))
    assert list(gm.open(cluster.path("lines"))) == [b"one\n", b"two\n", b"three"]


def test_a_file_replaced_while_it_is_open_is_stale(cluster):
    gm.put(bytes(100_000), cluster.path("replaced"), stripe=4096)
    with gm.open(cluster.path("replaced"), buffering=1) as file:
        assert file.read(10) == bytes(10)
        gm.put(b"x" * 100_000, cluster.path("replaced"), stripe=4096)
        # The old state may still be there for those who opened it; the new one must never mix in.
        try:
            assert file.read(99_990) == bytes(99_990)
        except gm.Stale:
            pass


@pytest.mark.parametrize(
    "source",
    [
        b"some bytes",
        bytearray(b"some"),
        memoryview(b"0123456789")[::3],
        np.arange(12, dtype=">i4").reshape(3, 4).T,
        np.zeros((0, 3)),
        np.array(5.5),
        np.array([(1, 2.5)], dtype="i4,f8"),
        np.array(["2026-01-01"], dtype="M8[D]"),
        io.BytesIO(bytes(range(256)) * 5000),
        b"",
    ],
    ids=repr,
)
def test_whatever_holds_bytes_can_be_put(cluster, source):
    if isinstance(source, io.BytesIO):
        wanted = source.getvalue()
    else:
        wanted = source.tobytes() if hasattr(source, "tobytes") else bytes(source)
    info = gm.put(source, cluster.path("held"), stripe=4096)
    assert info.length == len(wanted)
    assert gm.get(cluster.path("held")) == wanted


@pytest.mark.parametrize("source", [np.array([object()]), 7, None, io.StringIO("text")], ids=repr)
def test_what_holds_no_bytes_is_refused(cluster, source):
    with pytest.raises((gm.Usage, TypeError)):
        gm.put(source, cluster.path("refused"))
    with pytest.raises(gm.NotFound):
        gm.stat(cluster.path("refused"))


def test_a_source_that_fails_leaves_nothing(cluster):
    class Failing:
        left = 5

        def read(self, size):
            self.left -= 1
            if not self.left:
                raise RuntimeError("the source broke")
            return bytes(size)

    gm.put(b"before", cluster.path("kept"))
    with pytest.raises(RuntimeError, match="the source broke"):
        gm.put(Failing(), cluster.path("kept"))
    assert gm.get(cluster.path("kept")) == b"before"


def test_paths_are_copied_there_and_back(cluster, tmp_path):
    content = np.random.default_rng(2).bytes(3_000_001)
    (tmp_path / "source").write_bytes(content)
    info = gm.put(tmp_path / "source", cluster.path("copies/one"), stripe="64KiB", record=80, on=[2, 0], mode=0o600)
    assert (info.length, info.stripe_unit, info.record) == (len(content), 65_600, 80)
    assert info.targets == (2, 0) and info.mode == 0o600 and info.owner == "anonymous"
    assert abs((datetime.now(timezone.utc) - info.created).total_seconds()) < 600
    assert gm.stat(cluster.path("copies/one")) == info
    assert gm.get(cluster.path("copies/one"), tmp_path / "back") is None
    assert (tmp_path / "back").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "source"]
    assert len(gm.put(tmp_path / "source", cluster.path("copies/two"), targets=1).targets) == 1
    striped = tmp_path / "layout.grist"
    gm.put(tmp_path / "source", striped, on=[tmp_path / "t0", tmp_path / "t1"], stripe="64KiB")
    assert gm.get(striped) == content and gm.stat(striped).stripe_unit == 65_536
    gm.put(striped, cluster.path("copies/three"))
    assert gm.get(cluster.path("copies/three")) == content
    gm.remove(striped)
    assert not striped.exists()


def test_directories_are_listed_and_files_removed(cluster):
    for name in ("list/b", "list/a", "list/under/c"):
        gm.put(name.encode(), cluster.path(name))
    entries = gm.ls(cluster.path("list/"))
    assert [(entry.name, entry.is_dir) for entry in entries] == [("a", False), ("b", False), ("under", True)]
    assert gm.get(entries[0].url) == b"list/a" and entries[0].info == gm.stat(cluster.path("list/a"))
    assert [entry.name for entry in gm.ls(entries[2].url)] == ["c"]
    assert [entry.url for entry in gm.ls(cluster.path("list/b"))] == [cluster.path("list/b")]
    gm.remove(cluster.path("list/a"))
    with pytest.raises(gm.NotFound):
        gm.stat(cluster.path("list/a"))


# Errors


def test_failures_are_the_exceptions_of_python(cluster, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(bytes(20))
    nan = cluster.path("nan.f64")
    gm.put(np.array([1.0, np.nan]), nan)
    refused = [
        (lambda: gm.run("sum", tmp_path / "none", type="f64"), gm.NotFound, FileNotFoundError, "not-found"),
        (lambda: gm.run("sum", cluster.path("none"), type="f64"), gm.NotFound, FileNotFoundError, "not-found"),
        (lambda: gm.open(cluster.path("none")), gm.NotFound, FileNotFoundError, "not-found"),
        (lambda: gm.get(cluster.path("none")), gm.NotFound, OSError, "not-found"),
        (lambda: gm.remove(cluster.path("none")), gm.NotFound, OSError, "not-found"),
        (lambda: gm.put(tmp_path / "none", cluster.path("x")), gm.NotFound, OSError, "not-found"),
        (lambda: gm.run("sum", plain, type="f64"), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("summ", plain), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("sum", plain), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("sum", tmp_path, type="f64"), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, place="moon"), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, place="storage"), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, lanes=0), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, skip=-1), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, skip="1 parsec"), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, range=5), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, timeout=-1), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", plain, big_endian=True), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("sum", plain, type="<f4", big_endian=True), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("wc", "http://a/b"), gm.Usage, ValueError, "usage"),
        (lambda: gm.put(plain, tmp_path / "y.grist"), gm.Usage, ValueError, "usage"),
        (lambda: gm.put(plain, cluster.path("x"), mode=0o7777), gm.Usage, ValueError, "usage"),
        (lambda: gm.put(plain, cluster.path("x"), targets=1, on=[1]), gm.Usage, ValueError, "usage"),
        (lambda: gm.ls(tmp_path), gm.Usage, ValueError, "usage"),
        (lambda: gm.get(nan, tmp_path), gm.Usage, ValueError, "usage"),
        (lambda: gm.run("mean", nan, type="f64", range=(0, 0)), gm.DataError, ArithmeticError, "data"),
        (lambda: gm.run("sum", nan, type="f64", nan="error"), gm.DataError, ArithmeticError, "data"),
    ]
    for call, kind, built_in, name in refused:
        with pytest.raises(kind) as caught:
            call()
        error = caught.value
        assert isinstance(error, gm.GristmillError) and isinstance(error, built_in) and error.kind == name
        assert str(error) and "panicked" not in str(error) and not str(error).startswith("[Errno")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == str(error)


def test_a_node_that_is_not_there_is_unavailable():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(gm.Unavailable) as caught:
        gm.run("sum", f"grist://127.0.0.1:{port}/x", type="f64")
    assert isinstance(caught.value, ConnectionError) and str(port) in str(caught.value)


def test_who_may_not_is_denied(tmp_path, monkeypatch):
    tokens = tmp_path / "tokens"
    tokens.write_text("ada ada-secret-token-0123456789\nbob bob-secret-token-0123456789\n")
    tokens.chmod(0o600)
    with gm.up(nodes=1, tokens=tokens, require_identity=True, lanes=1) as nodes:
        monkeypatch.setenv("GRISTMILL_TOKEN", "ada-secret-token-0123456789")
        gm.put(b"hers", nodes.path("mine"), mode=0o600)
        assert gm.get(nodes.path("mine")) == b"hers" and gm.stat(nodes.path("mine")).owner == "ada"
        # A kept connection must not lend its identity.
        monkeypatch.setenv("GRISTMILL_TOKEN", "bob-secret-token-0123456789")
        for call in (gm.get, gm.remove):
            with pytest.raises(gm.Denied) as caught:
                call(nodes.path("mine"))
            assert isinstance(caught.value, PermissionError)


def test_the_other_exceptions_are_those_of_python_too():
    for kind, built_in, number in [
        (gm.Stale, OSError, errno.ESTALE), (gm.Conflict, FileExistsError, errno.EEXIST),
        (gm.Busy, OSError, errno.EBUSY), (gm.NoSpace, OSError, errno.ENOSPC),
        (gm.TimedOut, TimeoutError, errno.ETIMEDOUT),
    ]:
        error = importlib.import_module("gristmill._errors").of(kind.kind, "a sentence")
        assert type(error) is kind and isinstance(error, built_in)
        assert error.errno == number and str(error) == "a sentence"


# Threads, processes, signals


def test_eight_threads_at_once(cluster):
    arrays = [np.random.default_rng(n).normal(size=20_000) for n in range(8)]

    def work(n):
        url = cluster.path(f"threads/{n}")
        gm.put(arrays[n], url, stripe=4096)
        sums = {gm.run("sum", url, type="f64").sum for _ in range(5)}
        with gm.open(url) as file:
            file.seek(8 * n)
            first = np.frombuffer(file.read(8))[0]
        return sums, first, gm.run("lookup", url, type="f64", where="> 2").rows.value

    with ThreadPoolExecutor(8) as pool:
        for n, (sums, first, rows) in enumerate(pool.map(work, range(8))):
            assert sums == {math.fsum(arrays[n])} and first == arrays[n][n]
            assert rows.tolist() == arrays[n][arrays[n] > 2].tolist()


@pytest.fixture
def huge(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(HUGE)
    return path


def test_other_threads_go_on_and_time_runs_out(huge, tmp_path):
    small = tmp_path / "small"
    small.write_bytes(np.arange(10.0).tobytes())
    caught = []

    def ask():
        try:
            gm.run("sum", huge, type="uint8", timeout=2, lanes=1)
        except gm.TimedOut as error:
            caught.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    # If the interpreter were held, this would come after the other's end.
    assert gm.run("sum", small, type="f64").sum == 45
    assert thread.is_alive()
    thread.join(TIMEOUT)
    assert isinstance(caught[0], TimeoutError) and "2 s" in str(caught[0])


def python(code, *args, **how):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how
    )


INTERRUPTED = """
import sys, gristmill
try:
    gristmill.run("sum", sys.argv[1], type="uint8")
except KeyboardInterrupt:
    print("interrupted")
"""


def until_opened(child, path):
    """Waits until the process is at the file: its request runs."""
    opened = set()
    while str(path) not in opened:
        assert child.poll() is None, "it ended before it opened the file"
        for link in Path(f"/proc/{child.pid}/fd").glob("*"):
            try:
                opened.add(os.readlink(link))
            except OSError:
                pass


def test_ctrl_c_ends_a_fold(huge):
    child = python(INTERRUPTED, huge)
    until_opened(child, huge)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=TIMEOUT) == ("interrupted\n", "")


def test_ctrl_c_ends_waiting_for_a_node():
    # A node that takes the connection and never says anything: without Ctrl-C the request would fail as unavailable.
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIMEOUT)
        child = python(INTERRUPTED, f"grist://127.0.0.1:{server.getsockname()[1]}/x")
        connected, _ = server.accept()
        with connected:
            child.send_signal(signal.SIGINT)
            assert child.communicate(timeout=TIMEOUT) == ("interrupted\n", "")


HALF_PUT = """
import os, signal, sys, gristmill

class Endless:
    reads = 0
    def read(self, size):
        self.reads += 1
        if self.reads == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return bytes(size)

try:
    gristmill.put(Endless(), sys.argv[1], stripe=4096)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_a_put_which_leaves_nothing(cluster):
    gm.put(b"before", cluster.path("half"))
    child = python(HALF_PUT, cluster.path("half"))
    assert child.communicate(timeout=TIMEOUT) == ("interrupted\n", "")
    assert gm.get(cluster.path("half")) == b"before"


def test_a_kept_connection_finds_nodes_that_were_started_again(tmp_path):
    with gm.up(nodes=2, dir=tmp_path / "nodes", lanes=1) as nodes:
        gm.put(np.arange(1000.0), nodes.path("x"), stripe=4096)
        assert gm.run("sum", nodes.path("x"), type="f64").sum == 499_500
        address = nodes.url.removeprefix("grist://").rstrip("/")
    with pytest.raises(gm.Unavailable):
        gm.stat(nodes.path("x"))
    with gm.up(nodes=2, dir=tmp_path / "nodes", listen=address, lanes=1) as again:
        assert again.url == nodes.url
        assert gm.run("sum", again.path("x"), type="f64").sum == 499_500
        assert gm.get(again.path("x")) == np.arange(1000.0).tobytes()


FORKED = """
import os, sys, gristmill
url = sys.argv[1]
file = gristmill.open(url)
before = gristmill.run("sum", url, type="f64").sum, file.read(8)
for _ in range(3):
    child = os.fork()
    if child == 0:
        now = gristmill.run("sum", url, type="f64").sum
        file.seek(0)
        os._exit(0 if (now, file.read(8)) == before else 1)
    assert os.waitpid(child, 0)[1] == 0
assert gristmill.run("sum", url, type="f64").sum == before[0]
nodes = gristmill.up(nodes=1, lanes=1)
child = os.fork()
if child == 0:
    sys.exit(0)  # Runs what is to be done at the end of an interpreter.
assert os.waitpid(child, 0)[1] == 0
gristmill.put(b"still there", nodes.path("x"))
print(gristmill.get(nodes.path("x")).decode())
"""


def test_a_forked_child_makes_its_own_connections(cluster):
    gm.put(np.arange(100_000.0), cluster.path("forked.f64"), stripe=4096)
    child = python(FORKED, cluster.path("forked.f64"))
    assert child.communicate(timeout=TIMEOUT) == ("still there\n", "")


def processes_of(folder):
    """Processes that have this directory among their arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder) in path.read_text():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def test_nodes_end_with_their_block(tmp_path):
    with gm.up(nodes=2, lanes=1) as nodes:
        folder = nodes.dir
        assert len(processes_of(folder)) == 3 and nodes.url in repr(nodes)
        gm.put(b"x", nodes.path("/x"))
    assert processes_of(folder) == [] and not os.path.exists(folder) and "stopped" in repr(nodes)
    nodes.stop()
    # A directory of the user's own stays, and goes on.
    with gm.up(nodes=1, dir=tmp_path / "kept", lanes=1) as nodes:
        gm.put(b"kept", nodes.path("x"))
    with gm.up(nodes=1, dir=tmp_path / "kept", lanes=1) as nodes:
        assert gm.get(nodes.path("x")) == b"kept"
    assert processes_of(tmp_path) == []


def test_nodes_end_with_the_interpreter():
    child = python("import gristmill; nodes = gristmill.up(nodes=1, lanes=1); print(nodes.dir)")
    folder, errors = child.communicate(timeout=TIMEOUT)
    assert errors == "" and processes_of(folder.strip()) == [] and not os.path.exists(folder.strip())


def test_nodes_end_when_the_interpreter_is_killed(tmp_path):
    code = "import sys, gristmill; nodes = gristmill.up(1, sys.argv[1], lanes=1); print(nodes.url, flush=True); input()"
    child = python(code, tmp_path / "killed", stdin=subprocess.PIPE)
    assert child.stdout.readline().startswith("grist://")
    left = [pid for pid in processes_of(tmp_path) if pid != child.pid]
    assert len(left) == 2
    ends = [os.pidfd_open(pid) for pid in left]
    child.kill()
    child.communicate(timeout=TIMEOUT)
    for end in ends:
        assert select.select([end], [], [], TIMEOUT)[0], "a node outlived the interpreter"
        os.close(end)


def test_why_nodes_do_not_start_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(gm.Usage, match="--bogus"):
        gm.up(nodes=1, bogus=True)
    with pytest.raises(gm.GristmillError, match="file"):
        gm.up(nodes=1, dir=tmp_path / "file" / "sub")
    assert processes_of(tmp_path) == []


# The command, and the documentation


def test_the_command_is_the_same(cluster, tmp_path):
    gm.put(np.arange(10.0), cluster.path("ten.f64"))
    script = Path(sys.executable).parent / "gristmill"
    for command in ([sys.executable, "-m", "gristmill"], [str(script)]):
        run = [*command, "run", "sum", cluster.path("ten.f64"), "--type", "f64"]
        done = subprocess.run(run, capture_output=True, text=True, timeout=TIMEOUT)
        assert done.returncode == 0 and done.stdout.split() == ["sum", "45.0", "count", "10"]
        bad = subprocess.run([*command, "run", "summ", "x"], capture_output=True, text=True, timeout=TIMEOUT)
        assert bad.returncode == 2 and bad.stderr.startswith("gristmill: there is no kernel") and not bad.stdout
        version = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=TIMEOUT)
        assert version.stdout == f"gristmill {gm.__version__}\n"


def test_ctrl_c_ends_the_command(huge):
    child = subprocess.Popen(
        [sys.executable, "-m", "gristmill", "bench", str(huge)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until_opened(child, huge)
    child.send_signal(signal.SIGINT)
    assert child.wait(TIMEOUT) == -signal.SIGINT


@pytest.mark.parametrize("name", ["", "._answer", "._cluster", "._dtype", "._errors", "._files", "._open"])
def test_the_examples_give_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(f"gristmill{name}")
    with gm.up(nodes=2, lanes=1) as nodes:
        done = doctest.testmod(module, extraglobs={"cluster": nodes})
    assert done.attempted > 0 and done.failed == 0
