"""Full disks and damaged stores: an error that names the node, and never a wrong number."""

import contextlib
import os
import subprocess

import pytest
from cluster import Nodes, Process, until
from faults import BOUND, MIB, fails, identity, noise, numbers, only_objects_of, source, visible


@pytest.fixture
def nodes(nodes_of_test):
    return nodes_of_test(Nodes, nodes=3)


@contextlib.contextmanager
def small_disk(tmp_path, started, size):
    """A disk of this size for the folders of nodes. The nodes end before the disk is removed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", disk], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("a small disk cannot be mounted here; that takes root")
    try:
        yield disk
    finally:
        for nodes in started.clusters:
            nodes.end()
        subprocess.run(["umount", disk], check=True)


def test_a_full_disk(nodes_of_test, tmp_path):
    with small_disk(tmp_path, nodes_of_test, "24m") as disk:
        nodes = nodes_of_test(Nodes, nodes=3, dirs={1: disk / "node1"})
        old = noise(6 * MIB)
        nodes.put("/old", old, "--stripe", "64KiB")

        def free():
            stat = os.statvfs(disk)
            return stat.f_bavail * stat.f_frsize

        before = free()
        big = source(nodes, noise(100 * MIB), "big")
        for path in ("/new", "/old"):
            text = fails(nodes, "put", big, nodes.url(path), names=(nodes.listen[1],))
            assert "space" in text.lower(), text
            assert visible(nodes) == {"old"}
            assert nodes.get("/old") == old
            # The log of the node's metadata keeps some space.
            until(lambda: free() > before - MIB, "its space is given back", 90)
            only_objects_of(nodes, "/old")
        nodes.put("/new", noise(MIB))
        assert nodes.get("/new") == noise(MIB)
        answer = nodes.grist.answer("count", nodes.url("/old"), "--type", "u8", "--place", "storage")
        assert answer["result"] == {"count": 6 * MIB}


def test_a_full_disk_of_the_namespace(nodes_of_test, tmp_path):
    with small_disk(tmp_path, nodes_of_test, "8m") as disk:
        nodes = nodes_of_test(Nodes, nodes=2, dirs={0: disk / "node0"})
        nodes.put("/old", b"old", "--on", "1")
        ballast = disk / "ballast"
        with pytest.raises(OSError), open(ballast, "wb", buffering=0) as out:
            while True:
                out.write(b"x" * 4096)
        file = source(nodes, b"new")
        text = fails(nodes, "put", file, nodes.url("/new"), "--on", "1")
        assert "space" in text.lower(), text
        assert nodes.get("/old") == b"old"
        ballast.unlink()
        until(lambda: nodes.grist("put", file, nodes.url("/new")).returncode == 0, "a put succeeds again")
        assert nodes.get("/new") == b"new" and nodes.get("/old") == b"old"


def test_a_disk_that_is_full_to_the_last_byte_can_be_emptied(nodes_of_test, tmp_path):
    """Puts and other files fill the disk to the last byte. Files can be removed, and then puts work again. The second time the
    nodes start again on the full disk."""
    with small_disk(tmp_path, nodes_of_test, "24m") as disk:
        nodes = nodes_of_test(Nodes, nodes=2, dirs={0: disk / "node0", 1: disk / "node1"})
        for again in range(2):
            names = [f"file{number}" for number in range(40)]
            stored = {}
            for number, name in enumerate(names):
                file = source(nodes, noise(600_000, number))
                if nodes.grist("put", file, nodes.url(f"/{name}"), "--stripe", "64KiB").returncode == 0:
                    stored[name] = number
            assert 10 < len(stored) < 40
            with pytest.raises(OSError), open(disk / "ballast", "wb", buffering=0) as out:
                while True:
                    out.write(b"x" * 4096)
            text = fails(nodes, "put", source(nodes, b"new"), nodes.url("/new"))
            assert "space" in text.lower() or "full" in text.lower(), text
            if again:
                # Nodes that start on a full disk join the cluster and remove files too.
                for number in (0, 1):
                    assert nodes.stop(number) == 0
                for number in (0, 1):
                    nodes.start(number)
            for name, number in stored.items():
                assert nodes.get(f"/{name}") == noise(600_000, number)
                nodes.grist.ok("rm", nodes.url(f"/{name}"))
            until(lambda: not nodes.objects(), "the objects are cleared away", 90)
            (disk / "ballast").unlink()
            put = lambda: nodes.grist("put", source(nodes, b"new"), nodes.url("/new")).returncode == 0
            until(put, "the nodes take files again", 90)
            assert nodes.get("/new") == b"new"
            nodes.grist.ok("rm", nodes.url("/new"))


def damaged(nodes, path="/file"):
    return [p for p in nodes.objects(1) if p.name == identity(nodes, path)][0]


def truncate(path):
    os.truncate(path, path.stat().st_size - 100)


def empty(path):
    os.truncate(path, 0)


def remove(path):
    path.unlink()


@pytest.mark.parametrize("harm", [truncate, empty, remove])
@pytest.mark.parametrize("down", [False, True])
def test_damaged_objects_are_errors_and_never_numbers(nodes, harm, down):
    content = numbers(30_000)
    nodes.put("/file", content, "--stripe", "4KiB")
    nodes.put("/whole", content, "--stripe", "4KiB")
    if not down:
        assert nodes.get("/file") == content  # the node has it open
    victim = damaged(nodes)
    if down:
        assert nodes.stop(1) == 0
    harm(victim)
    if down:
        nodes.start(1)
    for place in ("storage", "client"):
        for kernel in (("sum",), ("minmax",), ("lookup", "--param", "where=> 9")):
            done = nodes.grist(
                "run", *kernel, nodes.url("/file"), "--type", "f64", "--place", place, timeout=BOUND
            )
            if harm is remove and not down and done.returncode == 0:
                continue  # a process that has a file open can read its bytes
            assert done.returncode == 1, (kernel, place, done.stdout)
            text = done.stderr.decode()
            assert nodes.listen[1] in text or "target 1" in text or "node 1" in text, text
            assert "again" in text or "restore" in text or "put" in text, text
    done = nodes.grist("get", nodes.url("/file"), nodes.folder / "got", timeout=BOUND)
    if done.returncode == 0:
        assert harm is remove and not down and (nodes.folder / "got").read_bytes() == content
    else:
        assert done.returncode == 1 and not (nodes.folder / "got").exists()
    assert nodes.get("/whole") == content
    # A new put repairs the file.
    nodes.put("/file", content, "--stripe", "4KiB")
    assert nodes.get("/file") == content
    only_objects_of(nodes, "/file", "/whole")


def test_damaged_metadata_is_an_error(nodes):
    content = numbers(30_000)
    nodes.put("/file", content, "--stripe", "4KiB")
    assert nodes.stop(1) == 0
    database = nodes.node_dir(1) / "objects" / "meta.sqlite"
    database.write_bytes(b"\xff" * database.stat().st_size)
    process = Process(
        nodes.folder, "damaged",
        ("serve", "--target", nodes.node_dir(1), "--listen", nodes.listen[1], "--join", nodes.entry,
         "--key", nodes.node_dir(0) / "cluster.key"),
    )  # fmt: skip
    nodes.running[1] = process
    until(lambda: not process.running(), "a node with such a store ends")
    assert process.child.returncode == 1
    text = process.err.read_text()
    assert text.count("\n") == 1 and str(nodes.node_dir(1)) in text, text
    fails(nodes, "get", nodes.url("/file"), "-", names=(nodes.listen[1],))


@pytest.mark.parametrize("name", ["target.id", "meta.sqlite"])
def test_a_target_that_lost_its_files_is_not_taken_for_the_old_one(nodes, name):
    content = numbers(30_000)
    nodes.put("/file", content, "--stripe", "4KiB")
    assert nodes.stop(1) == 0
    for path in nodes.node_dir(1).glob("**/*"):
        if path.is_file() and path.name.startswith(name):
            path.unlink()
    process = Process(
        nodes.folder, "lost",
        ("serve", "--target", nodes.node_dir(1), "--listen", nodes.listen[1], "--join", nodes.entry,
         "--key", nodes.node_dir(0) / "cluster.key"),
    )  # fmt: skip
    nodes.running[1] = process
    until(lambda: not process.running() or b"listening" in process.out.read_bytes(), "it starts or refuses")
    done = nodes.grist("run", "sum", nodes.url("/file"), "--type", "f64", "--place", "storage", timeout=BOUND)
    assert done.returncode == 1, done.stdout
    done = nodes.grist("get", nodes.url("/file"), "-", timeout=BOUND)
    assert done.returncode == 1
