"""Labs are removed however they end, their hosts match the description, and a small experiment works."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import experiment
import hosts
import machine
import network
import quota
import workload

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("GRISTMILL_BIN", "target/debug/gristmill")
GRISTMILL = ROOT / BINARY
PROBE = GRISTMILL.with_name("gristmill-probe")

# The maximum wait for an event, in seconds. No assertion is about a duration.
PATIENCE = 60

WHY = hosts.missing()
lab = pytest.mark.skipif(WHY is not None, reason=f"no lab here: {WHY}")
binaries = pytest.mark.skipif(not (GRISTMILL.exists() and PROBE.exists()), reason="gristmill-probe is not built")

SMALL = machine.Machine("small", "", "sum", 1e9, 1e8, {"storage": machine.Hosts(2, 1), "client": machine.Hosts(1, 1)})


def ours():
    return of(os.getpid())


def of(process):
    """The namespaces and control groups of the labs of a process."""
    groups = [p.name for base in set(quota.controllers().values()) for p in base.glob(f"{network.PREFIX}-*")]
    return {name for name in [*network.namespaces(), *groups] if network.owner(name) == process}


def until(holds, what):
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not happen in {PATIENCE} s"
        time.sleep(0.02)


@lab
def test_a_lab_is_gone_after_it_ends_and_after_it_fails():
    with hosts.Hosts(SMALL) as made:
        made.all()[0].group("server", 1)
        assert len(ours()) == 5  # three hosts, the switch, a group
    assert not ours()
    with contextlib.suppress(ZeroDivisionError), hosts.Hosts(SMALL):
        1 // 0
    assert not ours()


@lab
def test_hosts_reach_each_other_and_what_they_send_is_counted():
    with hosts.Hosts(SMALL) as made:
        server, other, client = made.all()
        made.shape(1)
        group = server.group("server", 1)
        say = "import socket; s = socket.create_server(('{}', 5000)); print('up', flush=True); c = s.accept()[0]; c.sendall(bytes(100000))"
        serving = server.start(
            group, sys.executable, "-c", say.format(server.address), stdout=subprocess.PIPE, text=True
        )
        assert serving.stdout.readline() == "up\n"
        ask = "import socket, sys; s = socket.create_connection(('{}', 5000)); print(sum(len(b) for b in iter(lambda: s.recv(9999), b'')))"
        asking = client.start(
            client.group("rank0", 1),
            sys.executable,
            "-c",
            ask.format(server.address),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert asking.communicate()[0] == "100000\n"
        serving.communicate()
        received, sent = client.port.carried()
        assert 99_000 < received < 120_000 and sent < 20_000
        assert other.port.carried()[0] < 10_000
        # Packets with shorter headers than usual make the counted bytes smaller.
        assert 99_000 < server.port.carried()[1] <= received
        assert group.usage() > 0


@lab
def test_ports_and_processes_get_what_was_described():
    with hosts.Hosts(SMALL) as made:
        group = made.all()[0].group("server", 2)
        made.shape(1 / 4)
        made.limit(0.1)
        later = made.all()[1].group("server", 1)
        for namespace, device in ((made.all()[0].port.namespace, "eth0"), (made.all()[0].port.switch, "storage0")):
            [bucket] = json.loads(network.run("tc", "-j", "-n", namespace, "qdisc", "show", "dev", device))
            assert bucket["kind"] == "tbf" and bucket["options"]["rate"] == 25_000_000
        assert [group.limited(), later.limited()] == pytest.approx([0.2, 0.1], rel=0.01)
        made.limit(None)
        assert group.limited() is None


@lab
@binaries
def test_an_experiment_leaves_a_table_a_picture_and_no_hosts(tmp_path):
    command = [sys.executable, ROOT / "bench/lab", "run", "network_bytes", "--quick", "--results", tmp_path]
    command += ["--gristmill", GRISTMILL, "--probe", PROBE, "--data", tmp_path / "data"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(open(tmp_path / "network_bytes.csv")))
    assert list(rows[0]) == experiment.COLUMNS
    short, long = (int(row["network_bytes"]) for row in rows)
    assert [row["x"] for row in rows] == ["1", "16"]
    # 16 MiB are 15 MiB more than 1 MiB. None of them may cross the network.
    assert 1_000 < short < 100_000 and abs(long - short) < 50_000
    assert (tmp_path / "network_bytes.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "network_bytes.json").read_text())["scale"] > 0


@lab
@binaries
def test_a_program_reads_its_points_once_however_many_passes_it_makes(tmp_path):
    command = [sys.executable, ROOT / "bench/lab", "run", "son2010_fig13", "--quick", "--results", tmp_path]
    command += ["--gristmill", GRISTMILL, "--probe", PROBE, "--data", tmp_path / "data"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(open(tmp_path / "son2010_fig13.csv", newline="")))
    once, several = dict.fromkeys(row["x"] for row in rows)
    assert once == "1\n1 iteration" and int(several.split("\n")[1].split()[0]) > 2
    assert [(row["series"], row["x"]) for row in rows] == [
        (series, x) for x in (once, several) for series in ("reading", "computing")
    ]
    scale = json.loads((tmp_path / "son2010_fig13.json").read_text())["scale"]
    size = workload.whole(experiment.load("son2010_fig13").QUICK_POINTS * workload.POINT * scale)
    for row in rows:
        assert size < float(row["network_bytes"]) < 1.5 * size
        assert float(row["seconds"]) > 0


@lab
@binaries
@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_lab_that_was_ended_leaves_nothing_for_long(tmp_path, sig):
    command = [sys.executable, ROOT / "bench/lab", "run", "son2010_fig11", "--quick", "--results", tmp_path]
    command += ["--gristmill", GRISTMILL, "--probe", PROBE, "--data", tmp_path / "data"]
    started = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # There are at least four hosts, the switch, and a group for each server.
    until(lambda: started.poll() is not None or len(of(started.pid)) >= 7, "the lab's beginning")
    assert started.poll() is None
    started.send_signal(sig)
    started.wait(PATIENCE)
    # A killed lab cannot remove anything, so its janitor does it.
    until(lambda: not of(started.pid), "the lab's end")
    until(lambda: not list((tmp_path / "data").glob(f"{network.PREFIX}-*")), "the end of its data")
    assert not list(tmp_path.glob("*.csv"))


def test_mistakes_are_told_in_a_sentence():
    for words, said in (
        (["run", "nonsense"], "there are check_hosts"),
        (["run", "all", "--scale", "0"], "no scale such as 1/4"),
        (["run", "all", "--repeats", "none"], "no number of rounds"),
        ([], "required: command"),
    ):
        command = [sys.executable, str(ROOT / "bench/lab"), *words]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode != 0 and said in done.stderr, (words, done.stderr)
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_without_root_it_says_so_and_does_nothing():
    # Other users may not have access to the folder of the lab. So the test calls only its first check.
    script = f"import os, sys; sys.path[:0] = [{str(ROOT / 'bench/lab')!r}, {str(ROOT / 'bench')!r}]; import hosts; os.setuid(65534); print(hosts.missing())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "only root makes network namespaces\n", done.stderr
