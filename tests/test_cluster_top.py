"""`gristmill top`, and what nodes and the entry node tell those who monitor them."""

import json
import signal
import threading
import time

import numpy as np
import pytest
from cluster import Nodes, until
from identity import TOKENS, write_tokens
from raw import HEADER, ask, opened, parts, refused, seal, unsealed
from watching import Crawling, get, requests, said

NUMBERS = np.random.default_rng(1).normal(size=300_000)


@pytest.fixture(scope="module")
def nodes(clusters):
    nodes = clusters(Nodes, nodes=3)
    nodes.put("/numbers", NUMBERS.tobytes(), "--stripe", "64KiB")
    return nodes


def sums(cluster, name):
    return sum(node["bytes"][name] for node in cluster["nodes"])


def test_what_is_read_in_place_and_what_is_sent_is_counted(nodes):
    before = said(nodes)
    assert [node["target"] for node in before["nodes"]] == [0, 1, 2]
    assert {node["target"]: node["address"] for node in before["nodes"]} == nodes.addresses()
    nodes.grist.ok("run", "sum", nodes.url("/numbers"), "--type", "f64", "--place", "storage")

    def counted():
        now = said(nodes)
        kernels = [kernel for node in now["nodes"] for kernel in node["kernels"] if kernel["kernel"] == "sum"]
        return now if sum(kernel["ended"] for kernel in kernels) == 3 else None

    after = until(counted, "each node counts its part")
    assert sums(after, "folded") - sums(before, "folded") == NUMBERS.nbytes
    assert 0 < sums(after, "sent") - sums(before, "sent") < 100_000
    assert nodes.get("/numbers") == NUMBERS.tobytes()
    moved = until(lambda: said(nodes), "an answer")
    until(lambda: sums(said(nodes), "sent") - sums(after, "sent") >= NUMBERS.nbytes, "what was read is counted")
    assert sums(moved, "folded") == sums(after, "folded")
    for node in moved["nodes"]:
        assert node["error"] is None and 0 <= node["silent_seconds"] < 30 and node["up_seconds"] > 0
        assert node["load"]["active"] == 0 and node["requests"] == []
        assert node["kernels"][0]["measured"] in (True, False) and node["kernels"][0]["rate"] > 0


def test_every_pass_counts(nodes):
    before = sums(said(nodes), "folded")
    answer = nodes.grist.answer("median", nodes.url("/numbers"), "--type", "f64", "--place", "storage")
    rounds = answer["report"]["rounds"]
    assert rounds > 1
    until(lambda: sums(said(nodes), "folded") - before == rounds * NUMBERS.nbytes, f"{rounds} passes are counted")


def test_one_picture(nodes):
    nodes.grist.ok("run", "sum", nodes.url("/numbers"), "--type", "f64", "--place", "storage")
    # Standard output is not a terminal.
    text = nodes.grist.ok("top", nodes.url(), "--interval", "0.5").decode()
    assert text == "".join(line.rstrip() + "\n" for line in text.splitlines()) and "\x1b" not in text
    lines = text.splitlines()
    assert lines[0].startswith(f"gristmill  {nodes.entry}  3 of 3 nodes answer, 0 active requests  ")
    assert lines[1].startswith("not moved ") and lines[2].startswith("moved ") and "/s" in lines[1]
    for number, address in nodes.addresses().items():
        assert any(line.split()[:3] == [str(number), address, "up"] for line in lines), text
    assert "no active requests" in lines
    assert any(line.split()[0] == "sum" for line in lines if line), text
    told = json.loads(nodes.grist.ok("top", nodes.url(), "--json"))
    assert set(told) == {"at", "nodes"} and len(told["nodes"]) == 3
    assert abs(told["at"] - time.time()) < 600
    env = {"GRISTMILL_CLUSTER": nodes.entry}
    assert len(json.loads(nodes.grist.ok("top", "--json", env=env))["nodes"]) == 3


