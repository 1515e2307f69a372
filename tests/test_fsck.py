"""Compares the names of a cluster with the objects on its nodes: lost objects, objects without a file, and a cluster in use."""

import json
import shutil
import sqlite3
import threading
import urllib.error
import urllib.request

import pytest
from cluster import Nodes, Up
from faults import SlowPut, identity, noise, numbers, only_objects_of, visible

ZEROS = "0" * 32


def check(cluster, *args, code=0):
    done = cluster.grist("fsck", cluster.url("/"), "--json", *args)
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)["nodes"]


def the_object(nodes, number, path):
    (found,) = [one for one in nodes.objects(number) if one.name == identity(nodes, path)]
    return found


def test_a_sound_cluster_is_sound(clusters):
    up = clusters(Up, nodes=3)
    up.put("/short", b"few bytes")
    up.put("/empty", b"")
    up.put("/folder/striped", noise(300_000), "--stripe", "64KiB")
    up.put("/numbers", numbers(1 << 14), "--stripe", "16KiB")
    up.grist.ok("run", "gaussian", up.url("/numbers"), "--type", "f64", "-p", "shape=256,64", "--output", up.url("/made"))
    found = check(up)
    assert [node["node"] for node in found] == [0, 1, 2]
    assert sum(node["objects"] for node in found) == len(up.objects())
    assert sum(node["bytes"] for node in found) == up.space()
    assert all(node["lost"] == node["unnamed"] == [] and node["error"] is None for node in found)
    (text,) = up.grist.ok("fsck", up.url("/")).decode().splitlines()
    objects = len(up.objects())
    assert text.startswith(f"{up.url('/')}: 3 nodes, {objects} objects, ") and text.endswith(", all as the files say")


def test_what_is_lost_is_named(clusters):
    nodes = clusters(Nodes, nodes=2)
    for name in ("gone", "cut", "unknown", "older", "sound"):
        nodes.put(f"/{name}", noise(200_000), "--stripe", "64KiB")
    objects = {name: the_object(nodes, 1, f"/{name}") for name in ("gone", "cut", "unknown", "older")}
    nodes.stop(1)
    objects["gone"].unlink()
    objects["unknown"].unlink()
    with open(objects["cut"], "r+b") as file:
        file.truncate(10)
    with sqlite3.connect(nodes.node_dir(1) / "objects" / "meta.sqlite") as meta:
        meta.execute("DELETE FROM objects WHERE id = ?", [objects["unknown"].name])
        meta.execute("UPDATE objects SET version = version - 1 WHERE id = ?", [objects["older"].name])
    meta.close()
    nodes.start(1)
    first, second = check(nodes, code=1)
    assert first["lost"] == [] and first["unnamed"] == second["unnamed"] == []
    lost = {one["path"]: one for one in second["lost"]}
    assert set(lost) == {f"/{name}" for name in objects}
    assert all(lost[f"/{name}"]["object"] == path.name for name, path in objects.items())
    assert "is missing" in lost["/gone"]["why"] and "has 10 bytes" in lost["/cut"]["why"]
    assert lost["/unknown"]["why"] == "is not there" and "has version" in lost["/older"]["why"]
    done = nodes.grist("fsck", nodes.url("/"))
    assert done.returncode == 1 and done.stdout.count(b": LOST: object") == 4 and b"4 objects of files LOST" in done.stdout
    assert b"on storage node 1 (" in done.stdout and b"put files that are LOST again" in done.stdout
    # After removal these files cause no more errors.
    for name in objects:
        nodes.grist.ok("rm", nodes.url(f"/{name}"))
    only_objects_of(nodes, "/sound")
    check(nodes)


@pytest.fixture
def with_strangers(clusters):
    """Objects that no file names, as after the entry node was restored from an older copy of its names."""
    nodes = clusters(Nodes, nodes=2, args=())
    kept = noise(300_000, 2)
    nodes.put("/kept", kept, "--stripe", "64KiB")
    nodes.stop(0)
    copy = nodes.folder / "copy.sqlite"
    shutil.copy(nodes.node_dir(0) / "namespace.sqlite", copy)
    nodes.start(0)
    nodes.put("/newer", noise(300_000), "--stripe", "64KiB")
    newer = identity(nodes, "/newer")
    nodes.stop(0)
    shutil.copy(copy, nodes.node_dir(0) / "namespace.sqlite")
    return nodes, kept, newer


