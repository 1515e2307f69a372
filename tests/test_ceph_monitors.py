"""Nodes over a pool of Ceph while its monitors lose their quorum and get it back."""

import math

import ceph_cluster
import pytest
from cluster import Nodes, until

pytestmark = pytest.mark.ceph

NAME = "/x.f64"
SETTLING = 120  # seconds; a bound on a hang


class Monitored(ceph_cluster.Rados):
    """Two of the monitors are a quorum."""

    MONITORS = ("a", "b", "c")


class PoolNodes(Nodes):
    """Nodes that keep their objects in the pool."""

    def args_of(self, number):
        return ("--admin", "anonymous", "--objects", f"rados://{ceph_cluster.NODE_POOL}/monitored.{number}")


@pytest.fixture(scope="module")
def ceph(tmp_path_factory):
    yield from ceph_cluster.started(Monitored, tmp_path_factory)


def test_a_quorum_that_is_lost_and_regained(ceph, clusters):
    nodes = clusters(PoolNodes, nodes=2, env=ceph.env)
    numbers = ceph_cluster.numbers()
    source = nodes.folder / "numbers"
    source.write_bytes(numbers.tobytes())
    total = lambda name: nodes.grist.ask("sum", nodes.url(name), "--type", "f64", "--place", "storage")["sum"]
    nodes.grist.ok("put", source, nodes.url(NAME))
    ceph.kill(ceph.monitors["b"])
    until(ceph.has_quorum, "the other two are a quorum", SETTLING)
    assert total(NAME) == math.fsum(numbers)
    ceph.kill(ceph.monitors["c"])
    until(lambda: not ceph.has_quorum(), "one monitor is no quorum", SETTLING)
    # Nodes have the map of the cluster. While it does not change, they read and write without a monitor.
    assert total(NAME) == math.fsum(numbers)
    nodes.grist.ok("put", source, nodes.url("/without.f64"))
    assert total("/without.f64") == math.fsum(numbers)
    # A node that starts needs a monitor, and says so.
    nodes.stop(1)
    words = ("--target", nodes.node_dir(1), "--listen", nodes.listen[1], *nodes.cluster_of(1), *nodes.args_of(1))
    done = nodes.grist("serve", *words, env=ceph.env)
    assert done.returncode == 1 and b"the monitors did not answer" in done.stderr, done
    assert ceph.start_monitors("b", "c")
    nodes.start(1)
    for name in (NAME, "/without.f64"):
        assert total(name) == math.fsum(numbers)
