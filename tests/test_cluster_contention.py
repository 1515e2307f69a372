"""Where requests run when nodes are busy: the decision, its report, and answers that do not depend on it."""

import json
import re
import subprocess

import numpy as np
import pytest
from cluster import Nodes, metrics, until
from conftest import binary
from faults import Background

MIB = 1 << 20
NUMBERS = np.random.default_rng(3).normal(0, 1e6, 700_000)
TEXT = b"".join(b"%d has %d legs\n" % (n, n % 7) for n in range(120_000))
IMAGE = np.random.default_rng(6).integers(0, 255, (4001, 2003), dtype="u1")


@pytest.fixture
def busy(nodes_of_test):
    """Nodes whose administrator allows no active work on them."""
    return nodes_of_test(Nodes, nodes=3, args=("--active-share", "0"))


@pytest.mark.parametrize(
    "content, kernel, args",
    [
        (NUMBERS, "sum", ("--type", "f64")),
        (NUMBERS, "var", ("--type", "f64")),
        (NUMBERS, "median", ("--type", "f64")),
        (NUMBERS, "lookup", ("--type", "f64", "--param", "where=> 2e6")),
        (NUMBERS, "kmeans", ("--type", "f64", "--param", "dims=4", "--param", "k=3", "--param", "seed=1")),
        (TEXT, "wc", ()),
        (TEXT, "grep", ("--param", "pattern=99 has 3")),
    ],
)
def test_nodes_that_take_no_work_have_it_done_by_who_asks(busy, content, kernel, args):
    content = content if isinstance(content, bytes) else content.tobytes()
    url = busy.put("/data", content, "--stripe", "100000")
    done = busy.grist("run", kernel, url, *args, "--json", "--explain")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:-1] == busy.grist.ok("run", kernel, url, *args, "--json", "--place", "client").splitlines()[:-1]
    said = done.stderr.decode()
    assert said.startswith("place: client (the nodes have more to do than this process)"), said
    assert said.count("\nnode ") == 3 and said.count("storage not possible, client ") == 3, said
    report = json.loads(done.stdout.splitlines()[-1])["report"]
    assert {place["place"] for place in report["places"]} == {"client"}
    refused = busy.grist.refuses(1, "run", kernel, url, *args, "--place", "storage")
    assert "--active-share 0" in refused and "--place client" in refused


def test_parts_of_a_request_run_where_there_is_room(nodes_of_test):
    # Target 1 takes no work; the others do.
    nodes = nodes_of_test(Nodes, nodes=3)
    nodes.running[1].end()
    nodes.args = ("--active-share", "0")
    nodes.start(1)
    url = nodes.put("/numbers", NUMBERS.tobytes(), "--stripe", "64KiB")
    (nodes.folder / "plain").write_bytes(NUMBERS.tobytes())
    for kernel, *args in (["sum"], ["minmax"], ["lookup", "--param", "where=> 3e6"]):
        args = ("--type", "f64", *args, "--json")
        done = nodes.grist("run", kernel, url, *args, "--explain")
        lines = done.stdout.splitlines()
        plain = nodes.grist.ok("run", kernel, "plain", *args).splitlines()
        assert lines[:-1] == plain[:-1]
        answer = json.loads(lines[-1])
        assert answer["result"] == json.loads(plain[-1])["result"]
        places = [(place["place"], place["node"][0]) for place in answer["report"]["places"] if place["bytes"]]
        assert sorted(places) == [("client", "1"), ("storage", "0"), ("storage", "2")], places
        [revision] = answer["report"]["revisions"]
        assert revision["place"] == "client" and revision["nodes"][0].startswith("1 ("), revision
        said = done.stderr.decode()
        assert said.startswith("place: storage for 2 of 3 nodes, client for 1 (each where"), said
        assert re.search(r"node 1 \S+: client,", said) and re.search(r"node 0 \S+: storage,", said), said
        # Only the part of one node came over the network.
        assert report_bytes(answer) < 0.4 * NUMBERS.nbytes


def report_bytes(answer):
    return answer["report"]["bytes_to_client"]


def test_small_requests_do_not_ask_first(nodes_of_test):
    nodes = nodes_of_test(Nodes, nodes=2)
    url = nodes.put("/small", NUMBERS[:1000].tobytes())
    done = nodes.grist("run", "sum", url, "--type", "f64", "--explain")
    assert done.stderr.count(b"\n") == 2 and b"node " not in done.stderr, done.stderr


