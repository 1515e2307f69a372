"""Kernels over files of a cluster give the bytes that they give over the plain file, wherever folds run."""

import json
import random

import numpy as np
import pytest
from cluster import Up

KIB = 1 << 10
PLACES = ("storage", "client", "auto")


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=4)


class Pair:
    """The same bytes as a plain file and on the cluster."""

    def __init__(self, up, folder):
        self.up, self.folder, self.made = up, folder, 0

    def store(self, content, *args):
        self.made += 1
        plain = self.folder / f"plain{self.made}"
        plain.write_bytes(content)
        url = self.up.url(f"/pairs/{self.folder.name}/{self.made}")
        self.up.grist.ok("put", plain, url, *args)
        return plain, url

    def same(self, files, kernel, *args, places=PLACES):
        """The answers, or refusals, are the same; gives the plain one."""
        plain, url = files
        here = self.up.grist("run", kernel, plain, "--json", *args)
        for place in places:
            there = self.up.grist("run", kernel, url, "--json", "--place", place, *args)
            about = (kernel, args, place, there.stderr)
            assert there.returncode == here.returncode, about
            if here.returncode == 0:
                assert result(there.stdout) == result(here.stdout), about
            else:
                assert said(there.stderr, url) == said(here.stderr, str(plain)), about
        return result(here.stdout) if here.returncode == 0 else here.stderr.decode()

    def report(self, url, kernel, *args):
        return json.loads(self.up.grist.ok("run", kernel, url, "--json", *args))["report"]


def result(stdout: bytes) -> bytes:
    """The answer without the report on how it was found."""
    head, mark, _ = stdout.rpartition(b',"report":{')
    assert mark, stdout[:500]
    json.loads(head + b"}")
    return head


def said(stderr: bytes, name: str) -> str:
    """An error without the file's name in it."""
    text = stderr.decode().removeprefix("gristmill: ")
    path = "/" + name.split("://")[1].split("/", 1)[1] if "://" in name else name
    return text.replace(name, "FILE").replace(path, "FILE")


@pytest.fixture
def pair(up, tmp_path):
    return Pair(up, tmp_path)


def test_every_kernel_is_tried_here(up):
    names = {kernel["name"] for kernel in json.loads(up.grist.ok("kernels", "--json"))}
    assert names == {name for name, *_ in NUMERIC} | {name for name, *_ in TEXT}


NUMERIC = [
    ("count",), ("count", "nan=skip"), ("first",), ("last",), ("histogram", "bins=7"),
    ("histogram", "bins=64", "range=-1:1"), ("lookup", "where=> 1.5"), ("lookup", "where=-0.01..=0.01"),
    ("lookup", "where=> 0", "count_only=true"), ("max",), ("min",), ("minmax",), ("mean",), ("sum",),
    ("sum", "nan=skip"), ("var",), ("var", "ddof=1"),
]  # fmt: skip
TEXT = [
    ("count",), ("first",), ("last",), ("wc",), ("grep", "pattern=[a-c]{3}"),
    ("grep", "pattern=A", "ignore_case=true", "count_only=true"), ("grep", "pattern=a.b", "fixed=true"),
    ("grep", "pattern=^$"),
]  # fmt: skip


def params(given):
    return [word for param in given for word in ("--param", param)]


# In stripes of a few bytes files are small: with bigger ones nodes would move more than a plain read, and refuse.
LAYOUTS = [
    (401, ("--stripe", "13B")),
    (3001, ("--stripe", "13B", "--targets", "1")),
    (90_001, ("--stripe", "64KiB")),
    (90_001, ("--stripe", "64KiB", "--targets", "2")),
    (90_001, ("--stripe", "64KiB", "--on", "3,1,0")),
]


@pytest.mark.parametrize("count, layout", LAYOUTS)
def test_numbers(pair, count, layout):
    values = np.random.default_rng(count).normal(size=count)
    files = pair.store(values.tobytes(), *layout)
    for kernel, *given in NUMERIC:
        pair.same(files, kernel, "--type", "f64", *params(given))


