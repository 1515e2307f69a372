"""grep, wc, count, first and last on text, compared with Python's re on bytes, ripgrep and wc."""

import json
import os
import random
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

TRICKY = {
    "plain": b"alpha foo\nbeta\nfoo bar foo\n\nFOO end\n",
    "no last newline": b"foo\nbar\nlast foo",
    "empty lines": b"\n\n\nfoo\n\n",
    "only newlines": b"\n" * 40,
    "carriage returns": b"foo\r\nbar foo\r\n\r\nfoo\r",
    "no newline at all": b"foo foo foo",
    "bytes that are no text": b"\xff\xfefoo\n\x00foo\x00\n\xc3\n\xc3\xa9foo\n\x80\n",
    "one byte": b"f",
    "one newline": b"\n",
    "long line": b"x" * 90 + b"foo" + b"y" * 90 + b"\nfoo\n",
    "words": b"a\tb\vc\fd e\r\n  two  words \nx",
}
# Patterns with the same meaning in Rust and in Python on bytes.
PATTERNS = ["foo", "^foo", "foo$", "^$", "fo+ ", "[a-f]{2,}", "(foo|beta)", "o b?", "zebra"]
# The same for words. Rust uses Unicode words unless told otherwise, and Python on bytes uses ASCII words.
ASCII_WORD = (r"(?-u:\b)foo(?-u:\b)", r"\bfoo\b")
STRIPES = [("1B", 3), ("2B", 5), ("3B", 2), ("5B", 4), ("7B", 1), ("13B", 3)]


def rows_of(text: bytes):
    """(offset, line) of the printed rows. Lines of TRICKY have no newline inside."""
    out = []
    for row in text.split(b"\n")[:-1]:
        offset, line = row.split(b":", 1)
        out.append((int(offset), line))
    return out


def json_rows(result):
    return [(r["offset"], r["line"].encode() if "line" in r else bytes(r["line_bytes"])) for r in result["rows"]]


def lines(data: bytes):
    """(offset, line without its newline). The last line may have no newline."""
    out, at = [], 0
    pieces = data.split(b"\n")
    for piece in pieces if pieces[-1] else pieces[:-1]:
        out.append((at, piece))
        at += len(piece) + 1
    return out


def by_python(data, pattern, flags=0):
    regex = re.compile(pattern.encode(), flags)
    return [(at, line) for at, line in lines(data) if regex.search(line)]


def grep(grist, path, pattern, *more, **params):
    """The rows of a search. The JSON, the printed rows and the count must agree."""
    params = {"pattern": pattern, **params}
    result = grist.ask("grep", path, *more, **params)
    rows = json_rows(result)
    assert result["count"] == len(rows)
    given = [arg for name, value in params.items() for arg in ("--param", f"{name}={value}")]
    assert rows_of(grist.ok("run", "grep", path, *more, *given)) == rows
    assert grist.ask("grep", path, *more, **params, count_only="true") == {"count": len(rows)}
    return rows


@pytest.mark.parametrize("case", TRICKY)
def test_grep_is_as_python(grist, layouts, case):
    data = TRICKY[case]
    stripe, targets = STRIPES[list(TRICKY).index(case) % len(STRIPES)]
    plain, striped = layouts(data, stripe, targets)
    for pattern in PATTERNS:
        want = by_python(data, pattern)
        assert grep(grist, plain, pattern) == want, pattern
        assert grep(grist, striped, pattern) == want, pattern
    assert grep(grist, striped, ASCII_WORD[0]) == by_python(data, ASCII_WORD[1])


def test_a_long_line_over_many_small_stripes(grist, striped):
    """If the work grew with the square of the line's length, this test would not end."""
    data = b"x" * 25_000 + b"foo\nbar\n" + b"foo " * 5_000
    path = striped(data, "1B", 3)
    assert grep(grist, path, "foo$") == by_python(data, "foo$")
    assert grep(grist, path, "foo") == by_python(data, "foo")


@pytest.mark.parametrize(("stripe", "targets"), STRIPES)
def test_lines_across_small_stripes(grist, striped, stripe, targets):
    data = b"".join(TRICKY.values())
    path = striped(data, stripe, targets)
    for pattern in ("foo", "^$", "[a-z]$", "^"):
        assert grep(grist, path, pattern) == by_python(data, pattern), pattern
    assert grist.ask("count", path) == {"count": len(lines(data))}
    last = lines(data)[-1]
    assert grist.ask("last", path) == {"last": last[1].decode(), "offset": last[0]}