@pytest.mark.parametrize(
    "args, words",
    [
        (("--interval", "0"), "0.5 to 3600"),
        (("--interval", "NaN"), "0.5 to 3600"),
        (("--interval", "soon"), "0.5 to 3600"),
        (("a-file",), "grist://HOST:PORT/PATH"),
    ],
)
def test_what_makes_no_sense(grist, args, words):
    assert words in grist.refuses(2, "top", *args)


def test_nobody_there(grist):
    assert "does not answer" in grist.refuses(1, "top", "grist://127.0.0.1:1/", "--json")


def test_a_node_that_is_killed_or_stopped_is_shown_so(nodes_of_test):
    nodes = nodes_of_test(Nodes, nodes=3)
    nodes.kill(2)
    nodes.send(1, signal.SIGSTOP)
    told = json.loads(nodes.grist.ok("top", nodes.url(), "--json"))
    alive, stopped, killed = told["nodes"]
    assert alive["load"] and alive["error"] is None
    assert stopped["load"] is None and stopped["error"] == "no answer in 1 s"
    assert killed["load"] is None and nodes.listen[2] in killed["error"]
    text = nodes.grist.ok("top", nodes.url(), "--once").decode()
    assert "  1 of 3 nodes answer," in text and text.count("  no answer  ") == 2
    assert "  node 1: last heard of " in text and "  node 2: last heard of " in text
    nodes.send(1, signal.SIGCONT)
    nodes.start(2)
    until(lambda: all(node["load"] for node in said(nodes)["nodes"]), "all answer again")


def test_requests_under_way_and_handed_back(nodes_of_test):
    name = "\x1b[2J<b>&\n\u202e"
    with Crawling(nodes_of_test) as crawling:
        crawling.ask(name=name)
        crawling.ask(kernel="minmax")
        here = until(lambda: len(found := requests(crawling.nodes, 1)) == 2 and found, "both are listed")
        first, second = here
        assert (first["kernel"], first["state"], first["asker"]) == ("sum", "running", name)
        assert (second["kernel"], second["asker"]) == ("minmax", None)
        assert first["bytes"] == second["bytes"] == 800_000 and first["principal"] == "anonymous"
        assert first["age_seconds"] >= second["age_seconds"] >= 0
        # A node hands back a larger request at once if its client can do the work.
        crawling.ask("/many", name=name)
        gone = until(lambda: said(crawling.nodes)["nodes"][1]["handed_back"], "it is handed back")
        assert (gone[0]["kernel"], gone[0]["asker"]) == ("sum", name)
        assert 0 < gone[0]["bytes"] <= 3_200_000 and "active requests" in gone[0]["why"]
        text = crawling.nodes.grist.ok("top", crawling.nodes.url(), "--once").decode()
        assert "\x1b" not in text and "\u202e" not in text
        assert "\ufffd[2J<b>&\ufffd\ufffd" in text
        assert "node 1, running" in text and "at the asker, from node 1" in text
        for request in crawling.asked:
            request.let_go()
        until(lambda: not requests(crawling.nodes, 1), "none is left")


def test_a_long_list_is_cut_and_counted(nodes_of_test):
    with Crawling(nodes_of_test) as crawling:
        for _ in range(70):
            crawling.ask()

        def all_there():
            node = said(crawling.nodes)["nodes"][1]
            return node if node["load"]["active"] == 70 else None

        node = until(all_there, "all 70 are there")
        assert len(node["requests"]) == 64 and node["load"]["running"] == 6
        assert [one["state"] for one in node["requests"]].count("waiting") == 58
        text = crawling.nodes.grist.ok("top", crawling.nodes.url(), "--once").decode()
        assert "70 active requests" in text and "\nand 6 more\n" in text


