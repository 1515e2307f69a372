"""The progress bar: in a terminal and in a notebook, never in a pipe. After Ctrl-C neither the bar nor the request is left."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import nbformat
import numpy as np
import pytest
from cluster import until
from nbclient import NotebookClient
from numpy.lib import format as npy
from python_package import TIMEOUT, cluster, gm, huge, python, until_opened  # noqa: F401

ERASED = "\r\033[K"
RUN = """
import sys, gristmill as gm
{}
try:
    with {}:
        gm.run("sum", sys.argv[1], type="uint8")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
BAR = re.compile(r"[█░]{6,30} +\d+% .* of 4\.00 TiB, .*/s, here")


class Watched:
    """A program whose standard error is a terminal."""

    def __init__(self, code, *args):
        self.ours, theirs = pty.openpty()
        self.child = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, args)], stdout=subprocess.PIPE, stderr=theirs, text=True
        )
        os.close(theirs)
        self.seen = ""

    def read(self, seconds=0.1):
        ready, _, _ = select.select([self.ours], [], [], seconds)
        if ready:
            try:
                self.seen += os.read(self.ours, 1 << 16).decode(errors="replace")
            except OSError:
                # The other end of the terminal is closed.
                pass

    def until(self, pattern):
        end = time.monotonic() + TIMEOUT
        while not re.search(pattern, self.seen):
            assert time.monotonic() < end, self.seen[-300:]
            self.read()

    def end(self):
        self.child.kill()
        self.child.communicate(timeout=TIMEOUT)
        os.close(self.ours)

    def interrupted(self):
        """Interrupts the program with Ctrl-C. Returns its output, after the terminal has shown everything."""
        self.child.send_signal(signal.SIGINT)
        out, _ = self.child.communicate(timeout=TIMEOUT)
        before = None
        while before != self.seen:
            before = self.seen
            self.read()
        return out


@pytest.fixture
def watched():
    """Starts programs and ends all of them, also after a failed test."""
    started = []

    def start(*given):
        started.append(Watched(*given))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.mark.parametrize("how", ["gm.progress()", "gm.set_options(progress=True)"])
def test_a_terminal_shows_a_bar_that_ctrl_c_ends(watched, huge, how):
    shown = watched(RUN.format("", how), huge)
    shown.until(BAR)
    assert shown.interrupted() == "interrupted\n"
    # The line is empty, and nothing follows.
    assert shown.seen.endswith(ERASED) and "Traceback" not in shown.seen


def test_a_session_shows_a_bar_without_being_asked(watched, huge):
    shown = watched(RUN.format("sys.ps1 = '>>> '", "gm.set_options()"), huge)
    shown.until(BAR)
    assert shown.interrupted() == "interrupted\n" and shown.seen.endswith(ERASED)


AT_ONCE = "import gristmill._requests.progress as bars; bars.PATIENCE = 0"
QUIET = {
    "a program": (AT_ONCE, "gm.set_options()"),
    "a session that wants none": (f"{AT_ONCE}; sys.ps1 = '>>> '", "gm.set_options(progress=False)"),
}


@pytest.mark.parametrize("which", QUIET)
def test_no_bar_where_none_is_wanted(watched, tmp_path, which):
    # The request is so long that a bar would be drawn several times.
    path = tmp_path / "some"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    shown = watched(RUN.format(*QUIET[which]), path)
    assert shown.child.communicate(timeout=TIMEOUT)[0] == ""
    shown.read()
    assert shown.seen == ""


def test_nothing_goes_into_a_pipe(huge):
    child = python(RUN.format("sys.ps1 = '>>> '", "gm.progress()"), huge)
    until_opened(child, huge)
    # The progress code has looked at the request several times before the signal comes.
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=TIMEOUT) == ("interrupted\n", "")


def test_options():
    with pytest.raises(gm.Usage, match="True, False or 'auto'"):
        gm.set_options(progress="always")
    with gm.progress(), gm.progress():
        pass


