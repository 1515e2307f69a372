"""`gristmill top` on a terminal: keys and sizes. At the end the terminal is as it was before."""

import fcntl
import itertools
import os
import pty
import select
import signal
import struct
import subprocess
import termios

import pytest
from cluster import Nodes, until
from conftest import binary


@pytest.fixture(scope="module")
def nodes(clusters):
    return clusters(Nodes, nodes=3)


class Live:
    """`gristmill top` on its own terminal."""

    def __init__(self, cluster, rows=24, columns=80):
        self.outer, self.inner = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.inner)
        env = {**cluster.grist.env, "TERM": "xterm-256color"}
        command = [binary(), "top", cluster.url(), "--interval", "0.5"]
        self.child = subprocess.Popen(
            command, stdin=self.inner, stdout=self.inner, stderr=self.inner, env=env, start_new_session=True
        )
        self.seen = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if hasattr(self, "child"):
            self.child.send_signal(signal.SIGWINCH)

    def read(self):
        if select.select([self.outer], [], [], 0.02)[0]:
            self.seen += os.read(self.outer, 65_536)

    def until_seen(self, words):
        """Waits until these bytes are drawn. Earlier output does not count."""

        def look():
            self.read()
            assert self.child.poll() is None, self.seen
            return words in self.seen

        until(look, f"{words} is drawn")
        self.seen = b""

    def until_drawn_anew(self, words):
        """Waits until these bytes are drawn, also if they were drawn before. The program draws only changes, except after a change
        of the size. A key and a change of the size may arrive in any order, so the size changes until it was after the key."""
        widths = itertools.cycle((100, 101))

        def look():
            self.resize(24, next(widths))
            self.read()
            return words in self.seen

        until(look, f"{words} is drawn")
        self.seen = b""

    def press(self, keys):
        os.write(self.outer, keys)

    def ended(self):
        """Waits for the end and returns the exit code. The terminal must be as it was before."""

        def over():
            self.read()
            return self.child.poll() is not None

        until(over, "it ends")
        while select.select([self.outer], [], [], 0)[0]:
            self.seen += os.read(self.outer, 65_536)
        assert termios.tcgetattr(self.inner) == self.before
        for restored in (b"\x1b[?1049l", b"\x1b[?25h"):
            assert self.seen.rindex(restored) >= 0, self.seen
        assert b"panicked" not in self.seen
        return self.child.returncode

    def hang_up(self):
        """Closes the terminal."""
        for end in (self.outer, self.inner):
            os.close(end)
        self.outer = None

    def close(self):
        self.child.kill()
        self.child.wait()
        if self.outer is not None:
            self.hang_up()


@pytest.fixture
def live():
    made = []

    def start(*args, **how):
        made.append(Live(*args, **how))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.mark.parametrize("key", [b"q", b"\x1b", b"\x03"])
def test_a_live_picture_until_a_key_ends_it(nodes, live, key):
    top = live(nodes)
    top.until_seen(b"3 of 3 nodes answer")
    top.press(b"h")
    top.until_seen(b"q, Esc, Ctrl-C")
    top.press(b"?")
    top.until_seen(b"PROCESSORS")
    top.press(b"s")
    top.until_drawn_anew(b"processors used")
    for rows, columns in ((5, 20), (1, 1), (50, 200)):
        top.resize(rows, columns)
    top.until_seen(b"MEM")
    top.press(b"\x1b[B\x1b[A\x1b[6~\x1b[5~")
    top.press(key)
    assert top.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(nodes, live, number):
    top = live(nodes)
    top.until_seen(b"3 of 3 nodes answer")
    top.child.send_signal(number)
    assert top.ended() == 130


def test_it_ends_with_its_terminal(nodes, live):
    top = live(nodes)
    top.until_seen(b"3 of 3 nodes answer")
    # There is no signal, because the terminal belongs to no session.
    top.hang_up()
    until(lambda: top.child.poll() is not None, "it ends")
    assert top.child.returncode == 130


def test_an_entry_node_that_dies_is_told_and_waited_for(nodes_of_test, live):
    nodes = nodes_of_test(Nodes, nodes=2)
    top = live(nodes, columns=120)
    top.until_seen(b"2 of 2 nodes answer")
    nodes.kill(0)
    top.until_seen(b"no answer for ")
    nodes.start(0)
    # The line with the message is gone, and the lines below it move up.
    top.until_seen(b"NODE")
    top.press(b"q")
    assert top.ended() == 0


def test_a_first_question_without_an_answer_leaves_the_terminal_alone(nodes_of_test, live):
    nodes = nodes_of_test(Nodes, nodes=1)
    nodes.stop(0)
    top = live(nodes)
    until(lambda: top.read() or top.child.poll() is not None, "it ends")
    top.read()
    assert top.child.returncode == 1 and b"does not answer" in top.seen and b"\x1b[?1049h" not in top.seen
