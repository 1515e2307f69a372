"""Nodes and clients that find each other through Ceph (`serve --ceph rados://POOL/CLUSTER`), over a real cluster."""

import math
import subprocess
import sys

import ceph_cluster
import pytest
from cluster import Nodes, until

pytestmark = pytest.mark.ceph

#: The namespace in which the user `asker` of Ceph may look.
CLUSTER = "cluster"
PLACE = f"rados://{ceph_cluster.NODE_POOL}/{CLUSTER}"
NAME = "/x.f64"
#: A bound on a hang: the lease of a node that was killed lasts 30 seconds.
LEASE = 120


class RegisteredNodes(Nodes):
    """Nodes that are all started with the same words but for their own place."""

    made = 0

    def __init__(self, folder, **how):
        RegisteredNodes.made += 1
        self.stores = f"registered{RegisteredNodes.made}"
        super().__init__(folder, **how)

    def cluster_of(self, number):
        return ("--ceph", PLACE, "--key", self.folder / "cluster.key")

    def args_of(self, number):
        return ("--admin", "anonymous", "--objects", f"rados://{ceph_cluster.NODE_POOL}/{self.stores}.{number}")

    def move(self, number):
        """Starts a node that has ended with another address."""
        before = self.listen.pop(number)
        self.start(number)
        assert self.listen[number] != before


@pytest.fixture(scope="module")
def ceph(tmp_path_factory):
    yield from ceph_cluster.started(ceph_cluster.Rados, tmp_path_factory)


@pytest.fixture
def nodes(ceph, clusters):
    yield (nodes := clusters(RegisteredNodes, nodes=2, env=ceph.env))
    nodes.end()
    # The next test makes a new cluster of the same name.
    ceph.rados(CLUSTER, "rm", "nodes")


@pytest.fixture
def client(ceph, nodes):
    """The command of a user who may look for the nodes, and nothing else."""
    nodes.grist.env.update({**ceph.env, "CEPH_ARGS": "--id asker", "GRISTMILL_CLUSTER": PLACE})
    return nodes.grist


@pytest.fixture(scope="module")
def numbers():
    return ceph_cluster.numbers()


def put(client, folder, numbers):
    source = folder / "numbers"
    source.write_bytes(numbers.tobytes())
    client.ok("put", source, f"grist://{NAME}")
    return math.fsum(numbers)


def total(client, *words):
    return client.ask("sum", f"grist://{NAME}", "--type", "f64", *words)["sum"]


def test_nobody_needs_an_address(ceph, client, nodes, numbers):
    exact = put(client, nodes.folder, numbers)
    assert total(client, "--place", "storage") == exact
    program = f"import gristmill as gm; print(float(gm.run('sum', 'grist://{NAME}', type='f64')['sum']))"
    done = subprocess.run([sys.executable, "-c", program], env=client.env, capture_output=True, text=True)
    assert done.stdout.strip() == repr(exact), done.stderr
    assert "2 nodes" in client.ok("top", "--once").decode()


def test_the_entry_node_may_move(client, nodes, numbers):
    exact = put(client, nodes.folder, numbers)
    nodes.stop(0)
    said = client.refuses(1, "ls", "grist:///")
    assert PLACE in said and "entry node is not running" in said
    nodes.move(0)
    assert total(client) == exact
    # A node that starts finds it there.
    nodes.kill(1)
    nodes.move(1)
    assert total(client, "--place", "storage") == exact


def test_a_node_finds_an_entry_node_that_moved(ceph, client, nodes, numbers):
    exact = put(client, nodes.folder, numbers)
    nodes.kill(0)
    nodes.move(0)
    # The entry node knows from the heartbeat of the other one that it is there.
    until(lambda: client("run", "sum", f"grist://{NAME}", "--type", "f64", "--place", "storage").returncode == 0, "it is back", LEASE)
    assert total(client, "--place", "storage") == exact


def test_the_lease_of_a_node_that_was_killed_ends(ceph, client, nodes):
    leases = lambda: ceph.rados(CLUSTER, "lock", "info", "nodes", "node")
    assert nodes.listen[0] in leases() and nodes.listen[1] in leases()
    client.ok("ls", "grist:///")
    nodes.kill(0)
    until(lambda: nodes.listen[0] not in leases(), "the lease has ended", LEASE)
    assert nodes.listen[1] in leases()
    assert "entry node is not running" in client.refuses(1, "ls", "grist:///")
    nodes.start(0)
    client.ok("ls", "grist:///")


def test_an_entry_node_of_another_cluster_is_refused(ceph, clusters, nodes, grist):
    """Its files would have two entry nodes."""
    other = clusters(Nodes, nodes=1)
    other.end()
    start = ("serve", "--target", other.node_dir(0), "--listen", "127.0.0.1:0", "--ceph", PLACE)
    said = grist.refuses(2, *start, env=ceph.env)
    assert f"{PLACE} has another entry node" in said


def test_what_is_wrong_is_told(ceph, grist, tmp_path):
    start = ("serve", "--target", tmp_path / "t", "--listen", "127.0.0.1:0")
    for wrong in ("rados://gristmill", "gristmill", "rados://a b/c"):
        assert "give rados://POOL/NAME" in grist.refuses(2, *start, "--ceph", wrong, env=ceph.env)
    assert "--join" in grist.refuses(2, *start, "--ceph", PLACE, "--join", "127.0.0.1:1", env=ceph.env)
    assert "there is no pool nowhere" in grist.refuses(1, *start, "--ceph", "rados://nowhere/x", env=ceph.env)

    def asked(cluster, user="asker"):
        env = {**ceph.env, "CEPH_ARGS": f"--id {user}", "GRISTMILL_CLUSTER": cluster}
        return grist.refuses(2 if cluster.count("/") < 3 else 1, "ls", "grist:///", env=env)

    assert "no storage node has registered there" in asked(PLACE)
    assert "give rados://POOL/NAME" in asked("rados://gristmill")
    assert "osd: allow r class-read pool=gristmill namespace=elsewhere" in asked("rados://gristmill/elsewhere")
    assert "client.nobody" in asked(PLACE, "nobody")
