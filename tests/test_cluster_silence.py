"""Nodes that are stopped, and nodes whose client is gone: nobody waits or works without end."""

import signal
import time

import pytest
from cluster import Nodes, Up, until
from conftest import one_message
from faults import BOUND, MIB, Background, noise, numbers, only_objects_of, source, visible


@pytest.fixture
def nodes(nodes_of_test):
    return nodes_of_test(Nodes, nodes=3)


def test_a_node_that_stands_still(nodes_of_test, nodes):
    content = numbers(30_000)
    nodes.put("/all", content, "--stripe", "4KiB")
    nodes.put("/elsewhere", content, "--stripe", "4KiB", "--on", "0,2")
    big = source(nodes, noise(4 * MIB), "big")
    address = nodes.listen[1]
    nodes.send(1, signal.SIGSTOP)
    commands = [
        ("run", "sum", nodes.url("/all"), "--type", "f64", "--place", "storage"),
        ("run", "sum", nodes.url("/all"), "--type", "f64", "--place", "client"),
        ("run", "lookup", nodes.url("/all"), "--type", "f64", "--param", "where=> 0", "--place", "storage"),
        ("get", nodes.url("/all"), nodes.folder / "got"),
        ("put", big, nodes.url("/new"), "--stripe", "64KiB"),
        ("put", big, nodes.url("/all"), "--stripe", "64KiB"),
    ]
    waiting = [Background(nodes_of_test, nodes, *command) for command in commands]
    # Meanwhile the other nodes still work.
    assert nodes.get("/elsewhere") == content
    nodes.put("/more", content, "--on", "2,0")
    answer = nodes.grist.answer("count", nodes.url("/elsewhere"), "--type", "f64", "--place", "storage")
    assert answer["result"] == {"count": 30_000}
    for command, process in zip(commands, waiting, strict=True):
        code, _, err = process.wait()
        assert code == 1 and address in err, (command, code, err)
        one_message(err.encode())
    assert not (nodes.folder / "got").exists()
    assert visible(nodes) == {"all", "elsewhere", "more"}
    nodes.send(1, signal.SIGCONT)
    until(nodes.works, "all is well again")
    assert nodes.get("/all") == content
    only_objects_of(nodes, "/all", "/elsewhere", "/more")


def test_an_entry_node_that_stands_still(nodes_of_test, nodes):
    nodes.put("/file", b"12345678")
    nodes.send(0, signal.SIGSTOP)
    commands = [("stat", nodes.url("/file")), ("run", "count", nodes.url("/file")), ("ls", nodes.url())]
    waiting = [Background(nodes_of_test, nodes, *command) for command in commands]
    for command, process in zip(commands, waiting, strict=True):
        code, out, err = process.wait()
        assert code == 1 and not out and nodes.entry in err, (command, err)
    nodes.send(0, signal.SIGCONT)
    until(nodes.works, "all is well again")


def cpu(pids) -> int:
    """The processor time of processes, in clock ticks."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            words = stat.read().rpartition(")")[2].split()
        total += int(words[11]) + int(words[12])
    return total


def still(pids) -> bool:
    """Whether processes use almost no processor time."""
    before = cpu(pids)
    time.sleep(0.5)  # the time of the measurement
    return cpu(pids) - before <= 3


# Word boundaries in text that is not ASCII are slow to find. This request takes half a minute or more.
SLOW = r"pattern=(?:\b\w+\b[^a]*){20}\b\w{4}$"
SLOW_TEXT = ("übung macht den meister " * 4 + "\n").encode() * 640_000


@pytest.mark.parametrize("rows", ["true", "false"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nodes_stop_working_for_a_client_that_is_gone(nodes_of_test, rows, how):
    up = nodes_of_test(Up, nodes=2)
    url = up.put("/slow", SLOW_TEXT, "--stripe", "1MiB")
    pids = list(up.pids().values())
    until(lambda: still(pids), "nothing goes on")
    before = cpu(pids)
    run = Background(nodes_of_test, up, "run", "grep", url, "--param", SLOW, "--param", f"count_only={rows}",
                     "--place", "storage")  # fmt: skip
    until(lambda: cpu(pids) > before + 30, "the nodes are at work")
    assert run.child.poll() is None, "the question is too easy for this test"
    run.signal(how)
    assert run.child.wait(BOUND) != 0
    up.put("/quick", b"a line\n")
    assert up.grist.answer("wc", up.url("/quick"), "--place", "storage")["result"]["lines"] == 1
    # Without the end of the client, the request would keep them busy far longer.
    until(lambda: still(pids), "the nodes stop", 10)