def test_a_flood_is_answered_wherever_it_runs(nodes_of_test):
    """More requests at once than a node has cores, with little processor time: nodes hand some back, and all answers are the
    same."""
    nodes = nodes_of_test(Nodes, nodes=2, args=("--active-share", "0.02", "--link", "125MB"))
    url = nodes.put("/image", IMAGE.tobytes(), "--stripe", "200000")
    (nodes.folder / "plain").write_bytes(IMAGE.tobytes())
    args = ("--type", "u8", "--param", "shape=4001,2003", "--param", "sigma=2")
    nodes.grist.ok("run", "gaussian", "plain", *args, "--output", "expected")
    expected = (nodes.folder / "expected").read_bytes()
    running = [
        subprocess.Popen(
            [binary(), "run", "gaussian", url, *args, "--output", f"made{n}", "--json"],
            cwd=nodes.folder,
            stdout=subprocess.PIPE,
        )
        for n in range(12)
    ]
    places = set()
    for n, process in enumerate(running):
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert (nodes.folder / f"made{n}").read_bytes() == expected
        places |= {place["place"] for place in json.loads(out)["report"]["places"]}
    assert "client" in places


def test_a_client_that_vanishes_leaves_nothing_behind(busy, nodes_of_test):
    url = busy.put("/data", NUMBERS.tobytes())
    Background(nodes_of_test, busy, "run", "sum", url, "--type", "f64").kill()
    assert json.loads(busy.grist.ok("run", "sum", url, "--type", "f64", "--json"))["result"]["count"] == len(NUMBERS)


@pytest.mark.parametrize(
    "args, words",
    [
        (("--active-share", "1.5"), "from 0 to 1"),
        (("--active-share", "NaN"), "from 0 to 1"),
        (("--active-share", "half"), "from 0 to 1"),
        (("--active-priority", "high"), "there are auto, idle and low"),
        (("--link", "0"), "125MB"),
        (("--objective", "best"), "overlap and paper"),
    ],
)
def test_what_an_administrator_may_say(grist, tmp_path, args, words):
    assert words in grist.refuses(2, "serve", "--target", tmp_path / "node", "--listen", "127.0.0.1:0", *args)


def test_metrics_count_what_was_folded_and_what_was_handed_back(nodes_of_test):
    nodes = nodes_of_test(Nodes, nodes=1)
    assert metrics(nodes)["gristmill_active_requests", "running"] == 0
    url = nodes.put("/numbers", NUMBERS.tobytes())
    for _ in range(3):
        nodes.grist.ok("run", "sum", url, "--type", "f64")
    nodes.grist.ok("run", "sum", url, "--type", "f64", "--place", "client")

    def counted():
        # A request is counted when it has ended, a moment after its answer.
        found = metrics(nodes)
        return found if found.get(("gristmill_active_ended_total", "sum")) == 3 else None

    found = until(counted, "three sums are counted")
    assert found["gristmill_folded_bytes_total", "sum"] == 3 * NUMBERS.nbytes
    assert found["gristmill_active_handed_back_total", "sum"] == 0
    assert found["gristmill_kernel_bytes_per_core_second", "sum"] > 0
    assert found["gristmill_active_cpu_seconds_total", None] > 0
    assert 0 <= found["gristmill_cpu_used_ratio", None] <= 1

    def decided():
        # A short request may end before anything is decided.
        nodes.grist.ok("run", "sum", url, "--type", "f64")
        return metrics(nodes)["gristmill_decisions_total", None] >= 1

    until(decided, "a decision is counted")


def test_a_link_is_measured_by_what_is_read(nodes_of_test):
    # The stated rate is lower than that of any machine, so every read reaches it.
    nodes = nodes_of_test(Nodes, nodes=1, args=("--link", "1MB"))
    url = nodes.put("/large", bytes(64 * MIB))

    def explained():
        done = nodes.grist("run", "sum", url, "--type", "f64", "--explain")
        assert done.returncode == 0, done.stderr
        return done.stderr.decode()

    assert metrics(nodes)["gristmill_link_measured", None] == 0 and "/s (assumed)" in explained()
    nodes.grist.ok("get", url, "copy")
    until(lambda: metrics(nodes)["gristmill_link_measured", None] == 1, "the link is measured")
    assert metrics(nodes)["gristmill_link_bytes_per_second", None] == 1e6
    assert "/s (measured)" in explained()
