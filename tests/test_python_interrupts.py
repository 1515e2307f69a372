"""Threads, forks, timeouts and Ctrl-C during requests from Python."""

import math
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from python_package import TIMEOUT, cluster, gm, huge, python, until_opened  # noqa: F401


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
    # If the request held the interpreter, this would return only after the request has ended.
    assert gm.run("sum", small, type="f64").sum == 45
    assert thread.is_alive()
    thread.join(TIMEOUT)
    assert isinstance(caught[0], TimeoutError) and "2 s" in str(caught[0])


INTERRUPTED = """
import sys, gristmill
try:
    gristmill.run("sum", sys.argv[1], type="uint8")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_a_fold(huge):
    child = python(INTERRUPTED, huge)
    until_opened(child, huge)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=TIMEOUT) == ("interrupted\n", "")


def test_ctrl_c_ends_waiting_for_a_node():
    # The node accepts the connection and never answers. Without Ctrl-C the request would fail as unavailable.
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


LAST_READ = """
import os, signal, sys, gristmill

class Short:
    def __init__(self):
        self.pieces = [b"new"]
    def read(self, size):
        if not self.pieces:
            os.kill(os.getpid(), signal.SIGINT)
            return b""
        return self.pieces.pop()

try:
    gristmill.put(Short(), sys.argv[1])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_after_the_last_read_leaves_nothing_either(cluster):
    gm.put(b"before", cluster.path("last"))
    child = python(LAST_READ, cluster.path("last"))
    assert child.communicate(timeout=TIMEOUT) == ("interrupted\n", "")
    assert gm.get(cluster.path("last")) == b"before"


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