@pytest.mark.parametrize("dtype", ["i8", "u16", "i32", "u64", "f32"])
def test_every_width(pair, dtype):
    rng = np.random.default_rng(3)
    if dtype == "f32":
        values = rng.normal(size=5000).astype("f4")
    else:
        bounds = np.iinfo(dtype[0] + str(int(dtype[1:]) // 8))
        values = rng.integers(bounds.min, bounds.max, 5000, bounds.dtype, endpoint=True)
    files = pair.store(values.tobytes(), "--stripe", "1027B")
    swapped = pair.store(values.byteswap().tobytes(), "--stripe", "1027B", "--targets", "3")
    for kernel, *given in (("sum",), ("minmax",), ("var",), ("lookup", "where=> 100"), ("histogram",)):
        right = pair.same(files, kernel, "--type", dtype, *params(given))
        other = pair.same(swapped, kernel, "--type", dtype, "--big-endian", *params(given))
        assert right == other


def test_records_of_80_bytes_over_stripes_of_64_kib(pair):
    # Son's case: stripes end within records.
    values = np.random.default_rng(4).normal(size=(20_000, 10))
    loose = pair.store(values.tobytes(), "--stripe", "64KiB")
    fitted = pair.store(values.tobytes(), "--stripe", "64KiB", "--record", "80")
    for files in (loose, fitted):
        for kernel, *given in (("sum",), ("minmax",), ("lookup", "where=> 4"), ("histogram",), ("last",)):
            pair.same(files, kernel, "--type", "f64", "--record", "80", *params(given))
        for kernel, *given in (("count",), ("grep", "pattern=aa")):
            pair.same(files, kernel, "--record", "80", *params(given))
    args = ("--type", "f64", "--record", "80", "--place", "storage")
    assert pair.report(fitted[1], "sum", *args)["bytes_moved"] == 0
    crossing = pair.report(loose[1], "sum", *args)["bytes_moved"]
    # At most one record reaches over the end of each stripe.
    assert 0 < crossing < 80 * (len(values.tobytes()) // 65_536 + 1)


@pytest.mark.parametrize(
    "count, layout", [(400, ("--stripe", "13B")), (4000, ("--stripe", "1000B", "--targets", "3"))]
)
def test_parts_of_a_file(pair, count, layout):
    values = np.random.default_rng(5).normal(size=count)
    files = pair.store(b"header!" + values.tobytes() + b"tai", *layout)
    end = 8 * count
    ranges = ("0:", "0:1", "1:7", "7:8", "8:8", "100:2500", f"{end - 1}:", f"{end - 1000}:99999", "40000:", "0:0")
    skip = ("--skip", "7")
    for part in ranges:
        for kernel in ("sum", "minmax", "first", "last", "count"):
            pair.same(files, kernel, "--type", "f64", *skip, "--range", part, places=("storage", "client"))
    pair.same(files, "sum", "--type", "f64", *skip, "--record", "24")
    pair.same(files, "lookup", "--type", "f64", *skip, "--range", "900:1000", *params(["where=> 0"]))
    pair.same(files, "sum", "--type", "f64", "--skip", "99999")
    text = pair.store(b"0123456\n" * (count // 3), *layout)
    for part in ranges:
        pair.same(text, "grep", "--range", part, *params(["pattern=3"]), places=("storage", "client"))
        pair.same(text, "wc", "--range", part, places=("storage", "client"))


def lines_of(rng, size, longest) -> bytes:
    """Random lines, some far longer than a stripe, and no newline at the end."""
    out = bytearray()
    while len(out) < size:
        length = rng.choice([0, 1, 12, 13, 14, 80, rng.randrange(longest)])
        out += bytes(rng.choice(b"abcAB \t\xff\x00\r") for _ in range(length)) + b"\n"
    return bytes(out + b"abc and no newline")


@pytest.mark.parametrize(
    "size, longest, layout",
    [
        (1200, 300, ("--stripe", "13B")),
        (4000, 500, ("--stripe", "13B", "--targets", "1")),
        (150, 100, ("--stripe", "1B", "--targets", "2")),
        (400_000, 50_000, ("--stripe", "4KiB")),
        (1_000_000, 300_000, ("--stripe", "64KiB", "--targets", "3")),
    ],
)
def test_text(pair, size, longest, layout):
    files = pair.store(lines_of(random.Random(size), size, longest), *layout)
    for kernel, *given in TEXT:
        pair.same(files, kernel, *params(given))


@pytest.mark.parametrize("content", [b"", b"\n", b"x", b"\n\n\n", b"one line\n", b"a\r\nb\r\n"])
def test_little_text(pair, content):
    for stripe in ("1B", "64KiB"):
        files = pair.store(content, "--stripe", stripe)
        for kernel, *given in TEXT:
            pair.same(files, kernel, *params(given))


def test_empty_files_of_numbers(pair):
    files = pair.store(b"")
    for kernel, *given in NUMERIC:
        pair.same(files, kernel, "--type", "f64", *params(given))


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1.7976931348623157e308, 1e308, 1.0]


def test_numbers_that_are_special(pair):
    rng = random.Random(6)
    for kinds in (SPECIAL[:2], SPECIAL[:3], SPECIAL[:4], SPECIAL, SPECIAL[:2] + SPECIAL[5:]):
        values = np.array([rng.choice(kinds) for _ in range(2000)])
        files = pair.store(values.tobytes(), "--stripe", "24B")
        for kernel, *given in NUMERIC:
            if kernel != "lookup":
                nans = ("nan=propagate", "nan=skip", "nan=error") if kernel not in ("first", "last") else ()
                for nan in nans or ("",):
                    others = [word for word in given if not word.startswith("nan=")]
                    pair.same(
                        files, kernel, "--type", "f64", *params([*others, *filter(None, [nan])]),
                        places=("storage", "client"),
                    )  # fmt: skip
            else:
                pair.same(files, kernel, "--type", "f64", *params(given))


def test_an_error_names_the_element_that_it_names_locally(pair):
    values = np.zeros(50_000)
    values[[777, 40_000, 49_999]] = np.nan
    for layout in (("--stripe", "64B"), ("--stripe", "64KiB"), ("--stripe", "1KiB", "--on", "3,2,1")):
        files = pair.store(values.tobytes(), *layout)
        for kernel in ("sum", "minmax", "mean"):
            message = pair.same(files, kernel, "--type", "f64", *params(["nan=error"]))
            assert "777" in message, message


def test_a_line_that_is_too_long(pair):
    files = pair.store(b"short\n" * 1000 + b"x" * 100_000 + b"\nshort\n", "--stripe", "4KiB")
    message = pair.same(files, "grep", "--max-record", "50KiB", *params(["pattern=y"]))
    assert "6000" in message, message


def test_the_answer_to_a_person(up, pair):
    values = np.arange(1000.0)
    plain, url = pair.store(values.tobytes(), "--stripe", "1KiB")
    for kernel, *given in (("sum",), ("minmax",), ("lookup", "where=> 990"), ("histogram", "bins=30")):
        args = ("--type", "f64", *params(given))
        assert up.grist.ok("run", kernel, url, *args) == up.grist.ok("run", kernel, plain, *args)


def test_the_report_of_an_aligned_sum(pair):
    length = 8 * 500_000
    _, url = pair.store(np.ones(500_000).tobytes(), "--stripe", "64KiB")
    storage = pair.report(url, "sum", "--type", "f64", "--place", "storage")
    assert storage["bytes_read"] == length
    assert storage["bytes_moved"] == 0
    assert 0 < storage["bytes_to_client"] < 64 * KIB
    assert storage["bytes_not_moved"] == length - storage["bytes_to_client"]
    assert [place["place"] for place in storage["places"]] == ["storage"] * 4
    assert sum(place["records"] for place in storage["places"]) == 500_000
    assert sum(place["bytes"] for place in storage["places"]) == length
    client = pair.report(url, "sum", "--type", "f64", "--place", "client")
    assert client["bytes_read"] == length
    assert client["bytes_to_client"] >= length
    assert client["bytes_moved"] == 0
    assert client["bytes_not_moved"] == 0
    assert {place["place"] for place in client["places"]} == {"client"}
    chosen = pair.report(url, "sum", "--type", "f64")
    assert {place["place"] for place in chosen["places"]} == {"storage"}


def test_bytes_between_nodes_are_counted(pair):
    # Every record reaches over into a stripe of the next node.
    values = np.random.default_rng(7).normal(size=64 * 1024)
    plain, url = pair.store(values.tobytes(), "--stripe", "4092B")
    report = pair.report(url, "sum", "--type", "f64", "--place", "storage")
    stripes = -(-values.nbytes // 4092)
    assert stripes // 2 * 4 <= report["bytes_moved"] <= stripes * 8
    assert report["messages"] > 0
    assert report["bytes_to_client"] < 64 * KIB
    text = pair.store(b"some words in a line\n" * 50_000, "--stripe", "64KiB")
    for kernel, *given in (("wc",), ("grep", "pattern=words", "count_only=true")):
        # Lines are joined where stripes meet: their ends travel in the partial results.
        report = pair.report(text[1], kernel, "--place", "storage", *params(given))
        assert report["bytes_moved"] == 0 and report["bytes_to_client"] < 64 * KIB
    rows = pair.report(text[1], "grep", "--place", "storage", *params(["pattern=words"]))
    assert rows["bytes_to_client"] >= 50_000 * len("some words in a line")
    assert rows["bytes_moved"] > 0  # the ends of lines, which their owners need to show them


def test_explanations_name_the_place_and_what_the_other_would_move(up, pair):
    _, url = pair.store(np.ones(500_000).tobytes(), "--stripe", "64KiB")
    for place, words in (
        ("storage", ("place: storage", "storage would move", "a plain read would move 3.81 MiB to the client")),
        ("client", ("place: client", "a plain read would move 3.81 MiB", "storage would move 0 B between nodes")),
        ("auto", ("place: storage", "0 B between nodes", "3.81 MiB")),
    ):
        done = up.grist("run", "sum", url, "--type", "f64", "--place", place, "--explain", "--json")
        assert done.returncode == 0
        text = done.stderr.decode()
        assert text.count("\n") == 1, text
        for word in words:
            assert word in text, text


def test_records_far_longer_than_the_stripes(pair):
    values = np.random.default_rng(8).normal(size=4 << 17)
    for stripe in ("4KiB", "5000B"):
        files = pair.store(values.tobytes(), "--stripe", stripe)
        args = ("--type", "f64", "--record", "1MiB")
        for kernel, *given in (("sum",), ("max",), ("lookup", "where=> 4")):
            pair.same(files, kernel, *args, *params(given))
        # The owner of a record pulls the rest of it; that is still less than a plain read.
        report = pair.report(files[1], "sum", *args, "--place", "storage")
        assert values.nbytes // 2 < report["bytes_moved"] < values.nbytes


def test_stripes_too_small_for_storage_are_read_by_the_client(up, pair):
    # Every stripe gives an end of a line, or of a word, to be joined: more than the text itself.
    files = plain, url = pair.store(b"some words in a line\n" * 1000, "--stripe", "13B")
    for kernel, *given in (("wc",), ("grep", "pattern=words")):
        message = up.grist.refuses(2, "run", kernel, url, *params(given), "--place", "storage")
        assert "--stripe" in message and "--place" in message, message
        pair.same(files, kernel, *params(given), places=("client", "auto"))
    done = up.grist("run", "wc", url, "--explain", "--json")
    assert b"place: client" in done.stderr, done.stderr
    report = json.loads(done.stdout)["report"]
    assert {place["place"] for place in report["places"]} == {"client"}


@pytest.mark.parametrize("stripe", ["13B", "20B", "1000B", "64KiB"])
@pytest.mark.parametrize("kernel", ["sum", "minmax", "last"])
def test_auto_never_moves_much_more_than_a_plain_read(pair, stripe, kernel):
    values = np.random.default_rng(9).normal(size=40_000)
    _, url = pair.store(values.tobytes(), "--stripe", stripe)
    report = pair.report(url, kernel, "--type", "f64")
    moved = report["bytes_moved"] + report["bytes_to_client"]
    assert moved <= values.nbytes + 64 * KIB, report


def test_mistakes_are_refused_as_locally(up, pair):
    files = pair.store(b"12345678" * 10, "--stripe", "13B")
    for args in (
        ["nosuch"], ["sum"], ["sum", "--type", "f64", "--param", "bins=3"], ["grep"],
        ["grep", "--param", "pattern=("], ["lookup", "--type", "f64", "--param", "where=big"],
        ["sum", "--type", "f64", "--record", "12"], ["histogram", "--type", "f64", "--param", "bins=0"],
        ["wc", "--type", "u8"], ["sum", "--type", "f64", "--param", "nan=maybe"],
    ):  # fmt: skip
        pair.same(files, *args)
        assert up.grist("run", args[0], files[1], *args[1:]).returncode == 2


def test_a_checkpoint_goes_on_where_folds_run_at_the_client(up, pair, tmp_path):
    files = pair.store(np.ones(1000).tobytes(), "--stripe", "64B")
    args = ("--type", "f64", "--checkpoint", tmp_path / "state")
    pair.same(files, "sum", *args, places=("client", "auto"))
    message = up.grist.refuses(2, "run", "sum", files[1], *args, "--place", "storage")
    assert "--checkpoint" in message