def test_ignore_case_and_fixed(grist, layouts):
    data = b"a.c\nabc\nA.C\nABC\n[x\n$\n^a\n"
    for path in layouts(data, "3B", 3):
        assert grep(grist, path, "a.c", ignore_case="true") == by_python(data, "a.c", re.I)
        assert grep(grist, path, "a.c", fixed="true") == by_python(data, r"a\.c")
        assert grep(grist, path, "a.C", fixed="true", ignore_case="true") == by_python(data, r"a\.c", re.I)
        for text in ("[x", "$", "^a", "("):
            assert grep(grist, path, text, fixed="true") == by_python(data, re.escape(text))


def test_no_match_prints_nothing(grist, layouts):
    for path in layouts(b"one\ntwo\n", "3B", 2):
        assert grist.ok("run", "grep", path, "--param", "pattern=zebra") == b""
        got = json.loads(grist.ok("run", "grep", path, "--json", "--param", "pattern=zebra"))
        assert got["result"]["count"] == 0 and got["result"].get("rows", []) == []
        assert grist.ask("grep", path, pattern="zebra", count_only="true") == {"count": 0}


def test_empty_file(grist, layouts):
    for path in layouts(b"", "3B", 2):
        assert grep(grist, path, "^") == []
        assert grist.ask("wc", path) == {"lines": 0, "words": 0, "bytes": 0}
        assert grist.ask("count", path) == {"count": 0}
        for kernel in ("first", "last"):
            assert "empty selection" in grist.refuses(1, "run", kernel, path)


def corpus(seed=30, size=400_000):
    """Lines of words. Some are long, and some have carriage returns or bytes that are not text."""
    rng = random.Random(seed)
    words = [b"Sherlock", b"the", b"Watson", b"x" * 200, b"12:30", b"\xc3\xa9t\xc3\xa9", b"\xff\x80", b"A_b", b"ABCDEFGHIJKLMK"]
    out = bytearray()
    while len(out) < size:
        out += b" ".join(rng.choices(words, k=rng.randrange(0, 14)))
        out += rng.choice([b"\n", b"\n", b"\r\n", b"\n\n"])
    return bytes(out + b"no newline Sherlock")


@pytest.fixture(scope="module")
def ripgrep():
    beside = ROOT / ".tools" / "bin" / "rg"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("rg")
    if not found:
        pytest.skip("ripgrep is not there")

    def search(path, pattern, *flags):
        how = ["--no-config", "-abN", "--color=never", "--no-filename", "--encoding=none"]
        done = subprocess.run([found, *how, *flags, "-e", pattern, path], capture_output=True)
        assert done.returncode in (0, 1), done.stderr
        return rows_of(done.stdout)

    return search


@pytest.mark.parametrize(
    "pattern",
    ["Sherlock", "[A-Z]{12,}K", "^$", "^", r"\d\d:\d\d", r"\w+_\w", "été", r"\bthe\b.*Watson$", "[^a-z ]{3}", r"(?-u)\xff", r"\s$", "x{150}", "(?i)SHERLOCK|watson", r"^\S+$", r"\Athe", r"Sherlock\z", "."],
)
def test_grep_is_as_ripgrep(grist, layouts, ripgrep, pattern):
    plain, striped = layouts(corpus(), "997B", 4)
    want = ripgrep(plain, pattern)
    assert grep(grist, plain, pattern) == want
    assert grep(grist, striped, pattern) == want
    if pattern == "Sherlock":
        assert grep(grist, striped, "sherlock", ignore_case="true") == ripgrep(plain, "sherlock", "-i")


@pytest.mark.parametrize("case", TRICKY)
def test_wc(grist, layouts, case):
    data = TRICKY[case]
    for path in layouts(data, "2B", 3):
        assert grist.ask("wc", path) == {
            "lines": data.count(b"\n"),
            "words": len(data.split()),
            "bytes": len(data),
        }
        got = [lines(data)[0], lines(data)[-1]]
        for kernel, (at, line) in zip(("first", "last"), got):
            answer = grist.ask(kernel, path)
            shown = answer[kernel] if isinstance(answer[kernel], str) else bytes(answer[kernel]["bytes"])
            assert (shown if isinstance(shown, bytes) else shown.encode(), answer["offset"]) == (line, at)
        assert grist.ask("count", path) == {"count": len(lines(data))}


