"""Nodes that start again over the same files, and wrong starts that are refused."""

from pathlib import Path

import pytest
from cluster import Nodes, Up


def test_a_restarted_cluster_finds_its_files(nodes_of_test):
    up = nodes_of_test(Up, nodes=3)
    content = bytes(300_000)
    up.put("/kept/a", content, "--stripe", "4KiB", "--mode", "640")
    before = up.stat("/kept/a")
    assert up.stop() == 0
    up.listen = "127.0.0.1:0"  # the nodes get new addresses
    up.start()
    after = up.stat("/kept/a")
    for same in ("id", "length", "mode", "owner", "created"):
        assert before[same] == after[same]
    assert up.get("/kept/a") == content
    assert up.grist.answer("count", up.url("/kept/a"), "--type", "u8")["result"] == {"count": 300_000}
    up.put("/kept/b", content)
    assert up.get("/kept/b") == content


def test_a_directory_is_used_by_one_node_only(nodes_of_test):
    nodes = nodes_of_test(Nodes, nodes=2)
    message = nodes.grist.refuses(
        1, "serve", "--target", nodes.node_dir(1), "--listen", "127.0.0.1:0", "--join", nodes.entry,
        "--key", nodes.node_dir(0) / "cluster.key",
    )  # fmt: skip
    assert str(nodes.node_dir(1)) in message
    assert nodes.works()


def test_a_node_without_the_key_does_not_join(nodes_of_test, tmp_path):
    nodes = nodes_of_test(Nodes, nodes=1)
    wrong = tmp_path / "wrong.key"
    wrong.write_text("ab" * 32 + "\n")
    wrong.chmod(0o600)
    join = ("serve", "--target", tmp_path / "stranger", "--listen", "127.0.0.1:0", "--join", nodes.entry)
    done = nodes.grist(*join, "--key", wrong)
    assert done.returncode in (1, 2) and b"key" in done.stderr, done.stderr
    assert list(nodes.addresses()) == [0]
    nodes.grist.refuses(2, *join)  # the message says that a key is needed
    nodes.grist.refuses(1, *join, "--key", Path("absent"))


def test_a_target_is_started_again_as_what_it_was(nodes_of_test, tmp_path):
    """Without this check the target would become an entry node with a new namespace and key, and its files would be lost to
    clients."""
    nodes = nodes_of_test(Nodes, nodes=2)
    content = bytes(range(256)) * 400
    nodes.put("/file", content, "--stripe", "4KiB")
    node, key = nodes.node_dir(1), nodes.node_dir(0) / "cluster.key"
    nodes.stop(1)
    before = sorted(path.name for path in node.iterdir())
    alone = ("serve", "--target", node, "--listen", "127.0.0.1:0")
    message = nodes.grist.refuses(2, *alone)
    assert str(node) in message and f"--join {nodes.entry}" in message and "--key" in message
    # A target of an earlier release has no file `cluster.joined`.
    (node / "cluster.joined").rename(tmp_path / "joined")
    assert "--join" in nodes.grist.refuses(2, *alone)
    (tmp_path / "joined").rename(node / "cluster.joined")
    assert sorted(path.name for path in node.iterdir()) == before
    nodes.start(1)
    assert nodes.get("/file") == content
    # The target of the entry node cannot join, and a target of another cluster cannot join.
    nodes.stop(0)
    join = ("--join", "127.0.0.1:1", "--key", key)
    message = nodes.grist.refuses(2, "serve", "--target", nodes.node_dir(0), "--listen", "127.0.0.1:0", *join)
    assert "entry node" in message and "--join" in message
    nodes.stop(1)
    other = tmp_path / "other.key"
    other.write_text("ab" * 32 + "\n")
    other.chmod(0o600)
    message = nodes.grist.refuses(2, *alone, "--join", nodes.entry, "--key", other)
    assert "another cluster" in message
    nodes.start(0)
    nodes.start(1)
    assert nodes.works() and nodes.get("/file") == content


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o606])
def test_a_key_that_others_may_read_is_refused(nodes_of_test, tmp_path, mode):
    nodes = nodes_of_test(Nodes, nodes=2)
    key = nodes.node_dir(0) / "cluster.key"
    assert key.stat().st_mode & 0o777 == 0o600
    copy = tmp_path / "copy.key"
    copy.write_bytes(key.read_bytes())
    copy.chmod(mode)
    nodes.stop(1)
    joins = ("serve", "--target", nodes.node_dir(1), "--listen", "127.0.0.1:0", "--join", nodes.entry, "--key", copy)
    message = nodes.grist.refuses(2, *joins)
    assert f"chmod 600 {copy}" in message
    nodes.stop(0)
    key.chmod(mode)
    message = nodes.grist.refuses(2, "serve", "--target", nodes.node_dir(0), "--listen", "127.0.0.1:0")
    assert f"chmod 600 {key}" in message
    key.chmod(0o600)
    nodes.start(0)
    nodes.start(1)
    assert nodes.works()


