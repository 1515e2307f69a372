"""Requests that make no sense, and files with wrong content: the message and the exit code."""

import json
import os

import numpy as np
import pytest


@pytest.fixture
def files(tmp_path):
    (tmp_path / "values").write_bytes(np.arange(10.0).tobytes())
    (tmp_path / "ragged").write_bytes(bytes(83))
    (tmp_path / "text").write_bytes(b"one\ntwo\n" + b"x" * 5000 + b"\nend\n")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


F64 = ("--type", "f64")

# The request, the exit code, and words of the message. It must name the thing and say what to do.
REQUESTS = {
    "missing file": (("sum", "nosuch", *F64), 2, ["nosuch", "no such file", "check"]),
    "directory": (("sum", "folder", *F64), 2, ["folder", "directory"]),
    "pipe": (("sum", "pipe", *F64), 2, ["pipe", "regular file"]),
    "device": (("sum", "/dev/zero", *F64), 2, ["/dev/zero", "regular file"]),
    "file taken for a directory": (("sum", "values/x", *F64), None, ["values/x"]),
    "missing layout file": (("sum", "nosuch.grist", *F64), 2, ["nosuch.grist", "no such file"]),
    "unknown kernel": (("summ", "values", *F64), 2, ["summ", "did you mean 'sum'"]),
    "letters in the wrong order": (("maen", "values", *F64), 2, ["maen", "did you mean 'mean'"]),
    "mean of other programs": (("avg", "values", *F64), 2, ["avg", "did you mean 'mean'"]),
    "quantile of other programs": (("percentile", "values", *F64), 2, ["did you mean 'quantile'", "from 0 to 1"]),
    "two kernels for one": (("filter", "values", *F64), 2, ["'lookup' for numbers", "'grep' for lines"]),
    "standard deviation of plain numbers": (("std", "values", *F64), 2, ["--var", "'var'", "standard deviation"]),
    "no kernel for plain numbers": (("moments", "values", *F64), 2, ["name it with --var\n"]),
    "kernel like no other": (("frobnicate", "values", *F64), 2, ["frobnicate", "gristmill kernels"]),
    "unknown parameter": (("sum", "values", *F64, "-pdof=1"), 2, ["sum", "dof", "nan"]),
    "parameter of a kernel with none": (("wc", "text", "-px=1"), 2, ["wc", "'x'", "none"]),
    "unknown type": (("sum", "values", "--type", "f63"), 2, ["f63", "f64"]),
    "no type": (("sum", "values"), 2, ["sum", "--type"]),
    "type for text": (("grep", "text", *F64, "-ppattern=x"), 2, ["grep", "--type"]),
    "record for lines only": (("wc", "text", "--record", "4"), 2, ["wc", "--record"]),
    "missing parameter": (("grep", "text"), 2, ["grep", "pattern", "--param pattern="]),
    "missing condition": (("lookup", "values", *F64), 2, ["lookup", "where", "--param where="]),
    "condition without a number": (("lookup", "values", *F64, "-pwhere=>"), 2, ["where", "a number is missing"]),
    "repeated parameter": (("var", "values", *F64, "-pddof=1", "-pddof=1"), 2, ["ddof", "twice"]),
    "no name in a parameter": (("var", "values", *F64, "-p=1"), 2, ["NAME=VALUE"]),
    "no value in a parameter": (("var", "values", *F64, "-pddof"), 2, ["ddof", "NAME=VALUE"]),
    "integer wanted": (("var", "values", *F64, "-pddof=one"), 2, ["ddof", "one", "integer"]),
    "negative": (("var", "values", *F64, "-pddof=-1"), 2, ["ddof", "-1", "integer"]),
    "no bins": (("histogram", "values", *F64, "-pbins=0"), 2, ["bins", "65536"]),
    "too many bins": (("histogram", "values", *F64, "-pbins=99999999"), 2, ["bins", "65536"]),
    "range the wrong way": (("histogram", "values", *F64, "-prange=2:1"), 2, ["range", "lower"]),
    "range of nothing": (("histogram", "values", *F64, "-prange=nan:1"), 2, ["range"]),
    "range without colon": (("histogram", "values", *F64, "-prange=5"), 2, ["range", "LOW:HIGH"]),
    "endless range": (("histogram", "values", *F64, "-prange=-inf:inf"), 2, ["range", "finite"]),
    "neither true nor false": (("grep", "text", "-ppattern=x", "-pfixed=yes"), 2, ["fixed", "yes", "true"]),
    "unknown NaN rule": (("sum", "values", *F64, "-pnan=ignore"), 2, ["nan", "ignore", "skip"]),
    "no multiple of the type": (("sum", "ragged", *F64), 2, ["ragged", "83", "8", "--skip"]),
    "no multiple of the record": (("count", "values", "--record", "7"), 2, ["values", "80", "7", "--skip"]),
    "record of no whole elements": (("sum", "values", *F64, "--record", "12"), 2, ["12", "f64", "multiple of 8"]),
    "record of nothing": (("count", "text", "--record", "0"), 2, ["record", "1 byte"]),
    "record beyond all bounds": (("count", "values", "--record", "16777216TB"), 2, ["16777216000000000000"]),
    "skip beyond the file": (("sum", "values", *F64, "--skip", "1MiB"), 2, ["values", "80", "--skip"]),
    "range beyond the file": (("sum", "values", *F64, "--range", "0:81"), 2, ["values", "80", "START:"]),
    "range that overflows": (("sum", "values", *F64, "--range", "8:18446744073709551615"), 2, ["values", "80"]),
    "range that is none": (("sum", "values", *F64, "--range", "12"), 2, ["12", "START:LENGTH"]),
    "size that is none": (("sum", "values", *F64, "--skip", "many"), 2, ["many", "64KiB"]),
    "big-endian text": (("count", "text", "--big-endian"), 2, ["--type"]),
    "open group": (("grep", "text", "-ppattern=("), 2, ["pattern", "unclosed group"]),
    "bad repetition": (("grep", "text", "-ppattern=*a"), 2, ["pattern", "repetition"]),
    "newline in a pattern": (("grep", "text", r"-ppattern=a\nb"), 2, ["pattern", "\\n"]),
    "look-around": (("grep", "text", "-ppattern=(?=x)"), 2, ["pattern", "look-around"]),
    "enormous pattern": (("grep", "text", "-ppattern=(x{1000}){1000}{1000}"), 2, ["pattern"]),
    "no lanes": (("sum", "values", *F64, "--lanes", "0"), 2, ["lanes", "1 to"]),
    "too many lanes": (("sum", "values", *F64, "--lanes", "1000000"), 2, ["lanes", "1000000"]),
    "lanes that are no number": (("sum", "values", *F64, "--lanes", "all"), 2, ["lanes", "1 to 1024"]),
    "no line at all": (("count", "text", "--max-record", "0"), 2, ["--max-record", "1 byte"]),
    "long line": (("grep", "text", "-ppattern=e", "--max-record", "100"), 1, ["text", "byte 8", "--max-record"]),
    "long line, counted": (("count", "text", "--max-record", "4999"), 1, ["text", "4999", "--max-record"]),
    "empty selection": (("mean", "values", *F64, "--range", "80:0"), 1, ["mean", "empty selection"]),
    "no first": (("first", "text", "--range", "9:5"), 1, ["first", "empty selection"]),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_requests(grist, files, case):
    (kernel, path, *how), code, needles = REQUESTS[case]
    message = grist.refuses(code or 1, "run", kernel, path, *how)
    for needle in needles:
        assert needle in message, (needle, message)


@pytest.mark.parametrize("case", ["missing file", "unknown kernel", "empty selection", "long line", "open group"])
def test_errors_leave_nothing_on_stdout_in_json_either(grist, files, case):
    (kernel, path, *how), code, _ = REQUESTS[case]
    grist.refuses(code, "run", kernel, path, "--json", *how)


def test_a_line_just_within_the_bound(grist, files):
    """The newline counts as part of the line."""
    assert grist.ask("count", "text", "--max-record", 5001) == {"count": 4}
    assert grist.ask("grep", "text", "--max-record", 5001, pattern="^x+$", count_only="true") == {"count": 1}
    # wc and records of a fixed size need no buffer for a line.
    assert grist.ask("wc", "text", "--max-record", 1)["bytes"] == 5013
    assert grist.ask("count", "text", "--max-record", 1, "--record", 9) == {"count": 557}


def test_the_bound_on_lines_does_not_depend_on_who_holds_them(grist, files, striped):
    layout = striped(files / "text", "100B", 3)
    for bound in (100, 4999, 5000, 5001):
        for kernel, *params in [("count",), ("last",), ("grep", "-ppattern=e"), ("grep", "-ppattern=e", "-pcount_only=true")]:
            codes = [
                grist("run", kernel, path, "--max-record", bound, *params).returncode for path in ("text", layout)
            ]
            assert codes == ([0, 0] if bound > 5000 else [1, 1]), (kernel, bound)


COMMANDS = {
    "no command": ((), 2, ["Usage"]),
    "unknown command": (("rum",), 2, ["rum"]),
    "unknown flag": (("run", "sum", "values", "--typ", "f64"), 2, ["--typ", "--type"]),
    "kernel for a command": (("sum", "values"), 2, ["'sum'", "did you mean 'gristmill run sum FILE'?"]),
    # clap alone would suggest the command 'man'.
    "kernel that is like a command": (("min", "values"), 2, ["did you mean 'gristmill run min FILE'?"]),
    "operation for a command": (("std", "values"), 2, ["did you mean 'gristmill run std FILE'?"]),
    "no kernel": (("run",), 2, ["<KERNEL>"]),
    "kernels: unknown": (("kernels", "lokup"), 2, ["lokup", "lookup"]),
    "kernels: of other programs": (("kernels", "average"), 2, ["average", "'mean'"]),
    "completions: unknown shell": (("completions", "tcsh"), 2, ["tcsh", "bash"]),
    "put: missing source": (("put", "nosuch", "x.grist", "--on", "t"), 2, ["nosuch", "no such file"]),
    "put: directory": (("put", "folder", "x.grist", "--on", "t"), 2, ["folder", "regular file"]),
    "put: no layout name": (("put", "values", "x", "--on", "t"), 2, ["x.grist"]),
    "put: no targets": (("put", "values", "x.grist"), 2, ["--on"]),
    "put: target twice": (("put", "values", "x.grist", "--on", "t,t"), 2, ["t", "twice"]),
    "put: same target by other names": (("put", "values", "x.grist", "--on", "t,./t"), 2, ["t", "twice"]),
    "put: too many targets": (
        ("put", "values", "x.grist", "--on", ",".join(f"t{n}" for n in range(300))), 2, ["256", "300"],
    ),
    "put: stripe of nothing": (("put", "values", "x.grist", "--on", "t", "--stripe", "0"), 2, ["stripe"]),
    "put: no parent": (("put", "values", "x.grist", "--on", "no/such/dir"), None, ["no/such/dir"]),
    "put: target is a file": (("put", "values", "x.grist", "--on", "text"), None, ["text"]),
    "put: layout in no folder": (("put", "values", "no/such/x.grist", "--on", "t"), None, ["no/such"]),
    "put: over a folder": (("put", "values", "over.grist", "--on", "t"), 2, ["over.grist", "directory"]),
    "put: over another's file": (("put", "values", "mine.grist", "--on", "t"), None, ["mine.grist"]),
    "get: missing": (("get", "nosuch", "copy"), 2, ["nosuch", "no such file"]),
    "get: a folder": (("get", "folder", "copy"), 2, ["folder", "directory"]),
    "get: into a folder that is none": (("get", "values", "none/"), 2, ["none/", "directory"]),
    "get: into no folder": (("get", "values", "no/such/copy"), None, ["no/such"]),
    "stat: missing": (("stat", "nosuch"), 2, ["nosuch", "no such file"]),
    "stat: folder": (("stat", "folder"), 2, ["folder", "directory"]),
    "rm: missing": (("rm", "nosuch.grist"), 2, ["nosuch.grist", "no such file"]),
    "rm: plain file": (("rm", "values"), 2, ["values", "layout file"]),
    "bench: missing": (("bench", "nosuch"), 2, ["nosuch", "no such file"]),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_commands(grist, files, case):
    args, code, needles = COMMANDS[case]
    (files / "over.grist").mkdir()
    (files / "mine.grist").write_text("not a layout file")
    before = sorted(path.name for path in files.iterdir())
    done = grist(*args)
    assert done.returncode == code if code else done.returncode in (1, 2), done.stderr
    assert done.stdout == b""
    message = done.stderr.decode()
    assert message.startswith(("gristmill: ", "Active storage")), message
    assert "--help" in message or message.count("\n") == 1, message
    for needle in needles:
        assert needle in message, (needle, message)
    assert (files / "values").stat().st_size == 80
    assert (files / "mine.grist").read_text() == "not a layout file"
    made = {path.name for path in files.iterdir()} - set(before)
    assert not any(name.endswith(".grist") or "partial" in name or name == "copy" for name in made), made


LAYOUTS = {
    "empty": "",
    "garbage": "\x00\x01garbage",
    "not an object": "[1, 2]",
    "cut": None,
    "another version": {"gristmill_layout": 2},
    "unknown field": {"colour": 3},
    "negative length": {"length": -1},
    "endless": {"length": 2**64 - 1},
    "too long for its objects": {"length": 10**12},
    "too short for its objects": {"length": 79},
    "no stripe": {"unit": 0},
    "another stripe": {"unit": 14},
    "first target is none": {"first": 3},
    "first target is another": {"first": 1},
    "no targets": {"targets": []},
    "object elsewhere": {"object": "../../../etc/passwd"},
    "no object": {"object": ""},
    "another object": {"object": "file-0000000000000000"},
    "text for a number": {"unit": "13"},
    "deep": "[" * 100_000,
    "long": " " * (5 << 20),
}


@pytest.mark.parametrize("case", LAYOUTS)
def test_damaged_layout_files(grist, striped, case):
    layout = striped(np.arange(10.0).tobytes(), "13B", 3)
    good = layout.read_text()
    change = LAYOUTS[case]
    if change is None:
        change = good[: len(good) // 2]
    elif isinstance(change, dict):
        change = json.dumps({**json.loads(good), **change})
    layout.write_text(change)
    for args in (("run", "sum", layout, *F64), ("get", layout, "copy"), ("stat", layout)):
        message = grist.refuses(1, *args)
        targets = [str(layout.parent / f"target{n}") for n in range(3)]
        assert any(name in message for name in (str(layout), *targets)), message
    assert not (grist.cwd / "copy").exists()
    layout.write_text(good)
    assert grist.ask("sum", layout, *F64)["sum"] == 45.0


def test_layout_file_that_is_no_text(grist, tmp_path):
    path = tmp_path / "file.grist"
    path.write_bytes(b"\xff\xfe" * 20)
    assert "file.grist" in grist.refuses(1, "run", "count", path)


def test_targets_in_the_wrong_order_are_noticed(grist, striped):
    layout = striped(bytes(range(40)), "13B", 3)
    good = json.loads(layout.read_text())
    layout.write_text(json.dumps({**good, "targets": good["targets"][::-1]}))
    assert "target" in grist.refuses(1, "run", "sum", layout, "--type", "u8")
