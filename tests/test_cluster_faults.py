"""Nodes and clients that fail, with real processes: the right answer or a plain error, in bounded time."""

import json
import signal
import subprocess
import threading
import time

import pytest
from cluster import Nodes, Up, until
from conftest import one_message
from faults import BOUND, MIB, Background, fails, noise, numbers, only_objects_of, queued, source, visible


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
    # What lies elsewhere is not concerned.
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
    up.send(1, signal.SIGSTOP)  # so that it is surely at work on the request when it dies
    run = Background(nodes_of_test, up, *command)
    until(lambda: queued(address), "the request is with the node")
    up.send(1, signal.SIGKILL)
    code, out, err = run.wait()
    if code == 0:
        assert json.loads(out)["result"] == right
    else:
        assert code == 1 and address in err, err
    if question == "sum" and place == "storage":
        assert code == 0, err  # values are asked for again
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


class SlowPut:
    """A put from a pipe: it is in its middle for as long as is wanted."""

    def __init__(self, started, cluster, path, *args):
        self.put = Background(
            started, cluster, "put", "-", cluster.url(path), "--stripe", "64KiB", *args, stdin=subprocess.PIPE
        )
        before = {path.name for path in cluster.objects()}
        stdin = self.put.child.stdin
        stdin.write(noise(6 * MIB))
        stdin.flush()

        def written():
            new = [path for path in cluster.objects() if path.name not in before]
            return len(new) == cluster.count and all(path.stat().st_size > 0 for path in new)

        until(written, "objects are being written on every node")

    def finish(self):
        """Goes on to the end, or until nobody reads any more."""
        try:
            self.put.child.stdin.write(noise(6 * MIB, 2))
            self.put.child.stdin.close()
        except BrokenPipeError:
            pass
        self.put.child.stdin = None
        return self.put.wait()


@pytest.mark.parametrize("over_old", [False, True])
def test_a_node_dies_in_the_middle_of_a_put(nodes_of_test, nodes, over_old):
    old = numbers(30_000)
    nodes.put("/other", old, "--stripe", "4KiB")
    kept = ["/other"]
    if over_old:
        nodes.put("/file", old, "--stripe", "4KiB")
        kept.append("/file")
    put = SlowPut(nodes_of_test, nodes, "/file")
    nodes.kill(1)
    code, out, err = put.finish()
    assert code == 1 and not out and nodes.listen[1] in err, (code, out, err)
    assert ("file" in visible(nodes)) == over_old
    nodes.start(1)
    assert nodes.works()
    for path in kept:
        assert nodes.get(path) == old
    only_objects_of(nodes, *kept)
    nodes.put("/file", noise(1000))
    assert nodes.get("/file") == noise(1000)


def test_the_entry_node_dies_in_the_middle_of_a_put(nodes_of_test, nodes):
    old = numbers(30_000)
    nodes.put("/file", old, "--stripe", "4KiB")
    put = SlowPut(nodes_of_test, nodes, "/file")
    nodes.kill(0)
    code, out, err = put.finish()
    assert code == 1 and not out and nodes.entry in err, (code, out, err)
    nodes.start(0)
    assert nodes.get("/file") == old
    only_objects_of(nodes, "/file")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_client_dies_in_the_middle_of_a_put(nodes_of_test, nodes, how):
    old = numbers(30_000)
    nodes.put("/old", old, "--stripe", "4KiB")
    for path in ("/new", "/old"):
        put = SlowPut(nodes_of_test, nodes, path)
        put.put.signal(how)
        put.put.child.stdin = None
        put.put.child.wait(BOUND)
        assert visible(nodes) == {"old"}
        only_objects_of(nodes, "/old")
    assert nodes.get("/old") == old
    nodes.put("/new", old)
    assert nodes.get("/new") == old


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
    # Meanwhile the others go on.
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
    """Ticks of processor time that processes have used."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            words = stat.read().rpartition(")")[2].split()
        total += int(words[11]) + int(words[12])
    return total


def still(pids) -> bool:
    """Whether processes do next to nothing."""
    before = cpu(pids)
    time.sleep(0.5)  # the time over which it is measured
    return cpu(pids) - before <= 3


# Word boundaries in text that is not ASCII are slow to look for: the question takes half a minute and more.
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
    # Alone, the question would keep them busy for far longer.
    until(lambda: still(pids), "the nodes stop", 10)


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