def test_a_port_in_use(nodes_of_test, tmp_path):
    up = nodes_of_test(Up, nodes=1)
    message = up.grist.refuses(1, "serve", "--target", tmp_path / "t", "--listen", up.entry)
    assert up.entry in message


def test_nodes_that_hold_files_are_not_left_out(nodes_of_test):
    up = nodes_of_test(Up, nodes=3)
    up.put("/file", bytes(300_000), "--stripe", "4KiB")
    assert up.stop() == 0
    for fewer in (1, 2):
        message = up.grist.refuses(2, "up", "--dir", up.folder / "store", "--nodes", fewer, "--listen", "127.0.0.1:0")
        assert "3 nodes" in message and "--nodes 3" in message, message
    up.count = 4
    up.start()
    assert up.get("/file") == bytes(300_000)
    assert len(up.addresses()) == 4
    up.put("/wider", bytes(300_000), "--stripe", "4KiB")
    assert len(up.stat("/wider")["targets"]) == 4


SERVE = ("serve", "--target", "t", "--listen")
WRONG = {
    "port alone": ((*SERVE, "7743"), ["7743", "127.0.0.1:7440"]),
    "no such port": ((*SERVE, "127.0.0.1:99999"), ["127.0.0.1:99999", "65535"]),
    "socket by a relative path": ((*SERVE, "unix:s.sock"), ["unix:s.sock", "absolute"]),
    "address to join": ((*SERVE, "127.0.0.1:0", "--join", "storage0"), ["storage0", "name:7440"]),
    "address to tell": ((*SERVE, "127.0.0.1:0", "--advertise", "storage0"), ["storage0", "name:7440"]),
    "no lanes": ((*SERVE, "127.0.0.1:0", "--lanes", "0"), ["--lanes", "1 to 1024"]),
    "lanes that are no number": ((*SERVE, "127.0.0.1:0", "--lanes", "all"), ["--lanes", "1 to 1024"]),
    "socket beyond the longest": ((*SERVE, "127.0.0.1:0", "--socket", "/" + "s" * 200), ["107 bytes"]),
    "up: port alone": (("up", "--dir", "u", "--listen", "7743"), ["7743", "127.0.0.1:7440"]),
    "up: socket": (("up", "--dir", "u", "--listen", "unix:/tmp/s.sock"), ["--socket"]),
    "up: no nodes": (("up", "--dir", "u", "--nodes", "0"), ["--nodes", "64"]),
    "up: no lanes": (("up", "--dir", "u", "--lanes", "0"), ["--lanes", "1 to 1024"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_right_is_refused_before_anything_is_made(grist, tmp_path, case):
    command, needles = WRONG[case]
    message = grist.refuses(2, *command)
    for needle in needles:
        assert needle in message, message
    assert not list(tmp_path.iterdir())


def test_an_administrator_is_named_as_users_are(grist):
    message = grist.refuses(2, "serve", "--target", "t", "--listen", "127.0.0.1:0", "--admin", "a b")
    assert '"a b"' in message and "user name" in message
