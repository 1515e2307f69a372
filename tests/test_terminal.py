"""Ctrl-C leaves nothing of a progress bar on a terminal."""

import os
import pty
import select
import signal
import subprocess
import termios

import numpy as np
import pytest
from cluster import Up, until
from conftest import binary


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=2)


class Terminal:
    """A command whose standard error is a terminal. With `columns` its standard output is a terminal too."""

    def __init__(self, cluster, *args, columns=None):
        self.master, slave = pty.openpty()
        self.seen = b""
        if columns:
            termios.tcsetwinsize(slave, (24, columns))
        self.child = subprocess.Popen(
            [binary(), *map(str, args)], cwd=cluster.folder, stdin=subprocess.DEVNULL,
            stdout=slave if columns else subprocess.PIPE, stderr=slave, env={**cluster.grist.env, "TERM": "xterm"},
        )  # fmt: skip
        os.close(slave)

    def read(self):
        """Reads the output that is there. Returns whether there was any."""
        if not select.select([self.master], [], [], 0)[0]:
            return False
        try:
            more = os.read(self.master, 1 << 16)
        except OSError:
            # The other end of the terminal is closed.
            return False
        self.seen += more
        return bool(more)

    def shown(self):
        """Whether a bar has been drawn."""
        self.read()
        return "█" in self.seen.decode("utf-8", "replace") or "░" in self.seen.decode("utf-8", "replace")

    def end(self):
        until(lambda: self.read() or self.child.poll() is not None, "the command ends", 60)
        while self.child.poll() is None:
            self.read()
        code = self.child.wait()
        while self.read():
            pass
        os.close(self.master)
        return code, screen(self.seen.decode("utf-8", "replace"))


def screen(text):
    """The lines that a terminal shows after it was given this text."""
    lines, row, column, at = [""], 0, 0, 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == "\x1b":
            assert text[at] == "[", text[at : at + 10]
            end = at + 1
            while not text[end].isalpha():
                end += 1
            number, what = text[at + 1 : end], text[end]
            at = end + 1
            if what == "K":
                lines[row] = "" if number == "2" else lines[row][:column]
            elif what == "A":
                row = max(row - int(number or 1), 0)
            elif what == "B":
                row = min(row + int(number or 1), len(lines) - 1)
        elif letter == "\r":
            column = 0
        elif letter == "\n":
            row += 1
            if row == len(lines):
                lines.append("")
        else:
            lines[row] = lines[row][:column].ljust(column) + letter + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines if line.strip()]


def test_the_screen_of_this_test():
    assert screen("a\rb\x1b[2K\rc\r\nde\x1b[1A\rx\x1b[K") == ["x", "de"]


def stands_still(up):
    up.send(1, signal.SIGSTOP)


def test_ctrl_c_in_a_put(up, tmp_path):
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.truncate(1 << 30)
    stands_still(up)
    try:
        putting = Terminal(up, "put", source, up.url("/put"))
        until(putting.shown, "a bar is drawn")
        putting.child.send_signal(signal.SIGINT)
        code, left = putting.end()
    finally:
        up.send(1, signal.SIGCONT)
    assert (code, left) == (130, ["gristmill: stopped; an incomplete file is not stored"])
    until(up.works, "the nodes go on")


@pytest.mark.parametrize("how", [(), ("--checkpoint", "state")], ids=["plain", "checkpoint"])
def test_ctrl_c_in_a_run(up, how):
    up.put("/values", bytes(8 << 20), "--stripe", "64KiB")
    stands_still(up)
    try:
        running = Terminal(up, "run", "sum", up.url("/values"), "--type", "f64", "--lanes", "1", "--place", "client", *how)
        until(running.shown, "a bar is drawn")
        running.child.send_signal(signal.SIGINT)
        if not how:
            running.child.wait(60)
    finally:
        up.send(1, signal.SIGCONT)
    code, left = running.end()
    assert code == 130, left
    assert left == [] if not how else (len(left) == 1 and "goes on from state" in left[0]), left


def test_a_copy_that_fails_leaves_its_reason_only(up, tmp_path):
    up.put("/some", bytes(1 << 20), "--mode", "600")
    failing = Terminal(up, "get", up.url("/some"), tmp_path / "no" / "such" / "place")
    code, left = failing.end()
    assert code == 1 and len(left) == 1 and left[0].startswith("gristmill: "), left


@pytest.mark.parametrize("columns", [40, 100])
def test_long_answers_are_cut_to_the_terminal(up, columns):
    np.save(up.folder / "map.npy", np.arange(40 * 50.0).reshape(40, 50))
    np.save(up.folder / "box.npy", np.arange(2 * 40 * 50.0).reshape(2, 40, 50))
    code, left = Terminal(up, "run", "sum", "box.npy", "--axes", "0", columns=columns).end()
    lines = [line for line in left if line.endswith(" ...")]
    assert code == 0 and len(lines) == 20 and all(columns - 12 < len(line) <= columns for line in lines), left
    assert any("the beginning of 40x50" in line and "--json" in line for line in left)
    code, left = Terminal(up, "run", "mean", "map.npy", "--axes", "1", columns=columns).end()
    assert code == 0 and all(len(line) <= columns for line in left if "read" not in line and "binned" not in line), left
    shown = " ".join(left).split()
    assert all(f"{n}.5" in shown for n in range(24, 2000, 50)), left


def test_of_many_rows_the_first_are_shown(up):
    np.arange(1000.0).tofile(up.folder / "rows.f64")
    asked = ("run", "lookup", "rows.f64", "--type", "f64", "--where", ">= 500")
    code, left = Terminal(up, *asked, columns=80).end()
    assert code == 0 and [line.split() for line in left[:200]] == [[f"{n}", f"{n}.0"] for n in range(500, 700)]
    assert left[200] == "... and 300 more rows; a pipe (| less), a file (> FILE) or --json gives all" and "count" in left[201]
    assert len(up.grist.ok(*asked).splitlines()) == 500
