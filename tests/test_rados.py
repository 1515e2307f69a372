"""Storage nodes that keep their objects in a pool of Ceph (`serve --objects rados://POOL/NAME`), over a real cluster."""

import json
import math
import os
import subprocess
from pathlib import Path

import ceph_cluster
import pytest
from cluster import Nodes, Up, until

pytestmark = pytest.mark.ceph

DAEMONS, COPIES = 3, 2
NODES = 2
#: Bytes of a piece of an object in Ceph.
PIECE = 4 << 20
NAME = "/x.f64"


class Pool(ceph_cluster.Rados):
    """Each object has two copies."""

    def __init__(self, folder):
        super().__init__(folder, "bluestore", DAEMONS, COPIES)


class NodesOverCeph(Nodes):
    """Nodes that have the addresses of storage daemons, as on the same machines."""

    stores = 0

    def __init__(self, folder, **how):
        NodesOverCeph.stores += 1
        self.prefix = f"cluster{NodesOverCeph.stores}"
        super().__init__(folder, nodes=NODES, **how)

    def start(self, number):
        self.listen.setdefault(number, f"127.0.0.{number + 2}:0")
        super().start(number)

    def name_of(self, number):
        return f"{self.prefix}.node{number}"

    def args_of(self, number):
        return ("--admin", "anonymous", "--objects", f"rados://{ceph_cluster.NODE_POOL}/{self.name_of(number)}")


@pytest.fixture(scope="module")
def ceph(tmp_path_factory):
    yield from ceph_cluster.started(Pool, tmp_path_factory)


@pytest.fixture(scope="module")
def numbers():
    return ceph_cluster.numbers()


@pytest.fixture
def nodes(clusters, ceph):
    return clusters(NodesOverCeph, env=ceph.env)


def pieces(ceph, nodes) -> dict:
    """The names of the pieces of each node."""
    return {number: [name for name in ceph.names(nodes.name_of(number)) if name.startswith("p.")] for number in range(NODES)}


