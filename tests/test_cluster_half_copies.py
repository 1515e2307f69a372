"""Copies to and from a cluster that break off in the middle. No partial file is left, and the old file stays."""

import os
import signal

import pytest
from cluster import Nodes, until
from conftest import one_message
from faults import BOUND, MIB, Background, SlowPut, noise, numbers, only_objects_of, visible


@pytest.fixture
def nodes(nodes_of_test):
    return nodes_of_test(Nodes, nodes=3)


@pytest.mark.parametrize("over_old", [False, True])
def test_a_node_dies_in_the_middle_of_a_put(nodes_of_test, nodes, over_old):
    old = numbers(30_000)
    nodes.put("/other", old, "--stripe", "4KiB")
    kept = ["/other"]
    if over_old:
        nodes.put("/file", old, "--stripe", "4KiB")
        kept.append("/file")
    put = SlowPut(nodes_of_test, nodes, "/file")
    nodes.kill(1)
    code, out, err = put.finish()
    assert code == 1 and not out and nodes.listen[1] in err, (code, out, err)
    assert ("file" in visible(nodes)) == over_old
    nodes.start(1)
    assert nodes.works()
    for path in kept:
        assert nodes.get(path) == old
    only_objects_of(nodes, *kept)
    nodes.put("/file", noise(1000))
    assert nodes.get("/file") == noise(1000)


def test_the_entry_node_dies_in_the_middle_of_a_put(nodes_of_test, nodes):
    old = numbers(30_000)
    nodes.put("/file", old, "--stripe", "4KiB")
    put = SlowPut(nodes_of_test, nodes, "/file")
    nodes.kill(0)
    code, out, err = put.finish()
    assert code == 1 and not out and nodes.entry in err, (code, out, err)
    nodes.start(0)
    assert nodes.get("/file") == old
    only_objects_of(nodes, "/file")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_client_dies_in_the_middle_of_a_put(nodes_of_test, nodes, how):
    old = numbers(30_000)
    nodes.put("/old", old, "--stripe", "4KiB")
    for path in ("/new", "/old"):
        put = SlowPut(nodes_of_test, nodes, path)
        put.put.signal(how)
        put.put.child.stdin = None
        put.put.child.wait(BOUND)
        assert visible(nodes) == {"old"}
        only_objects_of(nodes, "/old")
    assert nodes.get("/old") == old
    nodes.put("/new", old)
    assert nodes.get("/new") == old


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_get_that_is_interrupted_leaves_what_was_there(nodes_of_test, nodes, tmp_path, how):
    nodes.put("/file", noise(2 * MIB), "--stripe", "64KiB")
    there = tmp_path / "there"
    there.write_bytes(b"old")
    nodes.send(1, signal.SIGSTOP)  # so that the copy is certainly unfinished
    get = Background(nodes_of_test, nodes, "get", nodes.url("/file"), there)
    until(lambda: list(tmp_path.glob(".there.*")), "the copy has begun")
    get.signal(how)
    code, out, err = get.wait()
    assert code == 130 and not out and str(there) in err, (code, err)
    one_message(err.encode())
    assert [path.name for path in tmp_path.iterdir()] == ["there"] and there.read_bytes() == b"old"
    nodes.send(1, signal.SIGCONT)
    nodes.grist.ok("get", nodes.url("/file"), there)
    assert there.read_bytes() == noise(2 * MIB)


class SlowGet:
    """A copy to a pipe. Its beginning is read, and then nothing until `finish` is called."""

    def __init__(self, started, cluster, path, first):
        self.get = Background(started, cluster, "get", cluster.url(path), "-")
        self.first = b""
        while len(self.first) < first:
            # Python must not read ahead, or `finish` would miss those bytes.
            more = os.read(self.get.child.stdout.fileno(), first - len(self.first))
            assert more, self.get.wait()
            self.first += more

    def finish(self):
        """Reads the rest. Returns the exit code, all bytes and the errors."""
        out, err = self.get.child.communicate(timeout=BOUND)
        return self.get.child.returncode, self.first + out, err.decode()


def test_a_copy_in_order_goes_on_after_its_connection_was_cut(nodes_of_test, nodes):
    content = noise(96 * MIB)
    nodes.put("/file", content, "--stripe", "1MiB")
    get = SlowGet(nodes_of_test, nodes, "/file", MIB)
    for number in (1, 2):
        nodes.kill(number)
        nodes.start(number)
    until(nodes.works, "all is well again")
    code, out, err = get.finish()
    assert code == 0, err
    assert out == content


def test_the_rest_of_a_copy_is_never_that_of_another_file(nodes_of_test, nodes):
    content = noise(96 * MIB)
    nodes.put("/file", content, "--stripe", "1MiB")
    get = SlowGet(nodes_of_test, nodes, "/file", MIB)
    nodes.put("/file", noise(MIB), "--stripe", "1MiB")
    nodes.kill(1)
    nodes.start(1)
    code, out, err = get.finish()
    assert code == 1 and "replaced" in err, (code, err)
    one_message(err.encode())
    assert content.startswith(out)
