"""Ctrl-C in a request with a checkpoint about a file of a cluster: the same command resumes from it."""

import signal

import pytest
from cluster import Up, until
from conftest import one_message
from faults import Background, numbers, queued

KERNELS = {
    "sum": ("sum",),
    "two passes": ("histogram", "--param", "bins=7"),
    "rows": ("lookup", "--param", "where=> 3.5"),
    "order": ("quantile", "--param", "q=0.25"),
}


@pytest.fixture
def up(nodes_of_test):
    return nodes_of_test(Up, nodes=2)


def stopped(started, up, *command):
    """Stops a node, runs a command, and interrupts the command while it waits for the node."""
    node = up.send(1, signal.SIGSTOP)
    running = Background(started, up, *command)
    until(lambda: queued(up.addresses()[1]), "the request waits for the node")
    running.signal(signal.SIGINT)
    # A second signal would end the command at once.
    up.send(1, signal.SIGCONT)
    out, said = running.child.communicate(timeout=60)
    assert node == up.pid(1) and running.child.returncode == 130, said
    return out, said.decode()


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_same_command_goes_on(nodes_of_test, up, tmp_path, kernel):
    name, *params = KERNELS[kernel]
    url = up.put("/values", numbers(3_000_000), "--stripe", "64KiB")
    how = ("run", name, url, "--type", "f64", "--lanes", "1", *params)
    want = up.grist.ok(*how, "--place", "client")
    checkpoint = tmp_path / "state"
    begun, said = stopped(nodes_of_test, up, *how, "--checkpoint", checkpoint)
    assert checkpoint.exists() and "the same command goes on" in said and str(checkpoint) in said
    more, _ = stopped(nodes_of_test, up, *how, "--checkpoint", checkpoint)
    rest = up.grist.ok(*how, "--checkpoint", checkpoint)
    assert begun + more + rest == want
    assert not checkpoint.exists()


def test_another_question_and_another_file_do_not_go_on(nodes_of_test, up, tmp_path):
    url = up.put("/values", numbers(3_000_000), "--stripe", "64KiB")
    checkpoint = tmp_path / "state"
    how = (url, "--type", "f64", "--lanes", "1", "--checkpoint", checkpoint)
    stopped(nodes_of_test, up, "run", "sum", *how)
    saved = checkpoint.read_bytes()
    for other in (("run", "mean", *how), ("run", "sum", *how, "--range", "0:800")):
        done = up.grist(*other)
        assert done.returncode == 2 and "another request, of 'sum'" in one_message(done.stderr), done.stderr
    up.put("/values", numbers(3_000_000, seed=2), "--stripe", "64KiB")
    done = up.grist("run", "sum", *how)
    message = one_message(done.stderr)
    assert done.returncode == 1 and "changed" in message and "remove the checkpoint" in message, message
    assert checkpoint.read_bytes() == saved
