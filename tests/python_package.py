"""The Python package under test, and fixtures for its tests: nodes, files in three places, and other Python processes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

gm = pytest.importorskip("gristmill", reason="the package is not installed: pip install .")

TIMEOUT = 60  # seconds; a bound on a hang, not a measure of speed
HUGE = 1 << 42  # bytes of a sparse file; no test reads it to its end


@pytest.fixture(scope="module")
def cluster():
    with gm.up(nodes=3, lanes=1) as nodes:
        yield nodes


@pytest.fixture(params=["plain", "striped", "cluster"])
def place(request, tmp_path):
    """Puts an array or bytes into a plain file, a striped file or a cluster, and gives its name."""
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


@pytest.fixture
def huge(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(HUGE)
    return path


def python(code, *args, **how):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how
    )


def until_opened(child, path):
    """Waits until the process has opened the file, so that its request runs."""
    opened = set()
    while str(path) not in opened:
        assert child.poll() is None, "it ended before it opened the file"
        for link in Path(f"/proc/{child.pid}/fd").glob("*"):
            try:
                opened.add(os.readlink(link))
            except OSError:
                pass


def processes_of(folder):
    """The processes that have this directory among their arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder) in path.read_text():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found