CELLS = [
    "import gristmill as gm, numpy as np",
    "with gm.progress():\n    for part in ('1GiB', '512MiB', '512MiB'):\n        gm.run('sum', PATH, type='uint8', range=(0, part))",
    "with gm.set_options(progress=False):\n    gm.run('sum', PATH, type='uint8')",
    "gm.open_arrays('small.npy')['data'].sum()",
]


def test_a_notebook_shows_one_output_that_changes(tmp_path):
    path = tmp_path / "some"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    np.save(tmp_path / "small.npy", np.arange(5.0))
    cells = [nbformat.v4.new_code_cell(cell.replace("PATH", repr(str(path)))) for cell in CELLS]
    book = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(book, timeout=TIMEOUT, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (shown,) = book.cells[1].outputs
    # The output shows the last state, after three requests.
    assert shown.output_type == "display_data"
    for kind in ("text/plain", "text/html"):
        assert "2.00 GiB of 2.00 GiB, " in shown.data[kind] and "here, 3 requests" in shown.data[kind]
    assert not book.cells[2].outputs
    assert [one.output_type for one in book.cells[3].outputs] == ["execute_result"]


ARRAY = """
import sys, numpy as np, gristmill as gm
{}
print("ready", flush=True)
try:
    with gm.progress():
        {}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.fixture
def endless(tmp_path):
    """An array of 4 TiB of which nothing is stored."""
    path = tmp_path / "endless.npy"
    with path.open("wb") as file:
        npy.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (1 << 14, 1 << 25)})
        file.truncate(file.tell() + (1 << 42))
    return path


@pytest.mark.parametrize("made", ["array = gm.open_arrays(sys.argv[1])['data']",
                                  "array = gm.open_dataset(sys.argv[1], chunks={'dim_0': 1024})['data']"])
def test_ctrl_c_ends_a_reduction_of_an_array(watched, endless, made):
    shown = watched(ARRAY.format(made, "float(array.mean())"), endless)
    shown.until(r"% .* TiB, .*/s, here")
    assert shown.interrupted() == "ready\ninterrupted\n"
    assert shown.seen.endswith(ERASED) and "Traceback" not in shown.seen


def test_ctrl_c_ends_reads_that_wait_for_a_node(watched, nodes_of_test, tmp_path):
    nodes = nodes_of_test(nodes=2)
    rng = np.random.default_rng(3)
    for name in ("one", "other"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(64, 4096)))
        gm.put(tmp_path / f"{name}.npy", nodes.url(f"/{name}.npy"), stripe="64KiB")
    made = "\n".join([
        "array, other = (gm.open_arrays(url)['data'] for url in sys.argv[1:3])",
        "import os, signal",
        "[os.kill(int(pid), signal.SIGSTOP) for pid in sys.argv[3:]]",
    ])
    # The nodes do not answer, so three threads wait for their reads.
    shown = watched(
        ARRAY.format(made, "np.asarray(array[:8] + array[-8:] * other[:8])"),
        nodes.url("/one.npy"), nodes.url("/other.npy"), *nodes.pids().values(),
    )
    try:
        shown.until(r" 0% 0 B of .* KiB")
        assert shown.interrupted() == "ready\ninterrupted\n"
        assert shown.seen.endswith(ERASED) and "Traceback" not in shown.seen
    finally:
        for pid in nodes.pids().values():
            os.kill(pid, signal.SIGCONT)
    until(nodes.works, "the nodes answer again")


def test_what_nodes_folded_is_all_of_it(cluster, tmp_path):
    # Nodes that answer at once never report progress.
    np.save(tmp_path / "small.npy", np.arange(10_000.0))
    gm.put(tmp_path / "small.npy", cluster.path("small.npy"), stripe="4KiB")
    from gristmill._requests import progress

    with gm.set_options(place="storage"), gm.progress():
        assert float(gm.open_arrays(cluster.path("small.npy"))["data"].sum()) == 49_995_000
        state = progress._bar.state(time.monotonic())
    assert state.done == state.total == 80_000 and state.places == {"storage"} and not state.failed
