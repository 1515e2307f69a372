"""An entry node that is down for a moment or still starts: commands wait for it, for a bounded time."""

import json
import os
import re
import signal
import socket
import threading
from pathlib import Path

import pytest
from cluster import Nodes, Up, until
from faults import Background


class Door:
    """Stands between clients and a node. It breaks off the first connections and forwards the others."""

    def __init__(self, address, broken):
        host, port = address.rsplit(":", 1)
        self.to, self.broken, self.seen = (host, int(port)), broken, 0
        self.listener = socket.create_server((host, 0))
        self.address = f"{host}:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.seen += 1
            if self.seen <= self.broken:
                client.close()
                continue
            node = socket.create_connection(self.to)
            for one, other in ((client, node), (node, client)):
                threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    @staticmethod
    def copy(one, other):
        try:
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=2)


@pytest.fixture
def door(up):
    made = []

    def make(broken):
        made.append(Door(up.entry, broken))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("command", ["stat", "ls", "get", "put", "chmod", "run", "nodes"])
def test_an_entry_node_that_breaks_off_is_asked_again(up, door, tmp_path, command):
    up.put("/file", b"12345678")
    source = tmp_path / "source"
    source.write_bytes(b"1")
    before = door(2)
    url = f"grist://{before.address}/file"
    args = {
        "get": ("get", url, "-"), "put": ("put", source, f"grist://{before.address}/new"),
        "chmod": ("chmod", "644", url), "run": ("run", "count", url, "--type", "u8"),
        "nodes": ("nodes", f"grist://{before.address}/"),
    }.get(command, (command, url))  # fmt: skip
    up.grist.ok(*args)
    assert before.seen > 2


def test_what_may_have_been_done_is_not_done_twice(up, door):
    up.put("/once", b"1")
    before = door(1)
    message = up.grist.refuses(1, "rm", f"grist://{before.address}/once")
    assert before.address in message and before.seen == 1
    up.grist.ok("rm", up.url("/once"))


def test_a_command_waits_for_an_entry_node_as_long_as_it_is_told(nodes_of_test):
    nodes = nodes_of_test(Nodes, nodes=2)
    nodes.put("/file", b"12345678")
    nodes.kill(0)
    url = nodes.url("/file")
    waiting = {
        "flag": Background(nodes_of_test, nodes, "get", url, "-", "--wait", "120"),
        "remove": Background(nodes_of_test, nodes, "rm", nodes.url("/other"), "--wait", "120"),
    }
    nodes.start(0)
    assert waiting["flag"].child.communicate(timeout=120)[0] == b"12345678"
    _, said = waiting["remove"].child.communicate(timeout=120)
    assert waiting["remove"].child.returncode == 2 and b"/other" in said, said
    nodes.kill(0)
    by_environment = Background(nodes_of_test, nodes, "stat", url, env={"GRISTMILL_WAIT": "120"})
    nodes.start(0)
    out, said = by_environment.child.communicate(timeout=120)
    assert by_environment.child.returncode == 0 and b"8 bytes" in out, said


@pytest.mark.parametrize("wait", ["-1", "soon", "inf", "nan", "1e9"])
def test_times_to_wait_that_are_none(grist, wait):
    assert wait in grist.refuses(2, "ls", "grist://127.0.0.1:1/", f"--wait={wait}")
    assert wait in grist.refuses(2, "ls", "grist://127.0.0.1:1/", env={"GRISTMILL_WAIT": wait})


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def test_put_at_once_behind_up(nodes_of_test, grist, tmp_path):
    """`gristmill up & gristmill put`: however early the put comes, the file lies on all nodes."""
    listen = f"127.0.0.1:{free_port()}"
    source = tmp_path / "source"
    source.write_bytes(bytes(100_000))
    nodes_of_test.process(tmp_path, "up", ("up", "--dir", tmp_path / "store", "--nodes", 3, "--listen", listen))
    url = f"grist://{listen}/file"
    grist.ok("put", source, url, "--stripe", "4KiB", "--wait", "60")
    about = json.loads(grist.ok("stat", url, "--json"))
    assert [target["target"] for target in about["targets"]] == [0, 1, 2]
    assert grist.ok("get", url, "-") == bytes(100_000)


def running(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_up_in_the_background(grist, tmp_path):
    said = grist.ok("up", "--dir", tmp_path / "store", "--nodes", 2, "--listen", "127.0.0.1:0", "--wait").decode()
    pid = int(re.search(r"kill (\d+)", said)[1])
    try:
        url = re.search(r"grist://\S+", said)[0]
        source = tmp_path / "source"
        source.write_bytes(b"12345678")
        grist.ok("put", source, url + "file", "--stripe", "1")
        assert len(json.loads(grist.ok("stat", url + "file", "--json"))["targets"]) == 2
        taken = url.removeprefix("grist://").rstrip("/")
        done = grist("up", "--dir", tmp_path / "other", "--nodes", 1, "--listen", taken, "--wait")
        assert done.returncode == 1 and f"{taken} is in use".encode() in done.stderr, done
        assert not (tmp_path / "other").exists()
    finally:
        os.kill(pid, signal.SIGTERM)
    until(lambda: not running(pid), "the nodes stop")
    grist.refuses(1, "ls", url)
