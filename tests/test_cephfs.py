"""Files of CephFS without a mount: read by the process that asks, and by storage nodes.

It takes longer than other files of tests and needs packages, so `make test-ceph` runs it, and `make test` does not.
"""

import json
import math
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attached
import ceph_cluster
import netCDF4
import numpy as np
import pytest
import zarr
from cluster import Nodes, Up, until
from identity import TOKENS, write_tokens

import gristmill as gm

pytestmark = pytest.mark.ceph

NODES = 3
MIB = 1 << 20
ALICE, GROUP, BOB = 54_321, 54_322, 54_331


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    yield from ceph_cluster.started(ceph_cluster.CephFs, tmp_path_factory)


@pytest.fixture
def ceph(started, grist, monkeypatch):
    return ceph_cluster.named_by_environment(started, grist, monkeypatch)


@pytest.fixture(scope="module")
def up(clusters, started, tmp_path_factory):
    """Storage nodes with the file system as /t. They know alice."""
    folder = tmp_path_factory.mktemp("users")
    known = folder / "users"
    known.write_text(f"alice {ALICE} {GROUP}\n")
    args = ("--admin", "anonymous", "--tokens", write_tokens(folder), "--mount-users", known)
    up = clusters(Up, nodes=NODES, args=args, env=started.env)
    assert b"0, 1, 2" in up.grist.ok("attach", "cephfs:///", up.url("/t"))
    return up


@pytest.fixture(params=["bare", "attached"])
def url(request, ceph, up):
    """The URL of a key: of the file system, or in the tree of the nodes."""
    return ceph.url if request.param == "bare" else lambda key: up.url(f"/t/{key}")


@pytest.fixture(scope="module")
def numbers():
    return ceph_cluster.numbers()


@pytest.fixture(scope="module")
def temperatures(tmp_path_factory):
    """The same variable as netCDF-4 of more than one object, and as Zarr of both versions."""
    folder = tmp_path_factory.mktemp("made")
    attached.made_temperatures(folder)
    return folder