def test_only_those_with_a_grant_hear_of_one_node(nodes, nodes_of_test):
    found = opened(nodes, "/numbers")
    for place in parts(found)[1]:
        status, body = ask(place["address"], "GET", "/status", found["grant"])
        told = json.loads(body)
        assert status == 200 and told["target"] == place["number"] and told["load"]["target"] == place["number"]
    assert HEADER in refused(403, ask(nodes.listen[1], "GET", "/status"))
    stranger = nodes_of_test(Nodes, nodes=1)
    refused(403, ask(stranger.entry, "GET", "/status", found["grant"]))
    written = {**unsealed(found["grant"]), "rights": "write"}
    refused(403, ask(nodes.entry, "GET", "/status", seal(nodes, written)))


def test_names_of_others_are_for_administrators(nodes_of_test, tmp_path):
    args = ("--tokens", write_tokens(tmp_path), "--admin", "alice")
    bearer = lambda name: {"Authorization": f"Bearer {TOKENS[name]}"}

    def started(kind, nodes, args, more=args):
        return nodes_of_test(kind, nodes=nodes, args=(*args, *more))

    with Crawling(started) as crawling:
        nodes = crawling.nodes
        asked = crawling.ask(name="a process of anonymous")
        names = lambda headers=(): [
            (one["principal"], one["asker"], one["kernel"]) for one in said(nodes, headers)["nodes"][1]["requests"]
        ]
        own = [("anonymous", "a process of anonymous", "sum")]
        assert until(names, "it is listed") == own
        assert names(bearer("alice")) == own
        assert names(bearer("bob")) == [("another user", None, "sum")]
        bob = {"GRISTMILL_TOKEN": TOKENS["bob"]}
        text = nodes.grist.ok("top", nodes.url(), "--once", env=bob).decode()
        assert "another user" in text and "anonymous" not in text
        # The same holds for a node that is asked itself.
        grant = unsealed(opened(nodes, "/few")["grant"])
        for principal, seen in (("anonymous", "anonymous"), ("bob", "another user"), ("entry", "another user")):
            sealed = seal(nodes, {**grant, "principal": principal})
            status, body = ask(nodes.listen[1], "GET", "/status", sealed)
            assert status == 200 and [one["principal"] for one in json.loads(body)["requests"]] == [seen]
        asked.let_go()


def test_other_nodes_say_where_the_entry_node_is(nodes):
    status, _, body = get(nodes.listen[1], "/cluster")
    assert status == 400 and nodes.entry in json.loads(body)["message"]
    for path in ("/", "/page.js"):
        status, headers, body = get(nodes.listen[1], path)
        assert status == 404 and nodes.entry in body.decode() and headers["Content-Type"].startswith("text/plain")


def test_many_who_watch_do_not_multiply_the_questions(nodes):
    moments, lock = set(), threading.Lock()

    def watch():
        for _ in range(20):
            at = said(nodes)["at"]
            with lock:
                moments.add(at)

    watching = [threading.Thread(target=watch) for _ in range(8)]
    [thread.start() for thread in watching]
    [thread.join() for thread in watching]
    ordered = sorted(moments)
    # Each answer is reused for half a second.
    assert all(later - earlier >= 0.49 for earlier, later in zip(ordered, ordered[1:])), ordered


def test_without_a_token_nothing_is_said(nodes_of_test, tmp_path):
    args = ("--tokens", write_tokens(tmp_path), "--require-identity")
    nodes = nodes_of_test(Nodes, nodes=1, args=args)
    assert "GRISTMILL_TOKEN" in nodes.grist.refuses(1, "top", nodes.url(), "--json")
    wrong = {"GRISTMILL_TOKEN": "token-of-mallory-012345"}
    text = nodes.grist.refuses(1, "top", nodes.url(), "--once", env=wrong)
    assert "token" in text and "mallory" not in text
    right = {"GRISTMILL_TOKEN": TOKENS["alice"]}
    assert len(json.loads(nodes.grist.ok("top", nodes.url(), "--json", env=right))["nodes"]) == 1
    assert get(nodes.entry, "/cluster")[0] == 403
    # A web page under another host name that leads to this address gets no answer either.
    open_to_all = nodes_of_test(Nodes, nodes=1)
    assert get(open_to_all.entry, "/cluster", {"Host": "evil.example"})[0] == 403
