"""The program under test, and fixtures that make plain and striped files for it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Tests import netCDF4 later, which has its own HDF5 library. The filters bind to the library that was loaded first.
import hdf5plugin  # noqa: F401
import pytest

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 60  # seconds; a bound on a hang, not a measure of speed
NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def binary() -> Path:
    """The program: GRISTMILL_BIN, else the release build, else the debug build."""
    named = os.environ.get("GRISTMILL_BIN")
    if named:
        return Path(named).resolve()
    for profile in ("release", "debug"):
        path = ROOT / "target" / profile / "gristmill"
        if path.exists():
            return path
    pytest.exit("no gristmill to test: run 'cargo build --release' or set GRISTMILL_BIN", 4)


def number(value):
    """A number of a JSON answer. The JSON has large integers and numbers that are not finite as strings."""
    if isinstance(value, str):
        return float(value) if value in NOT_FINITE else int(value)
    if isinstance(value, list):
        return [number(item) for item in value]
    return value


class Gristmill:
    """Runs the program. Every failure must have a message that helps a user."""

    def __init__(self, cwd: Path):
        self.path = binary()
        self.cwd = cwd
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("GRISTMILL_")}

    def __call__(
        self, *args, env=None, cwd=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=TIMEOUT
    ):
        done = subprocess.run(
            [self.path, *map(str, args)],
            cwd=cwd or self.cwd,
            env={**self.env, **(env or {})},
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=timeout,
        )
        sane(done.returncode, done.stderr)
        return done

    def ok(self, *args, **how) -> bytes:
        """The output of a command that succeeds."""
        done = self(*args, **how)
        assert done.returncode == 0, (args, done.returncode, done.stderr.decode("utf-8", "replace"))
        return done.stdout

    def answer(self, kernel, path, *args, env=None, **params) -> dict:
        """The whole JSON answer of a kernel."""
        given = [arg for name, value in params.items() for arg in ("--param", f"{name}={value}")]
        return json.loads(self.ok("run", kernel, path, "--json", *args, *given, env=env))

    def ask(self, kernel, path, *args, **params) -> dict:
        """The result of a kernel. Strings that stand for numbers become numbers."""
        result = self.answer(kernel, path, *args, **params)["result"]
        text = ("first", "last") if "--type" not in args else ()
        return {
            key: value if key in ("rows", "type", *text) else number(value) for key, value in result.items()
        }

    def refuses(self, code, *args, **how) -> str:
        """The message of a command that fails and prints nothing else."""
        done = self(*args, **how)
        assert done.returncode == code, (args, done.returncode, done.stdout[:300], done.stderr)
        assert not done.stdout, (args, done.stdout[:300])
        return one_message(done.stderr)

    def put(self, source, layout, targets, stripe, *args) -> Path:
        self.ok("put", source, layout, "--on", ",".join(map(str, targets)), "--stripe", stripe, *args)
        return Path(layout)


def sane(code, stderr):
    """Asserts that the program had no signal, no panic and no stack trace."""
    text = stderr.decode("utf-8", "replace")
    assert code in (0, 1, 2, 130), (code, text)
    for word in ("panicked", "RUST_BACKTRACE", "stack backtrace", "unwrap()"):
        assert word not in text, text


def one_message(stderr: bytes) -> str:
    """A failure is one line. Only wrong flags get the longer message of the argument parser."""
    text = stderr.decode()
    assert text.startswith("gristmill: ") and text.endswith("\n"), text
    if "--help" in text:
        return text
    assert text.count("\n") == 1, text
    assert len(text) < 1000, text
    return text


@pytest.fixture
def grist(tmp_path):
    return Gristmill(tmp_path)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    """Starts storage nodes, as in clusters(Up, nodes=2). They end with the tests of the module."""
    from cluster import Started

    with Started(lambda: tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def nodes_of_test(tmp_path_factory):
    """Like `clusters`, but the nodes end with the test. It is for tests that break their nodes."""
    from cluster import Started

    with Started(lambda: tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def striped(grist, tmp_path):
    """Makes a striped copy of some bytes or of a file: striped(content, stripe, targets)."""
    made = []

    def make(content, stripe="64KiB", targets=3):
        base = tmp_path / f"striped{len(made)}"
        base.mkdir()
        made.append(base)
        source = content
        if isinstance(content, bytes):
            source = base / "source"
            source.write_bytes(content)
        dirs = [base / f"target{n}" for n in range(targets)]
        return grist.put(source, base / "file.grist", dirs, stripe)

    return make


@pytest.fixture
def layouts(striped, tmp_path):
    """The same bytes as a plain file and as a striped one."""

    def make(content: bytes, stripe, targets):
        plain = tmp_path / f"plain-{stripe}-{targets}"
        plain.write_bytes(content)
        return [plain, striped(plain, stripe, targets)]

    return make


@pytest.fixture(scope="session")
def real_data():
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real files are not there: {folder}")
    return folder


#: Files whose longest test takes a minute or more. They begin first, so that the last process does not end long after the others.
LONG_FILES = (
    "test_differential.py",
    "test_random_faults.py",
    "test_cluster_load.py",
    "test_extremes.py",
    "test_interruption.py",
    "test_attacks.py",
)


def pytest_collection_modifyitems(items):
    def place(item):
        name = item.path.name
        return LONG_FILES.index(name) if name in LONG_FILES else len(LONG_FILES)

    items.sort(key=place)


def pytest_report_header():
    free = shutil.disk_usage(tempfile.gettempdir()).free >> 30
    return f"gristmill: {binary()} on {sys.platform}, {free} GiB free for the files of tests"
