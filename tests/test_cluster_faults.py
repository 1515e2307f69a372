"""Nodes that die, as real processes: the right answer or a plain error, in bounded time."""

import json
import signal
import threading

import pytest
from cluster import Nodes, Up, until
from faults import BOUND, Background, fails, numbers, only_objects_of, queued, source, visible


@pytest.fixture
def nodes(nodes_of_test):
    return nodes_of_test(Nodes, nodes=3)


def test_a_node_that_is_down(nodes):
    content = numbers(30_000)
    nodes.put("/all", content, "--stripe", "4KiB")
    nodes.put("/elsewhere", content, "--stripe", "4KiB", "--on", "0,2")
    nodes.put("/there", content, "--on", "1")
    address = nodes.listen[1]
    nodes.kill(1)
    file = source(nodes, content)
    remedy = (address, "start it")
    for path in ("/all", "/there"):
        for place in ("storage", "client", "auto"):
            fails(nodes, "run", "sum", nodes.url(path), "--type", "f64", "--place", place, names=remedy)
        fails(nodes, "run", "lookup", nodes.url(path), "--type", "f64", "--param", "where=> 2", names=remedy)
        fails(nodes, "get", nodes.url(path), nodes.folder / "got", names=remedy)
        assert not (nodes.folder / "got").exists()
    for how in ((), ("--on", "1"), ("--on", "0,1")):
        fails(nodes, "put", file, nodes.url("/new"), "--stripe", "4KiB", *how, names=remedy)
        fails(nodes, "put", file, nodes.url("/all"), "--stripe", "4KiB", *how, names=remedy)
    # Files on other nodes are not affected.
    assert nodes.get("/elsewhere") == content
    answer = nodes.grist.answer("sum", nodes.url("/elsewhere"), "--type", "f64", "--place", "storage")
    assert answer["result"]["count"] == 30_000
    nodes.put("/new-elsewhere", content, "--on", "2,0", "--stripe", "4KiB")
    assert visible(nodes) == {"all", "elsewhere", "there", "new-elsewhere"}
    nodes.grist.ok("rm", nodes.url("/there"))  # its object goes when the node is back
    nodes.start(1)
    assert nodes.works()
    assert nodes.get("/all") == content
    nodes.put("/new", content)
    only_objects_of(nodes, "/all", "/elsewhere", "/new-elsewhere", "/new")


def test_the_entry_node_is_down_and_comes_back(nodes):
    content = numbers(30_000)
    nodes.put("/all", content, "--stripe", "4KiB")
    before = nodes.pids()
    nodes.kill(0)
    for command in (["stat"], ["run", "sum", "--type", "f64"], ["rm"], ["ls"]):
        fails(nodes, *command, nodes.url("/all"), names=(nodes.entry,))
    fails(nodes, "get", nodes.url("/all"), "-", names=(nodes.entry,))
    fails(nodes, "put", source(nodes, content), nodes.url("/new"), names=(nodes.entry,))
    nodes.start(0)
    assert nodes.get("/all") == content
    assert nodes.works()
    assert {n: nodes.pids()[n] for n in (1, 2)} == {n: before[n] for n in (1, 2)}


def test_up_starts_again_what_dies(nodes_of_test):
    up = nodes_of_test(Up, nodes=3)
    content = numbers(30_000)
    up.put("/all", content, "--stripe", "4KiB")
    for number in (0, 2):
        pid, addresses = up.send(number, signal.SIGKILL), None
        until(lambda n=number, p=pid: up.pids().get(n, p) != p, "a new process")
        until(up.works, "the cluster works again")
        addresses = addresses or up.addresses()
        assert up.get("/all") == content
    assert addresses[0] == up.entry
    assert "is started again" in up.errors()


QUESTIONS = {
    "sum": ("sum", "--type", "f64"),
    "histogram": ("histogram", "--type", "f64", "--param", "bins=20"),  # two passes
    "lookup": ("lookup", "--type", "f64", "--param", "where=> 3"),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("place", ["storage", "client"])
def test_a_node_dies_in_the_middle_of_a_run(nodes_of_test, question, place):
    up = nodes_of_test(Up, nodes=3)
    url = up.put("/all", numbers(300_000), "--stripe", "64KiB")
    command = ("run", *QUESTIONS[question], url, "--json", "--place", place)
    right = json.loads(up.grist.ok(*command))["result"]
    address = up.addresses()[1]
    up.send(1, signal.SIGSTOP)  # so that the node certainly has the request when it dies
    run = Background(nodes_of_test, up, *command)
    until(lambda: queued(address), "the request is with the node")
    up.send(1, signal.SIGKILL)
    code, out, err = run.wait()
    if code == 0:
        assert json.loads(out)["result"] == right
    else:
        assert code == 1 and address in err, err
    if question == "sum" and place == "storage":
        assert code == 0, err  # values are requested again
    until(up.works, "the cluster works again")
    assert json.loads(up.grist.ok(*command))["result"] == right


def test_all_nodes_die_in_the_middle_of_a_run(nodes_of_test):
    up = nodes_of_test(Up, nodes=3)
    url = up.put("/all", numbers(300_000), "--stripe", "64KiB")
    command = ("run", "sum", "--type", "f64", url, "--json", "--place", "storage")
    right = json.loads(up.grist.ok(*command))["result"]
    addresses = up.addresses()
    for number in (1, 2):
        up.send(number, signal.SIGSTOP)
    run = Background(nodes_of_test, up, *command)
    until(lambda: queued(addresses[1]) and queued(addresses[2]), "the request is with the nodes")
    for number in (1, 2, 0):
        up.send(number, signal.SIGKILL)
    code, out, err = run.wait()
    assert json.loads(out)["result"] == right if code == 0 else (code == 1 and "127.0.0.1" in err), err
    until(up.works, "the cluster works again")
    assert json.loads(up.grist.ok(*command))["result"] == right


def test_a_request_of_many_threads_at_a_node_that_comes_and_goes(nodes_of_test):
    up = nodes_of_test(Up, nodes=2)
    url = up.put("/file", numbers(100_000), "--stripe", "64KiB")
    command = ("run", "sum", "--type", "f64", url, "--json", "--place", "storage")
    right = json.loads(up.grist.ok(*command))["result"]
    address = up.addresses()[1]
    wrong, answers = [], []

    def ask():
        for _ in range(6):
            done = up.grist(*command, timeout=BOUND)
            if done.returncode == 0:
                answers.append(json.loads(done.stdout)["result"])
            elif address not in done.stderr.decode():
                wrong.append(done.stderr)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    pid = up.send(1, signal.SIGKILL)
    until(lambda: up.pids().get(1, pid) != pid, "a new process")
    for thread in threads:
        thread.join(BOUND)
        assert not thread.is_alive()
    assert not wrong and answers and all(answer == right for answer in answers), (wrong, answers)
    until(up.works, "the cluster works again")