def test_the_suite_of_stores(ceph):
    command = ["cargo", "test", "--quiet", "--package", "gristmill-rados", "--test", "cluster", "--", "--test-threads", "4"]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, env={**os.environ, **ceph.env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


def test_nodes_fold_what_lies_on_their_machine(ceph, nodes, numbers):
    path = nodes.put(NAME, numbers.tobytes())
    answer = nodes.grist.answer("sum", path, "--type", "f64", "--place", "storage")
    assert answer["result"]["sum"] == math.fsum(numbers)
    assert answer["report"]["bytes_to_client"] < 10_000, answer["report"]
    assert nodes.get(NAME) == numbers.tobytes()
    for number, names in pieces(ceph, nodes).items():
        assert len(names) == math.ceil(len(numbers) * 8 / NODES / PIECE), names
        for name in names:
            placed = json.loads(ceph.ceph("osd", "map", ceph_cluster.NODE_POOL, name, nodes.name_of(number), "--format", "json"))
            assert placed["acting_primary"] == number and len(placed["acting"]) == COPIES, placed
    assert "all as the files say" in nodes.grist.ok("fsck", nodes.url()).decode()
    nodes.grist.ok("scrub", nodes.url())
    nodes.grist.ok("rm", path)
    until(lambda: not any(pieces(ceph, nodes).values()), "the pieces are gone")
    assert all(ceph.names(nodes.name_of(number)) == ["store"] for number in range(NODES))


def test_a_node_that_was_killed_has_what_it_acknowledged(nodes, numbers):
    path = nodes.put(NAME, numbers.tobytes())
    for number in (1, 0):
        nodes.kill(number)
        nodes.start(number)
        assert nodes.grist.ask("sum", path, "--type", "f64")["sum"] == math.fsum(numbers)
    assert nodes.get(NAME) == numbers.tobytes()


def test_a_daemon_that_is_gone_changes_no_answer(ceph, nodes, numbers):
    path = nodes.put(NAME, numbers.tobytes())
    ceph.kill(ceph.osds[1])
    try:
        assert nodes.grist.ask("sum", path, "--type", "f64")["sum"] == math.fsum(numbers)
        again = nodes.put("/again.f64", numbers.tobytes())
        assert nodes.grist.ask("sum", again, "--type", "f64")["sum"] == math.fsum(numbers)
    finally:
        ceph.start_osd(1)
    assert nodes.get("/again.f64") == numbers.tobytes()


def test_a_full_pool_refuses_files_and_can_be_emptied(ceph, nodes, numbers):
    path = nodes.put(NAME, numbers.tobytes())
    source = nodes.folder / "more"
    source.write_bytes(numbers.tobytes())
    ceph.fill(1e-6)
    try:
        until(ceph.is_full, "the pool is full", ceph_cluster.STARTING)
        refused = nodes.grist("put", source, nodes.url("/more"))
        assert refused.returncode == 1 and b"space" in refused.stderr, refused.stderr
        # A node takes its lock in a full pool, too.
        nodes.kill(1)
        nodes.start(1)
        assert nodes.grist.ask("sum", path, "--type", "f64")["sum"] == math.fsum(numbers)
        nodes.grist.ok("rm", path)
        until(lambda: not any(pieces(ceph, nodes).values()), "the pieces are gone")
    finally:
        ceph.fill(0.97)
    until(lambda: nodes.grist("put", source, nodes.url("/more")).returncode == 0, "there is room again", ceph_cluster.STARTING)
    assert nodes.get("/more") == numbers.tobytes()


def test_a_node_keeps_its_place(ceph, nodes, grist, tmp_path):
    """Elsewhere a node would have no parts of files."""
    nodes.put(NAME, b"1" * 1000)
    listen, pool = ("--listen", "127.0.0.1:0"), ceph_cluster.NODE_POOL
    running = f"rados://{pool}/{nodes.name_of(1)}"
    said = grist.refuses(1, "serve", "--target", tmp_path / "new", *listen, "--objects", running, env=ceph.env)
    assert f"store {running} is open for writing in another process" in said
    nodes.stop(1)
    join = ("--join", nodes.entry, "--key", nodes.node_dir(0) / "cluster.key")
    for objects in ((), ("--without-store",), ("--objects", f"rados://{pool}/other")):
        said = grist.refuses(2, "serve", "--target", nodes.node_dir(1), *listen, *join, *objects, env=ceph.env)
        assert f"keeps its objects in {running}" in said and f"--objects {running}" in said, said
    (tmp_path / "old" / "objects").mkdir(parents=True)
    (tmp_path / "old").chmod(0o700)
    said = grist.refuses(2, "serve", "--target", tmp_path / "old", *listen, "--objects", running, env=ceph.env)
    assert "without --objects" in said
    nodes.start(1)
    assert nodes.get(NAME) == b"1" * 1000


def test_up_gives_each_node_a_name(ceph, clusters, numbers):
    up = clusters(Up, nodes=NODES, args=("--objects", f"rados://{ceph_cluster.NODE_POOL}/up"), env=ceph.env)
    path = up.put(NAME, numbers.tobytes())
    up.restart()
    assert up.grist.ask("sum", path, "--type", "f64")["sum"] == math.fsum(numbers)
    assert all(ceph.names(f"up.node{number}")[-1] == "store" for number in range(NODES))
    assert not up.objects()


def test_what_is_wrong_is_told(ceph, grist, tmp_path):
    start = ("serve", "--target", tmp_path / "t", "--listen", "127.0.0.1:0", "--objects")
    for place in ("rados://gristmill", "rados:///x", "rados://a/b/c", "/tmp/x", "rados://a/b c"):
        assert "give rados://POOL/NAME" in grist.refuses(2, *start, place, env=ceph.env)
    assert "there is no pool nowhere" in grist.refuses(1, *start, "rados://nowhere/x", env=ceph.env)
    ceph.make_coded_pool("coded")
    assert "use a replicated pool" in grist.refuses(1, *start, "rados://coded/x", env={**ceph.env, "CEPH_ARGS": "--id admin"})
    weak = {**ceph.env, "CEPH_ARGS": "--id reader"}
    assert "osd: allow rwx" in grist.refuses(1, *start, "rados://gristmill/x", env=weak)
    nobody = {**ceph.env, "CEPH_ARGS": "--id nobody"}
    assert "client.nobody" in grist.refuses(1, *start, "rados://gristmill/x", env=nobody)