def test_wc_is_as_the_command(grist, layouts):
    # The text is printable, because some versions of the command count only words with a printable byte.
    data = corpus().decode("utf-8", "replace").encode("ascii", "replace")
    plain, striped = layouts(data + b"\v\f\t end", "61B", 5)
    done = subprocess.run(
        ["wc", "-lwc"], stdin=plain.open("rb"), capture_output=True, env={**os.environ, "LC_ALL": "C"}
    )
    want = dict(zip(("lines", "words", "bytes"), map(int, done.stdout.split())))
    assert grist.ask("wc", plain) == want
    assert grist.ask("wc", striped) == want


def test_ranges_that_tile_a_file_partition_its_lines(grist, layouts):
    data = corpus(31, 20_000) + TRICKY["bytes that are no text"] + TRICKY["no last newline"]
    rng = random.Random(32)
    inner = {rng.randrange(len(data)) for _ in range(12)} | {data.index(b"\n"), data.index(b"\n") + 1}
    cuts = [0, *sorted(inner), len(data)]
    for path in layouts(data, "11B", 3):
        whole = grep(grist, path, "Sherlock")
        assert whole == by_python(data, "Sherlock")
        rows, count, words = [], 0, 0
        for start, end in zip(cuts, cuts[1:]):
            window = ("--range", f"{start}:{end - start}")
            mine = [(at, line) for at, line in lines(data) if start <= at < end]
            assert grist.ask("count", path, *window) == {"count": len(mine)}
            got = grep(grist, path, "Sherlock", *window)
            assert got == [(at, line) for at, line in mine if b"Sherlock" in line]
            rows += got
            count += len(mine)
            words += grist.ask("wc", path, *window)["words"]
        assert rows == whole and count == len(lines(data)) and words == len(data.split())


def test_skip_begins_a_line_where_it_ends(grist, layouts):
    data = b"headerfoo\nbar\nfoo"
    for path in layouts(data, "4B", 3):
        assert grep(grist, path, "^foo", "--skip", 6) == [(6, b"foo"), (14, b"foo")]
        assert grist.ask("first", path, "--skip", 6) == {"first": "foo", "offset": 6}
        assert grist.ask("wc", path, "--skip", 6) == {"lines": 2, "words": 3, "bytes": 11}


def test_records_of_text(grist, layouts):
    rng = random.Random(33)
    size = 16
    names = [rng.choice(["foo", "bar foo", "été", "x"]).encode().ljust(size - 1)[: size - 1] for _ in range(400)]
    data = b"head" + b"".join(name + b"\n" for name in names)
    want = [(4 + i * size, name) for i, name in enumerate(names)]
    how = ("--skip", 4, "--record", size)
    for path in layouts(data, "13B", 4):
        for pattern in ("foo", "^foo", " $", r"foo\s+$", "^x +$", r"\bfoo", "fo+ x", "zebra"):
            regex = re.compile(pattern.encode())
            assert grep(grist, path, pattern, *how) == [row for row in want if regex.search(row[1])], pattern
        assert grist.ask("count", path, *how) == {"count": 400}
        assert grist.ask("last", path, *how) == {"last": names[-1].decode(), "index": 399}
        window = (*how, "--range", f"{4 + 3 * size + 1}:{5 * size}")
        assert grep(grist, path, "^", *window) == want[4:9]


def test_records_are_searched_one_by_one(grist, layouts):
    """A match must not extend over the end of a record or hide a match in the next record."""
    data = b"abcabcXabcabcabX" * 21
    for size in (1, 2, 3, 4, 8, 16):
        records = [(at, data[at : at + size]) for at in range(0, len(data), size)]
        for path in layouts(data, f"{size + 1}B", 3):
            for pattern in ("abc", "X", "c.*X", "^a", "c$", "cab|bX", "(?s).+", "[^a]+"):
                regex = re.compile(pattern.encode())
                got = grep(grist, path, pattern, "--record", size)
                assert got == [row for row in records if regex.search(row[1])], (size, pattern)
