"""Folds inside the storage daemons of Ceph, by the object class `gristmill` (`run --place osd`), over a real cluster."""

import json
import math
import os
import subprocess
from pathlib import Path

import ceph_cluster
import numpy as np
import pytest
from test_rados import NAME, PIECE, NodesOverCeph

pytestmark = pytest.mark.ceph

ROOT = Path(__file__).parent.parent
DAEMONS, COPIES = 3, 2
INSIDE = "bytes_folded_in_storage"


@pytest.fixture(scope="module")
def library():
    """The object class, as a library."""
    build = ["cargo", "build", "--quiet", "--package", "gristmill-object-class", "--message-format", "json-render-diagnostics"]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    files = [name for line in done.stdout.splitlines() for name in json.loads(line).get("filenames", ())]
    return Path(next(name for name in files if name.endswith("/libcls_gristmill.so")))


@pytest.fixture(scope="module")
def ceph(library, tmp_path_factory):
    start = lambda folder: ceph_cluster.Rados(folder, "bluestore", DAEMONS, COPIES, object_class=library)
    yield from ceph_cluster.started(start, tmp_path_factory)


@pytest.fixture(scope="module")
def plain_ceph(tmp_path_factory):
    """A cluster without the class."""
    yield from ceph_cluster.started(ceph_cluster.Rados, tmp_path_factory)


@pytest.fixture(scope="module")
def numbers():
    return ceph_cluster.numbers()


@pytest.fixture
def nodes(ceph, clusters):
    return clusters(NodesOverCeph, env=ceph.env)


def answers(nodes, path, *words) -> dict:
    """The answer of each place, which all have the same result."""
    found = {place: nodes.grist.answer(words[0], path, *words[1:], "--place", place) for place in ("osd", "storage", "client", "auto")}
    assert found["storage"]["report"][INSIDE] == found["client"]["report"][INSIDE] == 0
    for place, answer in found.items():
        assert answer["result"] == found["client"]["result"], place
    return found


def test_sums_are_computed_in_the_daemons(nodes, numbers):
    path = nodes.put(NAME, numbers.tobytes())
    found = answers(nodes, path, "sum", "--type", "f64")
    assert found["osd"]["result"]["sum"] == math.fsum(numbers)
    assert found["osd"]["report"][INSIDE] == numbers.nbytes == found["osd"]["report"]["bytes_read"]
    assert found["auto"]["report"][INSIDE] > 0, "auto folds where it is faster"
    shown = nodes.grist("run", "sum", path, "--type", "f64", "--place", "osd").stderr.decode()
    assert "folded in the storage daemons" in shown, shown