def test_what_nobody_has_is_named_and_removed(with_strangers):
    nodes, kept, newer = with_strangers
    nodes.args = ("--admin", "anonymous")
    nodes.start(0)
    found = check(nodes, code=1)
    assert [[(one["object"], one["removed"]) for one in node["unnamed"]] for node in found] == [[(newer, False)]] * 2
    assert sum(one["bytes"] for node in found for one in node["unnamed"]) == 300_000
    assert any(path.name == newer for path in nodes.objects())
    done = nodes.grist("fsck", nodes.url("/"))
    assert done.returncode == 1 and b"2 objects that no file has" in done.stdout and b"--remove-unnamed" in done.stdout
    found = check(nodes, "--remove-unnamed")
    assert all(one["removed"] for node in found for one in node["unnamed"])
    only_objects_of(nodes, "/kept")
    check(nodes)
    assert nodes.get("/kept") == kept


def test_only_administrators_remove(with_strangers):
    nodes, kept, newer = with_strangers
    nodes.start(0)
    assert "only root may" in nodes.grist.refuses(1, "fsck", nodes.url("/"), "--remove-unnamed")
    assert [path.name for path in nodes.objects()].count(newer) == 2


def test_a_node_that_is_away_is_told(clusters):
    nodes = clusters(Nodes, nodes=3)
    nodes.put("/data", noise(300_000), "--stripe", "64KiB")
    nodes.stop(1)
    found = check(nodes, code=1)
    assert [node["error"] is None for node in found] == [True, False, True]
    assert [node["objects"] for node in found] == [1, 0, 1]
    said = nodes.grist("fsck", nodes.url("/")).stdout.decode()
    assert "): NOT COMPARED to its end: " in said and "1 node NOT COMPARED" in said and "start the nodes" in said


def test_pages_are_told_apart_while_files_come_and_go(clusters):
    """There are more objects than a page holds, and files come and go meanwhile. Nothing wrong is ever reported."""
    nodes = clusters(Nodes, nodes=2)
    folder = nodes.folder / "many"
    folder.mkdir()
    for number in range(1300):
        (folder / f"{number}").write_bytes(bytes([number % 251]) * 10)
    nodes.grist.ok("put", folder, nodes.url("/many"))
    over = threading.Event()

    def work(name):
        number = 0
        while not over.is_set():
            nodes.put(f"/{name}", noise(100_000, number), "--stripe", "16KiB")
            if number % 2:
                nodes.grist.ok("rm", nodes.url(f"/{name}"))
            number += 1

    workers = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for worker in workers:
        worker.start()
    try:
        for _ in range(10):
            found = check(nodes)
            assert sum(node["objects"] for node in found) >= 1300
    finally:
        over.set()
        for worker in workers:
            worker.join()


def test_a_put_that_is_cut_off_is_nobodys_loss(clusters):
    nodes = clusters(Nodes, nodes=2)
    slow = SlowPut(clusters, nodes, "/slow")
    check(nodes)
    slow.put.kill()
    check(nodes)
    assert visible(nodes) == set()


def test_mistakes_are_told(clusters, grist, tmp_path):
    up = clusters(Up, nodes=1)
    assert "leave the path out" in up.grist.refuses(2, "fsck", up.url("/data"))
    assert "is not a cluster" in grist.refuses(2, "fsck", tmp_path)
    for body in (b"", b"{", b'{"number": 0}', json.dumps({"number": 0, "after": "x"}).encode(), b"[" * 2000):
        assert refused(up, body) in (400,), body
    assert refused(up, json.dumps({"number": 7, "after": ZEROS}).encode()) == 400
    assert refused(up, json.dumps({"number": 0, "after": ZEROS}).encode()) == 200


def refused(up, body):
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://{up.entry}/fsck", data=body, method="POST")) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
