"""Nodes that hold no files of the cluster: they fold files of attached trees."""

import json

import attached
import numpy as np
import pytest
from cluster import Nodes

NUMBERS = np.random.default_rng(4).normal(size=3_000_000)


class Mixed(Nodes):
    """Nodes of which only some hold files."""

    holding = (0,)

    def args_of(self, number):
        return self.args if number in self.holding else (*self.args, "--without-store")


@pytest.fixture
def mount(tmp_path_factory):
    mount = attached.Mounted(tmp_path_factory.mktemp("mount"))
    mount.put("x.f64", NUMBERS.tobytes())
    return mount


def test_all_nodes_fold_and_one_holds_files(nodes_of_test, mount, tmp_path):
    up = nodes_of_test(Mixed, nodes=3, args=("--admin", "anonymous"))
    lines = up.grist.ok("nodes", up.url("/")).decode().splitlines()
    assert [line.endswith("up, without files") for line in lines] == [False, True, True]
    shown = json.loads(up.grist.ok("nodes", up.url("/"), "--json"))["nodes"]
    assert [node["without_store"] for node in shown] == [False, True, True]
    assert "targets 0, 1, 2" in up.grist.ok("attach", mount.source, up.url("/m")).decode()
    local = up.grist.answer("sum", mount.folder / "x.f64", "--type", "f64")["result"]
    answer = up.grist.answer("sum", up.url("/m/x.f64"), "--type", "f64", "--place", "storage")
    assert answer["result"] == local
    assert len({place["node"] for place in answer["report"]["places"] if place["bytes"]}) == 3
    # Files go to the node that holds files.
    up.grist.ok("put", mount.folder / "x.f64", up.url("/x.f64"))
    assert [target["target"] for target in up.stat("/x.f64")["targets"]] == [0]
    assert up.get("/x.f64") == NUMBERS.tobytes()
    assert "1 targets of the cluster" in up.grist.refuses(2, "put", mount.folder / "x.f64", up.url("/y.f64"), "--targets", "2")
    up.grist.ok("fsck", up.url("/"))
    up.grist.ok("scrub", up.url("/"))
    assert "in an attached tree" in up.grist.refuses(2, "scrub", up.url("/m/x.f64"))
    # The entry node knows it also after a restart.
    for number in (2, 1, 0):
        up.stop(number)
    for number in range(3):
        up.start(number)
    up.grist.ok("put", mount.folder / "x.f64", up.url("/z.f64"))
    assert [target["target"] for target in up.stat("/z.f64")["targets"]] == [0]
    assert up.grist.answer("sum", up.url("/m/x.f64"), "--type", "f64", "--place", "storage")["result"] == local


def test_a_cluster_without_any_store(nodes_of_test, mount):
    kind = type("Bare", (Mixed,), {"holding": ()})
    up = nodes_of_test(kind, nodes=2, args=("--admin", "anonymous"))
    up.grist.ok("attach", mount.source, up.url("/m"))
    local = up.grist.answer("sum", mount.folder / "x.f64", "--type", "f64")["result"]
    assert up.grist.answer("sum", up.url("/m/x.f64"), "--type", "f64")["result"] == local
    text = up.grist.refuses(2, "put", mount.folder / "x.f64", up.url("/x.f64"))
    assert "no node of the cluster holds files" in text


def test_a_target_with_files_is_not_started_without_its_store(nodes_of_test, grist):
    up = nodes_of_test(Nodes, nodes=1)
    up.stop(0)
    text = grist.refuses(2, "serve", "--target", up.node_dir(0), "--listen", "127.0.0.1:0", "--without-store")
    assert "has a store" in text and str(up.node_dir(0)) in text