@pytest.mark.parametrize(
    "words",
    [
        ("mean", "--type", "f64"), ("var", "--type", "f64"), ("minmax", "--type", "f64"), ("median", "--type", "f64"),
        ("histogram", "--type", "f64", "--param", "bins=7"), ("unique", "--type", "u8"), ("top", "--type", "f64", "--param", "k=5"),
        ("kmeans", "--type", "f64", "--param", "k=2", "--param", "dims=1"), ("count", "--type", "f64", "--big-endian"),
        ("sum", "--type", "i32", "--big-endian", "--skip", "3"), ("sum", "--record", "24", "--type", "f64"), ("first", "--type", "f64"),
        ("count", "--record", "13"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_kernels_give_the_same_bits_everywhere(nodes, words):
    values = np.random.default_rng(3).normal(size=1_300_003)
    path = nodes.put(NAME, values.tobytes()[: -(values.nbytes % 312) or None])
    if "--skip" in words:
        path = nodes.put(NAME, b"abc" + values.tobytes())
    found = answers(nodes, path, *words)
    assert found["osd"]["report"][INSIDE] > 0, found["osd"]["report"]


def test_lines_cross_stripes_and_pieces(nodes):
    text = b"".join(b"%d some words\n" % number for number in range(700_000))
    assert len(text) > 2 * PIECE
    path = nodes.put("/words.txt", text, "--stripe", "64KiB")
    found = answers(nodes, path, "wc")
    assert found["osd"]["result"]["lines"] == 700_000
    assert found["osd"]["report"][INSIDE] == len(text)


def test_records_that_lie_in_two_stripes_are_folded_by_nodes(nodes):
    values = np.arange(1_000_000.0)
    path = nodes.put(NAME, values.tobytes(), "--stripe", "100004")
    found = answers(nodes, path, "sum", "--type", "f64")
    inside = found["osd"]["report"][INSIDE]
    assert values.nbytes - 8 * 200 < inside < values.nbytes


def test_a_file_with_nothing_in_it(nodes):
    path = nodes.put(NAME, b"")
    assert nodes.grist.ask("sum", path, "--type", "f64", "--place", "osd")["sum"] == 0


def test_what_is_no_number_is_an_error_at_its_record(nodes, numbers):
    values = numbers.copy()
    values[2_000_000] = np.nan
    path = nodes.put(NAME, values.tobytes())
    words = ("run", "max", path, "--type", "f64", "--param", "nan=error", "--place")
    there, here = nodes.grist(*words, "osd"), nodes.grist(*words, "client")
    assert there.returncode == here.returncode == 1
    assert there.stderr == here.stderr and b"2000000" in there.stderr, there.stderr


@pytest.mark.parametrize("words", [("grep", "--param", "pattern=a"), ("lookup", "--type", "f64", "--param", "where=> 1")], ids=" ".join)
def test_kernels_that_give_rows_stay_on_nodes(nodes, words):
    path = nodes.put(NAME, np.arange(1000.0).tobytes())
    refused = nodes.grist("run", words[0], path, *words[1:], "--place", "osd")
    assert refused.returncode == 2 and b"gives rows" in refused.stderr and b"--place storage" in refused.stderr, refused.stderr


def test_a_daemon_that_is_gone_changes_no_answer(ceph, nodes, numbers):
    path = nodes.put(NAME, numbers.tobytes())
    ceph.kill(ceph.osds[1])
    try:
        assert nodes.grist.ask("sum", path, "--type", "f64", "--place", "osd")["sum"] == math.fsum(numbers)
    finally:
        ceph.start_osd(1)


def test_python_asks_for_the_daemons(ceph, nodes, numbers):
    import gristmill as gm

    path = nodes.put(NAME, numbers.tobytes())
    answer = gm.run("sum", path, type="f64", place="osd")
    assert answer["sum"] == math.fsum(numbers) and answer.report[INSIDE] == numbers.nbytes


def test_files_of_directories_are_not_in_ceph(clusters, numbers):
    from cluster import Nodes

    nodes = clusters(Nodes)
    path = nodes.put(NAME, numbers.tobytes())
    refused = nodes.grist("run", "sum", path, "--type", "f64", "--place", "osd")
    assert refused.returncode == 2 and b"in no pool of Ceph" in refused.stderr, refused.stderr
    here = nodes.folder / "x.f64"
    here.write_bytes(b"\0" * 8)
    refused = nodes.grist("run", "sum", here, "--type", "f64", "--place", "osd")
    assert refused.returncode == 2 and b"omit --place" in refused.stderr, refused.stderr


def test_daemons_without_the_class_say_what_to_install(plain_ceph, clusters, numbers):
    nodes = clusters(NodesOverCeph, env=plain_ceph.env)
    path = nodes.put(NAME, numbers.tobytes())
    refused = nodes.grist("run", "sum", path, "--type", "f64", "--place", "osd")
    assert refused.returncode == 2 and b"libcls_gristmill.so" in refused.stderr, refused.stderr
    auto = nodes.grist.answer("sum", path, "--type", "f64")
    assert auto["result"]["sum"] == math.fsum(numbers) and auto["report"][INSIDE] == 0


def test_a_key_without_the_right_is_told(ceph, clusters, numbers):
    nodes = clusters(NodesOverCeph, env={**ceph.env, "CEPH_ARGS": "--id notclass"})
    path = nodes.put(NAME, numbers.tobytes())
    refused = nodes.grist("run", "sum", path, "--type", "f64", "--place", "osd")
    assert refused.returncode == 2 and b"does not let this key call the object class" in refused.stderr, refused.stderr
    assert nodes.grist.ask("sum", path, "--type", "f64")["sum"] == math.fsum(numbers)


def test_nonsense_does_not_end_a_daemon(ceph, nodes):
    """A client may send any bytes to the class. The daemons refuse them and stay alive."""
    script = f"""
import rados
cluster = rados.Rados(conffile={str(ceph.config)!r}, name="client.node")
cluster.connect()
pool = cluster.open_ioctx({ceph_cluster.NODE_POOL!r})
pool.write_full("victim", b"1234567812345678")
for message in (b"", b"x", bytes(1000), b"\\1" + bytes(7), b"\\1" + bytes(7) + b"\\xff" * 200):
    try:
        pool.execute("victim", "gristmill", "fold", message)
        print("answered", message)
    except rados.Error as error:
        print(error.errno)
assert pool.read("victim") == b"1234567812345678"
pool.remove_object("victim")
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([ceph_cluster.SYSTEM_PYTHON, "-c", script], env=environment, capture_output=True, text=True, timeout=ceph_cluster.STARTING)
    assert done.returncode == 0, done.stderr
    assert "answered" not in done.stdout and len(done.stdout.split()) == 5, done.stdout
    assert all(child.poll() is None for child in ceph.osds.values())
