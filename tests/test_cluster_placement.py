"""Where requests run when nodes and clients share the processors of one machine. Moving bytes gains nothing there, so almost none
are moved. What `--explain` says before the request is what the report says after it."""

import json
import subprocess

import numpy as np
import pytest
from cluster import Nodes, Up
from conftest import binary

MIB = 1 << 20
NUMBERS = np.random.default_rng(31).normal(0, 1, 3 << 20)
TEXT = b"".join(b"%07d has %d legs and some words\n" % (n, n % 7) for n in range(600_000))
# The share of a file that answers and their envelopes may take.
ALMOST_NOTHING = 0.02
F64 = ("--type", "f64")

KERNELS = {
    "sum": ("numbers", *F64),
    "var": ("numbers", *F64),
    "minmax": ("numbers", *F64),
    "histogram": ("numbers", *F64, "--param", "range=-4:4"),
    "lookup": ("numbers", *F64, "--param", "where=> 4.9"),
    "median": ("numbers", *F64),
    "quantile": ("numbers", *F64, "--param", "q=0.1,0.9"),
    "kmeans": ("numbers", *F64, "--param", "dims=4", "--param", "k=3", "--param", "init=first"),
    "top": ("numbers", *F64),
    "wc": ("text",),
    "grep": ("text", "--param", "pattern=99999 has"),
}


@pytest.fixture(scope="module")
def up(clusters):
    # Folds of idle priority would give way to other programs of this machine, and nodes would hand requests to clients.
    return clusters(Up, nodes=4, args=("--active-priority", "low"))


@pytest.fixture(scope="module")
def urls(up):
    up.put("/numbers", NUMBERS.tobytes())
    up.put("/text", TEXT)
    return {name: up.url(f"/{name}") for name in ("numbers", "text")}


def size(name):
    return NUMBERS.nbytes if name == "numbers" else len(TEXT)


@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_is_moved_to_a_process_on_the_same_processors(up, urls, kernel):
    file, *args = KERNELS[kernel]
    done = up.grist("run", kernel, urls[file], *args, "--json", "--explain")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert said.startswith("place: storage ("), said
    assert said.count("\nnode ") == 4 and said.count(", on the processors of this process;") == 4, said
    report = json.loads(done.stdout.splitlines()[-1])["report"]
    assert {place["place"] for place in report["places"]} == {"storage"} and report["revisions"] == [], report
    assert report["bytes_to_client"] + report["bytes_moved"] < ALMOST_NOTHING * size(file), report
    assert report["bytes_read"] >= size(file)


def test_passes_are_counted_before_and_after(up, urls):
    before = up.grist("run", "median", urls["numbers"], *F64, "--place", "client", "--explain", "--json")
    said = before.stderr.decode()
    assert "a plain read would move 24.00 MiB to the client in each of its passes" in said, said
    report = json.loads(before.stdout)["report"]
    assert report["rounds"] > 1 and report["bytes_to_client"] == report["rounds"] * NUMBERS.nbytes
    once = up.grist("run", "sum", urls["numbers"], *F64, "--explain")
    assert b"passes" not in once.stderr, once.stderr


def test_many_at_once_are_folded_where_the_data_is(up, urls):
    running = [
        subprocess.Popen(
            [binary(), "run", "var", urls["numbers"], *F64, "--json"], stdout=subprocess.PIPE, cwd=up.folder
        )
        for _ in range(6)
    ]
    reports = [json.loads(process.communicate(timeout=60)[0])["report"] for process in running]
    assert all(report["bytes_to_client"] < ALMOST_NOTHING * NUMBERS.nbytes for report in reports), reports


def test_what_nodes_may_not_use_goes_to_a_process_beside_them(nodes_of_test):
    nodes = nodes_of_test(Nodes, nodes=2, args=("--active-share", "0.001"))
    url = nodes.put("/numbers", NUMBERS.tobytes())
    done = nodes.grist("run", "var", url, *F64, "--json", "--explain")
    assert done.stderr.startswith(b"place: client ("), done.stderr
    report = json.loads(done.stdout)["report"]
    # The client reads all bytes once, and not more.
    assert report["bytes_to_client"] == NUMBERS.nbytes, report


def test_what_was_measured_here_is_kept_for_the_next_call(nodes_of_test, tmp_path):
    nodes = nodes_of_test(Nodes, nodes=1)
    url = nodes.put("/numbers", NUMBERS.tobytes())
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    kept = tmp_path / "cache" / "gristmill" / "rates.json"
    nodes.grist.ok("run", "sum", url, *F64, env=env)
    assert not kept.exists(), "nothing was folded here"
    nodes.grist.ok("run", "sum", url, *F64, "--place", "client", env=env)
    known = json.loads(kept.read_text())
    assert known["receives"]["rate"] > 0 and set(known["kernels"]) == {"sum"}
    assert [path.name for path in kept.parent.iterdir()] == ["rates.json"]
    answer = nodes.grist.ok("run", "sum", url, *F64, env=env)
    # A damaged file counts as a missing one, and is written again.
    for damaged in (b"", b"{", b"\0" * 100_000, b'{"version":1,"receives":{"rate":-1,"seconds":0},"kernels":{}}'):
        kept.write_bytes(damaged)
        again = nodes.grist.ok("run", "sum", url, *F64, env=env)
        assert again == answer and kept.read_bytes() == damaged
    nodes.grist.ok("run", "sum", url, *F64, "--place", "client", env=env)
    assert set(json.loads(kept.read_text())["kernels"]) == {"sum"}
    # If the folder cannot be made, nothing is kept.
    nodes.grist.ok("run", "sum", url, *F64, "--place", "client", env={"XDG_CACHE_HOME": "/proc/nowhere"})