def test_the_suite_of_backends(ceph):
    command = ["cargo", "test", "--quiet", "--package", "gristmill-cephfs", "--test", "cluster", "--", "--test-threads", "8"]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, env={**os.environ, **ceph.env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


@pytest.mark.parametrize("layout", [None, (64 << 10, 3, 256 << 10), (MIB, 2, 2 * MIB)])
def test_kernels_over_numbers_give_what_numpy_gives(grist, ceph, url, numbers, layout):
    name = f"numbers/{layout and layout[0]}.f64"
    ceph.put(name, numbers.tobytes(), layout=layout)
    found = url(name)
    assert grist.ask("sum", found, "--type", "f64")["sum"] == math.fsum(numbers)
    extremes = grist.ask("minmax", found, "--type", "f64")
    assert (extremes["min"], extremes["min_index"]) == (numbers.min(), numbers.argmin())
    part = grist.ask("sum", found, "--type", "f64", "--range", f"{4 * MIB - 8}:{8 * MIB + 16}")
    assert part["sum"] == math.fsum(numbers[4 * MIB // 8 - 1 :][: MIB + 2])


def test_every_node_reads_a_part(up, ceph, numbers):
    ceph.put("parts/x.f64", numbers.tobytes())
    for place in ("storage", "client"):
        got = up.grist.answer("sum", up.url("/t/parts/x.f64"), "--type", "f64", "--place", place)
        assert got["result"]["sum"] == math.fsum(numbers)
        if place == "storage":
            assert got["report"]["bytes_moved"] == 0 and got["report"]["bytes_to_client"] < 10_000, got["report"]
            assert len({place["node"] for place in got["report"]["places"] if place["bytes"]}) == NODES


def test_names_states_and_copies(grist, ceph, up, url, tmp_path):
    for name in ("a.u8", "b/c.u8", "b/ä 100%.u8"):
        ceph.put(f"names/{name}", name.encode())
    assert grist.ok("ls", url("names")).decode() == "a.u8\nb/\n"
    assert sorted(grist.ok("ls", url("names/b")).decode().split("\n")) == ["", "c.u8", "ä 100%.u8"]
    assert grist.ok("get", url("names/b/ä 100%.u8"), "-") == "b/ä 100%.u8".encode()
    size = json.loads(up.grist.ok("du", up.url("/t/names"), "--json"))
    assert (size["files"], size["bytes"]) == (3, sum(len(name.encode()) for name in ("a.u8", "b/c.u8", "b/ä 100%.u8")))
    assert "there is no" in grist.refuses(2, "get", url("names/missing"), "-")
    assert "directory" in grist.refuses(2, "run", "sum", ceph.url("names"), "--type", "u8")


def test_python_reduces_what_netcdf4_reads(ceph, url, temperatures):
    ceph.put("nc/t.nc", (temperatures / "t.nc").read_bytes())
    with netCDF4.Dataset(temperatures / "t.nc") as file:
        values = file["t"][:].filled(np.nan)
    found = gm.open_dataset(url("nc/t.nc"))["t"]
    np.testing.assert_allclose(found.mean("t").values, values.mean(axis=0, dtype="f8"), rtol=1e-6)
    np.testing.assert_array_equal(found.max("t").values, values.max(axis=0))
    np.testing.assert_array_equal(found[3, 5:9, ::7].values, values[3, 5:9, ::7])


@pytest.mark.parametrize("version", [2, 3])
def test_python_reduces_what_zarr_reads(ceph, url, temperatures, version):
    ceph.put_folder(temperatures / f"t{version}.zarr", f"zarr{version}/t.zarr")
    values = zarr.open_group(temperatures / f"t{version}.zarr", mode="r")["t"][:]
    found = gm.open_dataset(url(f"zarr{version}/t.zarr"))["t"].data
    np.testing.assert_allclose(np.asarray(found.mean(axis=0)), values.mean(axis=0, dtype="f8"), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(found[3, 5:9, ::7]), values[3, 5:9, ::7])


@pytest.mark.parametrize("change", ["replace", "overwrite", "grow", "cut", "remove"])
def test_an_open_file_that_changes_is_stale(ceph, url, change):
    size = 9 * MIB
    ceph.put("stale/x.u8", b"\x01" * size)
    with gm.open(url("stale/x.u8")) as file:
        assert file.read(10) == b"\x01" * 10
        if change == "remove":
            ceph.remove("stale/x.u8")
        elif change == "replace":
            ceph.replace("stale/x.u8", b"\x02" * size)
        elif change == "overwrite":
            ceph.put("stale/x.u8", b"\x02", offset=size - 1, cut=False)
        else:
            ceph.put("stale/x.u8", b"\x02" * {"grow": size + 1, "cut": size - MIB}[change])
        file.seek(size - 2 * MIB)
        with pytest.raises(gm.Stale, match="x.u8"):
            file.read(10)


def test_an_answer_is_of_one_version(grist, ceph, url):
    contents = [bytes([value]) * (9 * MIB) for value in (1, 2)]
    sums = [sum(content) for content in contents]
    ceph.put("changing/x.u8", contents[1])

    def change():
        for n in range(12):
            (ceph.replace if n % 3 else ceph.put)("changing/x.u8", contents[n % 2])

    with ThreadPoolExecutor(1) as writers:
        writer = writers.submit(change)
        while not writer.done():
            done = grist("run", "sum", url("changing/x.u8"), "--type", "u8", "--json")
            if done.returncode == 0:
                assert json.loads(done.stdout)["result"]["sum"] in sums
            else:
                assert b"x.u8" in done.stderr and b"changed" in done.stderr, done.stderr
        writer.result()
    assert grist.ask("sum", url("changing/x.u8"), "--type", "u8")["sum"] == sums[1]


def test_a_snapshot_is_a_folder(grist, ceph, url):
    ceph.put("kept/x.u8", b"\x01" * 100)
    ceph.snapshot("kept", f"then{url('').count('grist')}")
    ceph.put("kept/x.u8", b"\x02" * 100)
    found = url(f"kept/.snap/then{url('').count('grist')}/x.u8")
    assert grist.ask("sum", found, "--type", "u8")["sum"] == 100
    assert grist.ask("sum", url("kept/x.u8"), "--type", "u8")["sum"] == 200


def test_a_file_that_grows_is_read_up_to_its_last_line(up, ceph):
    ceph.put("grows/log", b"one\ntwo\nthr")
    asked = ("run", "wc", up.url("/t/grows/log"), "--json")
    assert json.loads(up.grist.ok(*asked, "--growing"))["result"]["lines"] == 2
    ceph.put("grows/log", b"ee\n", offset=11, cut=False)
    assert json.loads(up.grist.ok(*asked, "--growing"))["result"]["lines"] == 3


def test_modes_and_lists_are_those_of_the_user(up, ceph):
    alice, bob = ({"GRISTMILL_TOKEN": TOKENS[name]} for name in ("alice", "bob"))
    for name, owner, group, mode, alice_reads, bob_reads in [
        ("own", ALICE, 0, 0o400, True, False),
        ("group", 0, GROUP, 0o040, True, False),
        ("public", BOB, BOB, 0o644, True, True),
        ("other", BOB, BOB, 0o600, False, False),
        ("not-the-owner", ALICE, GROUP, 0o044, False, True),
        ("closed/public", BOB, BOB, 0o644, False, False),
    ]:
        ceph.put(f"rights/{name}", b"12345678")
        ceph.own(f"rights/{name}", owner, group, mode)
        if name.startswith("closed/"):
            ceph.own("rights/closed", BOB, BOB, 0o700)
        for env, reads in ((alice, alice_reads), (bob, bob_reads)):
            if reads:
                assert up.grist.ok("get", up.url(f"/t/rights/{name}"), "-", env=env) == b"12345678", name
            else:
                assert "may not be read" in up.grist.refuses(1, "get", up.url(f"/t/rights/{name}"), "-", env=env), name
    # A list gives alice a right that the mode does not show, and takes one away that it shows.
    ceph.put("rights/given", b"1")
    ceph.own("rights/given", BOB, BOB, 0o600)
    ceph.allow("rights/given", ("user_obj", -1, 6), ("user", ALICE, 4), ("group_obj", -1, 0), ("mask", -1, 4), ("other", -1, 0))
    assert up.grist.ok("get", up.url("/t/rights/given"), "-", env=alice) == b"1"
    ceph.put("rights/taken", b"1")
    ceph.own("rights/taken", BOB, GROUP, 0o640)
    ceph.allow("rights/taken", ("user_obj", -1, 6), ("user", ALICE, 0), ("group_obj", -1, 4), ("mask", -1, 4), ("other", -1, 0))
    text = up.grist.refuses(1, "get", up.url("/t/rights/taken"), "-", env=alice)
    assert f"as user {ALICE}" in text


def test_links_do_not_lead_out_of_a_tree(up, ceph):
    ceph.put("inner/x.u8", b"1")
    up.grist.ok("attach", "cephfs:///inner", up.url("/inner"))
    assert up.grist.ok("get", up.url("/inner/x.u8"), "-") == b"1"
    up.grist.ok("detach", up.url("/inner"))


def test_the_folder_of_a_bare_url_may_be_a_link(grist, ceph):
    ceph.put("linked/of/x.u8", b"\x02\x03")
    ceph.link("of", "linked/latest")
    ceph.link("linked/latest", "twice-linked")
    for name in ("linked/of", "linked/latest", "twice-linked"):
        assert grist.ask("sum", ceph.url(f"{name}/x.u8"), "--type", "u8")["sum"] == 5
        assert grist.ok("ls", ceph.url(name)).decode() == "x.u8\n"
    ceph.link("/linked/of", "linked/absolute")
    assert "symbolic link" in grist.refuses(1, "run", "sum", ceph.url("linked/absolute/x.u8"), "--type", "u8")


def test_a_client_that_the_cluster_shut_out_connects_again(up, ceph):
    ceph.put("again/x.u8", b"\x01" * 100)
    asked = ("run", "sum", up.url("/t/again/x.u8"), "--type", "u8", "--json")
    assert json.loads(up.grist.ok(*asked))["result"]["sum"] == 100
    ceph.evict("reader")
    assert json.loads(up.grist.ok(*asked))["result"]["sum"] == 100


def test_a_server_that_is_started_again(up, ceph):
    ceph.put("server/x.u8", b"\x01" * 100)
    asked = ("run", "sum", up.url("/t/server/x.u8"), "--type", "u8", "--json")
    assert json.loads(up.grist.ok(*asked))["result"]["sum"] == 100
    ceph.server.send_signal(signal.SIGKILL)
    ceph.server.wait()
    ceph.start_server()
    assert json.loads(up.grist.ok(*asked))["result"]["sum"] == 100


class AtDaemons(Nodes):
    """A node at the address of each storage daemon, and one elsewhere."""

    def start(self, number):
        self.listen.setdefault(number, f"127.0.0.{2 + number}:0")
        super().start(number)


def test_nodes_fold_the_objects_at_their_hosts(ceph, started, nodes_of_test, numbers):
    up = nodes_of_test(AtDaemons, nodes=3, args=("--admin", "anonymous"), env=started.env)
    up.grist.ok("attach", "cephfs:///", up.url("/t"))
    # 20 MiB: five objects of 4 MiB, or three pairs of them.
    for name, layout, objects in (("plain", None, 5), ("striped", (MIB, 2, 4 * MIB), 6)):
        before = ceph.objects()
        content = numbers.tobytes()
        ceph.put(f"near/{name}.f64", content, layout=layout)
        made = sorted(ceph.objects() - before)
        assert len(made) == objects
        wanted = dict.fromkeys(range(ceph_cluster.OSDS), 0)
        for stored in made:
            wanted[ceph.daemon_of(stored)] += ceph.size_of(stored)
        got = {one["target"]: one["bytes"] for one in up.stat(f"/t/near/{name}.f64")["targets"]}
        assert got == {number: size for number, size in wanted.items() if size}, name
        answer = up.grist.answer("sum", up.url(f"/t/near/{name}.f64"), "--type", "f64", "--place", "storage")
        assert answer["result"]["sum"] == math.fsum(numbers)


def test_objects_of_a_mounted_file_are_folded_at_their_hosts(ceph, started, nodes_of_test, numbers, tmp_path):
    ceph.put("mounted/x.f64", numbers.tobytes(), layout=(MIB, 1, MIB))
    with ceph.mounted(tmp_path / "mount") as mount:
        up = nodes_of_test(AtDaemons, nodes=ceph_cluster.OSDS, args=("--admin", "anonymous"), env=started.env)
        up.grist.ok("attach", "cephfs:///mounted", up.url("/direct"))
        up.grist.ok("attach", mount / "mounted", up.url("/t"))
        shares = lambda path: [(one["target"], one["bytes"]) for one in up.stat(path)["targets"]]
        wanted = shares("/direct/x.f64")
        assert len(wanted) > 1
        until(lambda: shares("/t/x.f64") == wanted, "the entry node asks Ceph for the places of files of the mount")
        answer = up.grist.answer("sum", up.url("/t/x.f64"), "--type", "f64", "--place", "storage")
        assert answer["result"]["sum"] == math.fsum(numbers)


@pytest.mark.parametrize("count", [1, 2])
def test_objects_of_a_long_file_are_folded_at_their_hosts(ceph, started, nodes_of_test, count):
    size, objects = 64 << 10, 5_000
    up = nodes_of_test(AtDaemons, nodes=ceph_cluster.OSDS, args=("--admin", "anonymous"), env=started.env)
    up.grist.ok("attach", "cephfs:///", up.url("/t"))
    name = f"long/{count}.u8"
    # All but the last object are holes.
    ceph.put(name, b"\x07" * size, offset=(objects - 1) * size, layout=(size, count, count * size))
    end = b"%08x" % ((objects - 1) // count**2 * count + (objects - 1) % count)
    (last,) = (stored for stored in ceph.objects() if stored.encode().endswith(b"." + end))
    inode = last.split(".")[0]
    for stripe in (0, 1, 2, 77, 4_095, 4_096, 4_097, objects - 1):
        stored = f"{inode}.{stripe // count**2 * count + stripe % count:08x}"
        range_ = f"{stripe * size}:{size}"
        answer = up.grist.answer("sum", up.url(f"/t/{name}"), "--type", "u8", "--range", range_, "--place", "storage")
        assert answer["result"]["sum"] == (7 * size if stripe == objects - 1 else 0)
        readers = [int(place["node"].split()[0]) for place in answer["report"]["places"] if place["bytes"]]
        assert readers == [ceph.daemon_of(stored)], (stripe, stored)


def test_a_command_that_is_interrupted_ends_as_others_do(ceph, started, clusters, tmp_path):
    ceph.put("interrupted/x.u8", bytes(48 * MIB))
    for _ in range(6):
        asked = ("run", "sum", ceph.url("interrupted/x.u8"), "--type", "u8")
        process = clusters.process(tmp_path, "interrupted", asked, env=started.env)
        # From then on it reads, or will soon.
        until(lambda pid=process.pid: b"libcephfs" in Path(f"/proc/{pid}/maps").read_bytes() or not process.running(), "the library")
        process.signal(signal.SIGINT)
        assert process.child.wait(60) in (0, 130, -signal.SIGINT), process.err.read_text()


def test_wrong_clusters_are_told(grist, ceph, tmp_path):
    ceph.put("wrong/x.u8", b"1")
    asked = ("run", "sum", ceph.url("wrong/x.u8"), "--type", "u8")
    for env, words in [
        ({"CEPH_CONF": str(tmp_path / "missing")}, "CEPH_CONF"),
        ({"CEPH_ARGS": "--id nobody"}, "client.nobody"),
    ]:
        assert words in grist.refuses(1, *asked, env={**ceph.env, **env})
    assert "cephfs://other/" in grist.refuses(1, "run", "sum", "cephfs://other/x", "--type", "u8")
    weak = ceph.ceph("auth", "get-or-create", "client.weak", "mon", "allow r", "mds", "allow r")
    keyring = tmp_path / "keyring"
    keyring.write_text(weak)
    text = grist.refuses(1, *asked, env={**ceph.env, "CEPH_ARGS": f"--id weak --keyring {keyring}"})
    assert "osd: allow r" in text
