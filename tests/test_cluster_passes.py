"""Requests of several passes. The nodes exchange results among themselves until the request ends."""

import json
import signal

import numpy as np
import pytest
from cluster import Nodes, until
from faults import Background, fails, loses_a_node

POINTS = np.random.default_rng(4).normal(0, 100, (60_000, 4))
KMEANS = ("--type", "f64", "--param", "dims=4", "--param", "k=5", "--param", "seed=2")
MEDIAN = ("--type", "f64")


@pytest.fixture
def nodes(nodes_of_test):
    return nodes_of_test(Nodes, nodes=4)


def result(done):
    return json.loads(done)["result"]


@pytest.mark.parametrize("kernel, args", [("kmeans", KMEANS), ("median", MEDIAN)])
def test_the_same_bits_on_any_number_of_nodes(nodes, kernel, args):
    content = POINTS.tobytes()
    (nodes.folder / "plain").write_bytes(content)
    plain = result(nodes.grist.ok("run", kernel, "plain", *args, "--json"))
    for on in ("0", "3,1", "0,1,2", "1,0,3,2"):
        nodes.put("/points", content, "--stripe", "1000", "--on", on)
        answer = json.loads(nodes.grist.ok("run", kernel, nodes.url("/points"), *args, "--json"))
        assert answer["result"] == plain
        assert answer["report"]["bytes_read"] >= len(content)
        client = nodes.grist.ok("run", kernel, nodes.url("/points"), *args, "--json", "--place", "client")
        assert result(client) == plain


IMAGE = np.random.default_rng(6).integers(0, 255, (301, 257), dtype="u1")
BLUR = ("--type", "u8", "--param", "shape=301,257", "--param", "sigma=1.5")


@pytest.mark.parametrize(
    "content, kernel, args",
    [
        (POINTS, "kmeans", (*KMEANS, "--param", "labels=true")),
        (IMAGE, "gaussian", (*BLUR, "--param", "mode=reflect")),
        (IMAGE, "gaussian", (*BLUR, "--param", "mode=wrap")),
    ],
)
def test_bytes_are_the_same_wherever_they_are_made(nodes, content, kernel, args):
    (nodes.folder / "plain").write_bytes(content.tobytes())
    nodes.put("/stored", content.tobytes(), "--stripe", "5000")
    nodes.grist.ok("run", kernel, "plain", *args, "--output", "expected")
    expected = (nodes.folder / "expected").read_bytes()
    for place in ("storage", "client"):
        nodes.grist.ok("run", kernel, nodes.url("/stored"), *args, "--place", place, "--output", "made")
        assert (nodes.folder / "made").read_bytes() == expected
        made = nodes.grist.ok("run", kernel, nodes.url("/stored"), *args, "--place", place)
        assert made == expected


def test_one_request_brings_one_answer(nodes):
    """The bytes to the client do not grow with the passes, because nodes exchange the rest."""
    nodes.put("/points", POINTS.tobytes(), "--stripe", "64KiB")

    def moved(passes):
        given = ("--param", f"max_iter={passes}", "--param", "tol=0", "--param", "init=first", *KMEANS)
        return json.loads(nodes.grist.ok("run", "kmeans", nodes.url("/points"), *given, "--json"))["report"]

    short, long = moved(1), moved(12)
    assert long["rounds"] == short["rounds"] + 11
    assert long["bytes_to_client"] < short["bytes_to_client"] + 1000 < 20_000


def test_data_at_fault_is_told_as_by_one_process(nodes):
    broken = POINTS.copy()
    broken[40_000, 1] = np.nan
    nodes.put("/points", broken.tobytes(), "--stripe", "64KiB")
    said = nodes.grist.refuses(1, "run", "kmeans", nodes.url("/points"), *KMEANS)
    assert "coordinate 1 of point 40000" in said
    # No node is still busy.
    assert nodes.works()


LONG = ("--type", "f64", "--param", "dims=4", "--param", "k=400", "--param", "tol=0", "--param", "max_iter=10000")


def at_work(nodes):
    """Whether every node has begun to fold."""
    return all(seconds > 0.2 for seconds in nodes.processor_time())


@pytest.mark.parametrize("lost", [0, 2])
def test_a_node_that_dies_in_the_middle(nodes_of_test, nodes, lost):
    nodes.put("/points", POINTS.tobytes(), "--stripe", "64KiB")
    args = ("run", "kmeans", nodes.url("/points"), *LONG, "--param", "init=first")
    loses_a_node(nodes_of_test, nodes, lost, lambda: at_work(nodes), *args)
    assert result(nodes.grist.ok("run", "median", nodes.url("/points"), *MEDIAN, "--json"))["count"] == POINTS.size


def test_a_node_that_stands_still(nodes):
    nodes.put("/points", POINTS.tobytes(), "--stripe", "64KiB")
    nodes.send(2, signal.SIGSTOP)
    try:
        fails(nodes, "run", "median", nodes.url("/points"), *MEDIAN, names=(nodes.listen[2],))
    finally:
        nodes.send(2, signal.SIGCONT)
    until(nodes.works, "the nodes work again")


def test_a_client_that_goes_away_stops_the_nodes(nodes_of_test, nodes):
    nodes.put("/points", POINTS.tobytes(), "--stripe", "64KiB")
    request = Background(nodes_of_test, nodes, "run", "kmeans", nodes.url("/points"), *LONG, "--param", "init=first")
    until(lambda: at_work(nodes), "the nodes fold")
    request.kill()
    request.child.wait(20)

    def idle():
        before = list(nodes.processor_time())
        nodes.grist.ok("nodes", nodes.url())
        nodes.grist.ok("nodes", nodes.url())
        return sum(nodes.processor_time()) - sum(before) < 0.05

    until(idle, "the nodes fold no more")
    assert nodes.works()


def test_many_requests_at_once(nodes_of_test, nodes):
    nodes.put("/points", POINTS.tobytes(), "--stripe", "64KiB")
    args = ("run", "kmeans", nodes.url("/points"), *KMEANS, "--json")
    requests = [Background(nodes_of_test, nodes, *args) for _ in range(12)]
    results = {json.dumps(result(each.child.communicate(timeout=120)[0])) for each in requests}
    assert len(results) == 1
