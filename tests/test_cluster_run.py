"""Kernels over files of a cluster give the same bytes as over the plain file, wherever folds run."""

import json
import random

import numpy as np
import pytest
from plain_and_stored import pair, params, up  # noqa: F401


def test_every_kernel_is_tried_here(up):
    names = {kernel["name"] for kernel in json.loads(up.grist.ok("kernels", "--json"))}
    # test_cluster_passes.py tests kernels over images.
    assert names - {"gaussian"} == {name for name, *_ in NUMERIC} | {name for name, *_ in TEXT}


NUMERIC = [
    ("count",), ("count", "nan=skip"), ("first",), ("last",), ("histogram", "bins=7"),
    ("histogram", "bins=64", "range=-1:1"), ("lookup", "where=> 1.5"), ("lookup", "where=-0.01..=0.01"),
    ("lookup", "where=> 0", "count_only=true"), ("max",), ("min",), ("minmax",), ("mean",), ("sum",),
    ("sum", "nan=skip"), ("var",), ("var", "ddof=1"), ("median",), ("quantile", "q=0.1,0.9"), ("top", "k=5"),
    ("unique", "max=100000"), ("kmeans", "dims=1", "k=3", "init=first", "max_iter=3"),
]  # fmt: skip
TEXT = [
    ("count",), ("first",), ("last",), ("wc",), ("grep", "pattern=[a-c]{3}"),
    ("grep", "pattern=A", "ignore_case=true", "count_only=true"), ("grep", "pattern=a.b", "fixed=true"),
    ("grep", "pattern=^$"),
]  # fmt: skip
# Files with stripes of a few bytes are small. With larger files nodes would move more than a plain read, and refuse.
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
    # This is the case of Son 2010: stripes end within records.
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
    # At most one record extends over the end of each stripe.
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
    """Random lines, some far longer than a stripe, without a newline at the end."""
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
