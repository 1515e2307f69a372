"""Directories of a cluster: copied both ways, renamed, removed, added up and listed."""

import json
import os
import random
import signal
import subprocess
import threading

import numpy as np
import pytest
import xarray as xr
import zarr
from cluster import Nodes, Up, until
from conftest import one_message
from faults import Background
from identity import OTHER, other  # noqa: F401
from identity import socket  # noqa: F401


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=3)


def filled(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def tree(folder):
    """All files below a folder of this machine, by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names(up, path="/"):
    """All files below a directory of the cluster."""
    done = up.grist("ls", up.url(path), "--json")
    if done.returncode != 0:
        return set()
    found = set()
    for entry in json.loads(done.stdout)["entries"]:
        name = f"{path.rstrip('/')}/{entry['name']}"
        found |= names(up, name) if entry["kind"] == "directory" else {name}
    return found


FILES = {
    "a": b"", "b.txt": b"b", "deep/er/still": bytes(range(256)) * 1000, "deep/c": b"c" * 5000,
    "grüße/mit leer": b"x", **{f"many/{n}": str(n).encode() for n in range(150)},
}  # fmt: skip


def test_a_folder_comes_back_as_it_was(up, tmp_path):
    source = filled(tmp_path / "source", FILES)
    up.grist.ok("put", source, up.url("/there"), "--stripe", "1KiB")
    up.grist.ok("get", up.url("/there"), tmp_path / "copy")
    assert tree(tmp_path / "copy") == FILES
    (tmp_path / "into").mkdir()
    for form in (f"{tmp_path}/into", f"{tmp_path}/into/"):
        up.grist.ok("get", up.url("/there/deep"), form)
        assert tree(tmp_path / "into") == {name: content for name, content in FILES.items() if name[:5] == "deep/"}
        subprocess.run(["rm", "-r", tmp_path / "into" / "deep"], check=True)
    message = up.grist.refuses(2, "get", up.url("/there"), "-")
    assert "is a directory" in message
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".partial")]


def test_a_folder_that_is_there_already_is_left_alone(up, tmp_path):
    up.put("/simple/x", b"new")
    there = filled(tmp_path / "simple", {"x": b"old", "y": b"mine"})
    message = up.grist.refuses(2, "get", up.url("/simple"), tmp_path)
    assert str(there) in message and "already" in message
    assert tree(there) == {"x": b"old", "y": b"mine"}


def test_zarr_is_at_home(up, tmp_path):
    data = np.arange(24.0).reshape(4, 6)
    xr.Dataset({"t": (("y", "x"), data)}).to_zarr(tmp_path / "out.zarr", zarr_format=2)
    url = up.url("/o.zarr")
    up.grist.ok("put", tmp_path / "out.zarr", url)
    stored = tree(tmp_path / "out.zarr")
    shown = up.grist.ok("stat", url).decode()
    assert "a directory" in shown and "Zarr" in shown and "float64" in shown.replace("f64", "float64")
    about = json.loads(up.grist.ok("stat", url, "--json"))
    assert about["kind"] == "directory" and about["files"] == len(stored)
    assert about["length"] == sum(map(len, stored.values()))
    assert [variable["name"] for variable in about["variables"]] == ["t"]
    one = json.loads(up.grist.ok("stat", url, "--var", "t", "--json"))["variables"][0]
    assert one["shape"] == [4, 6] and sum(held["chunks"] for held in one["targets"]) >= one["stored_chunks"]
    amount = json.loads(up.grist.ok("du", url, "--json"))
    assert (amount["files"], amount["bytes"]) == (len(stored), about["length"])
    assert str(len(stored)) in up.grist.ok("du", url).decode()
    up.grist.ok("get", url, tmp_path / "back.zarr")
    assert tree(tmp_path / "back.zarr") == stored
    np.testing.assert_array_equal(xr.open_zarr(tmp_path / "back.zarr")["t"].values, data)
    up.grist.ok("mv", url, up.url("/renamed.zarr"))
    assert up.grist.answer("sum", up.url("/renamed.zarr"), "--var", "t")["result"]["sum"]["values"] == [276.0]
    up.grist.ok("cp", "-r", up.url("/renamed.zarr"), url)
    up.grist.ok("rm", "-r", up.url("/renamed.zarr"))
    assert names(up, "/renamed.zarr") == set() and len(names(up, "/o.zarr")) == len(stored)
    assert up.grist.answer("sum", url, "--var", "t")["result"]["sum"]["values"] == [276.0]


def stores(folder):
    """Two Zarr stores of one array: one has eight elements of 1, the other has two. Chunks with only missing elements are not
    stored."""
    how = {"v": {"chunks": (2,), "_FillValue": float("nan")}}
    for name, there in (("whole.zarr", 8), ("less.zarr", 2)):
        values = np.where(np.arange(8) < there, 1.0, np.nan)
        xr.Dataset({"v": ("x", values)}).to_zarr(folder / name, encoding=how)
    return folder / "whole.zarr", folder / "less.zarr"


def test_zarr_takes_the_place_of_zarr(up, tmp_path):
    whole, less = stores(tmp_path)
    up.grist.ok("put", whole, up.url("/replaced.zarr"))
    for source, count in ((less, 2), (whole, 8), (less, 2)):
        up.grist.ok("put", source, up.url("/replaced.zarr"))
        answer = up.grist.answer("count", up.url("/replaced.zarr"), "--var", "v")
        assert answer["result"]["count"]["values"] == [count]
        assert {name.removeprefix("/replaced.zarr/") for name in names(up, "/replaced.zarr")} == set(tree(source))
    # A folder that is not a Zarr store is not replaced.
    up.put("/ordinary/file", b"1")
    assert "not a Zarr folder" in up.grist.refuses(2, "put", whole, up.url("/ordinary"))
    assert names(up, "/ordinary") == {"/ordinary/file"}
    # A store inside another folder would mix with the existing files.
    outer = tmp_path / "outer"
    outer.mkdir()
    whole.rename(outer / "v.zarr")
    up.grist.ok("put", outer, up.url("/outer"))
    message = up.grist.refuses(2, "put", outer, up.url("/outer"))
    assert "/outer is there already" in message and "remove it first" in message


def test_files_go_among_those_of_a_folder_that_is_there(up, tmp_path):
    up.grist.ok("put", filled(tmp_path / "one", {"a": b"1", "b": b"1"}), up.url("/among"))
    up.grist.ok("put", filled(tmp_path / "two", {"b": b"2", "c": b"2"}), up.url("/among"))
    assert [up.get(f"/among/{name}") for name in "abc"] == [b"1", b"2", b"2"]


def test_files_that_nobody_may_write_are_put_and_copied(up, tmp_path):
    source = filled(tmp_path / "source", {"a": b"1", "deep/b": b"2"})
    up.grist.ok("put", source, up.url("/closed/one"), "--mode", "444")
    up.grist.ok("cp", "-r", up.url("/closed/one"), up.url("/closed/two"))
    assert names(up, "/closed") == {f"/closed/{folder}/{name}" for folder in ("one", "two") for name in ("a", "deep/b")}
    assert {up.stat(name)["mode"] for name in names(up, "/closed")} == {"444"}
    assert up.get("/closed/two/deep/b") == b"2"


@pytest.mark.parametrize("bad", ["link to nothing", "fifo"])
def test_nothing_is_left_of_a_folder_that_cannot_be_put(up, tmp_path, bad):
    source = filled(tmp_path / "source", FILES)
    if bad == "fifo":
        os.mkfifo(source / "bad")
    else:
        (source / "bad").symlink_to("nowhere")
    done = up.grist("put", source, up.url("/failed/folder"))
    assert done.returncode in (1, 2) and b"bad" in done.stderr and b"nothing of" in done.stderr, done.stderr
    assert names(up, "/failed") == set()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no files" in up.grist.refuses(2, "put", empty, up.url("/failed/folder"))


def test_a_folder_is_whole_or_not_there(nodes_of_test, up, tmp_path):
    """Ctrl-C interrupts put and cp -r."""
    source = filled(tmp_path / "source", {f"{n:05}": b"x" * 100 for n in range(4000)})
    up.grist.ok("put", source, up.url("/whole/all"))
    for command in (("put", source, up.url("/stopped/folder")), ("cp", "-r", up.url("/whole/all"), up.url("/stopped/folder"))):
        running = Background(nodes_of_test, up, *command)
        until(lambda: any(".partial/" in name for name in names(up, "/stopped")), "some files are there")
        assert not any(name.startswith("/stopped/folder") for name in names(up, "/stopped"))
        running.signal(signal.SIGINT)
        _, said = running.child.communicate(timeout=60)
        assert running.child.returncode == 130 and b"nothing of it is left" in said and b"/stopped/folder" in said, said
        assert names(up, "/stopped") == set()


def test_zarr_that_is_damaged_is_shown_for_what_it_is(up, tmp_path):
    zarr.open_group(tmp_path / "bad.zarr", mode="w").create_array("v", data=np.zeros(3))
    (tmp_path / "bad.zarr" / "zarr.json").write_text("{")
    up.grist.ok("put", tmp_path / "bad.zarr", up.url("/bad.zarr"))
    assert "cannot be shown" in up.grist.ok("stat", up.url("/bad.zarr")).decode()
    assert json.loads(up.grist.ok("stat", up.url("/bad.zarr"), "--json"))["unreadable"]
    assert up.grist("stat", up.url("/bad.zarr"), "--var", "v").returncode == 1


@pytest.mark.parametrize("kind", ["zarr", "nc", "npy"])
def test_get_of_a_variable_is_as_of_a_local_file(up, tmp_path, kind):
    data = np.arange(60, dtype="f4").reshape(3, 20)
    path = tmp_path / f"file.{kind}"
    if kind == "zarr":
        zarr.open_group(path, mode="w").create_array("v", data=data, chunks=(2, 7))
    elif kind == "nc":
        xr.Dataset({"v": (("y", "x"), data)}).to_netcdf(path, engine="h5netcdf")
    else:
        np.save(path, data)
    name = "data" if kind == "npy" else "v"
    up.grist.ok("put", path, up.url(f"/get/file.{kind}"))
    up.grist.ok("get", up.url(f"/get/file.{kind}"), tmp_path / "v.npy", "--var", name)
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), data)
    assert up.grist.ok("get", up.url(f"/get/file.{kind}"), "-", "--var", name) == (tmp_path / "v.npy").read_bytes()
    (tmp_path / "into").mkdir()
    up.grist.ok("get", up.url(f"/get/file.{kind}"), tmp_path / "into", "--var", name)
    assert tree(tmp_path / "into") == {"file.npy": (tmp_path / "v.npy").read_bytes()}
    message = up.grist.refuses(2, "get", up.url(f"/get/file.{kind}"), tmp_path / "w.npy", "--var", "absent")
    assert "absent" in message and not (tmp_path / "w.npy").exists()


def test_moves_are_those_of_mv(clusters, tmp_path):
    """Random moves and removals, compared with mv and rm. Empty folders are removed here, as a cluster removes them."""
    up = clusters(Up, nodes=1)
    choose = random.Random(7)
    here = tmp_path / "here"
    every = [f"{a}{b}{c}" for a in ("/p", "/q") for b in ("", "/p", "/q") for c in ("", "/x", "/x y")]
    counter = moved = refused = 0
    filled(here, {"p/p/x": b"first", "q/x": b"second"})
    for path, content in tree(here).items():
        up.put(f"/{path}", content)
    for _ in range(120):
        one, other = choose.choice(every), choose.choice(every)
        local, beside = here / one[1:], here / other[1:]
        what = choose.random()
        if what < 0.25:
            counter += 1
            content = str(counter).encode()
            source = tmp_path / "source"
            source.write_bytes(content)
            try:
                beside.parent.mkdir(parents=True, exist_ok=True)
                beside.write_bytes(content)
                works = True
            except OSError:
                works = False
            done = up.grist("put", source, up.url(other))
        elif what < 0.35:
            works = subprocess.run(["rm", "-r", local], stderr=subprocess.DEVNULL).returncode == 0
            done = up.grist("rm", "-r", up.url(one))
        else:
            made = subprocess.run(["mkdir", "-p", beside.parent], stderr=subprocess.DEVNULL).returncode == 0
            works = made and subprocess.run(["mv", local, beside], stderr=subprocess.DEVNULL).returncode == 0
            done = up.grist("mv", up.url(one), up.url(other))
            moved, refused = moved + works, refused + (not works)
        subprocess.run(["find", here, "-mindepth", "1", "-type", "d", "-empty", "-delete"], check=True)
        assert (done.returncode == 0) == works, (one, other, what, done.stderr)
        assert names(up) == {f"/{path}" for path in tree(here)}
    for path, content in tree(here).items():
        assert up.get(f"/{path}") == content
    assert moved > 10 and refused > 10


def test_a_move_is_seen_whole_or_not_at_all(up, tmp_path):
    filled(tmp_path / "all", {f"d/{n}": b"1" for n in range(300)})
    up.grist.ok("put", tmp_path / "all", up.url("/swing"))
    over = threading.Event()

    def swing():
        for n in range(20):
            one, other = ("/swing/d", "/swing/e") if n % 2 == 0 else ("/swing/e", "/swing/d")
            up.grist.ok("mv", up.url(one), up.url(other))
        over.set()

    moving = threading.Thread(target=swing)
    moving.start()
    while not over.is_set():
        assert json.loads(up.grist.ok("du", up.url("/swing"), "--json"))["files"] == 300
        entries = json.loads(up.grist.ok("ls", up.url("/swing"), "--json"))["entries"]
        assert [entry["kind"] for entry in entries] == ["directory"]
    moving.join()


def test_a_file_that_is_read_while_it_moves_is_whole(up):
    content = os.urandom(300_000)
    up.put("/moves/a", content, "--stripe", "4KiB", "--mode", "640")
    before = up.stat("/moves/a")
    up.grist.ok("mv", up.url("/moves/a"), up.url("/moves/b"))
    after = up.stat("/moves/b")
    for same in ("id", "mode", "owner", "created", "targets", "stripe_unit"):
        assert after[same] == before[same]
    assert up.get("/moves/b") == content
    up.put("/moves/c", b"old")
    old = up.stat("/moves/c")["id"]
    up.grist.ok("mv", up.url("/moves/b"), up.url("/moves/c"))
    assert up.get("/moves/c") == content and names(up, "/moves") == {"/moves/c"}
    until(lambda: not [path for path in up.objects() if old in path.name], "the replaced file's objects go")


def test_what_cannot_be_moved_copied_or_removed(up, tmp_path):
    up.put("/no/dir/file", b"1")
    up.put("/no/file", b"2")
    before = names(up)
    wrong = {
        ("mv", "/no/absent", "/no/x"): "/no/absent",
        ("mv", "/no/dir", "/no/dir/below"): "itself",
        ("mv", "/no/dir", "/no/file"): "file",
        ("mv", "/no/file", "/no/file"): "the same",
        ("mv", "/no/dir", "/no"): "the same",
        ("mv", "/no/file", "/no/file/below"): "/no/file",
        ("mv", "/no/file/", "/no/x"): "/no/file",
        ("mv", "/", "/no/x"): "/ is not moved",
        ("mv", "/no/file", "/no/../x"): "..",
        ("mv", "/no/dir", "/" + "n" * 300): "255",
        ("rm", "/no/dir"): "-r",
        ("rm", "-r", "/"): "/",
        ("rm", "-r", "/no/absent"): "/no/absent",
        ("cp", "/no/dir", "/no/x"): "-r",
        ("cp", "/no/file", "/no/file"): "itself",
        ("cp", "-r", "/no/dir", "/no/dir/below"): "itself",
        ("cp", "/no/absent", "/no/x"): "/no/absent",
        ("du", "/no/absent"): "/no/absent",
    }
    for (command, *words), needle in wrong.items():
        args = [up.url(word) if word.startswith("/") else word for word in words]
        assert needle in up.grist.refuses(2, command, *args), (command, words)
    assert "cluster" in up.grist.refuses(2, "cp", up.url("/no/file"), tmp_path / "x")
    assert "write" in up.grist.refuses(2, "mv", up.url("/no/file"), up.url("/no/dir/file"), up.url("/no/x"))
    assert names(up) == before


def test_long_paths_do_not_move_out_of_bounds(up):
    deep = "/".join("d" * 200 for _ in range(19))
    up.put(f"/long/{deep}/file", b"1")
    message = up.grist.refuses(2, "mv", up.url("/long"), up.url("/" + "e" * 250 + "/" + "f" * 250))
    assert "4096" in message
    assert up.get(f"/long/{deep}/file") == b"1"


def test_copies_within_a_cluster(up, tmp_path):
    content = os.urandom(3_000_000)
    up.put("/copies/a", content, "--stripe", "4KiB", "--record", "10", "--mode", "640")
    up.grist.ok("cp", up.url("/copies/a"), up.url("/copies/b"))
    one, other = up.stat("/copies/a"), up.stat("/copies/b")
    assert up.get("/copies/b") == content
    assert [one[same] == other[same] for same in ("mode", "stripe_unit", "record", "id")] == [True, True, True, False]
    filled(tmp_path / "source", FILES)
    up.grist.ok("put", tmp_path / "source", up.url("/copies/folder"))
    up.grist.ok("cp", "-r", up.url("/copies/folder"), up.url("/copies/new/"))
    up.grist.ok("get", up.url("/copies/new/folder"), tmp_path / "copy")
    assert tree(tmp_path / "copy") == FILES
    up.grist.ok("cp", up.url("/copies/a"), up.url("/copies/b"), up.url("/copies/new/"))
    assert up.get("/copies/new/a") == up.get("/copies/new/b") == content


def test_copies_to_another_cluster(up, nodes_of_test):
    second = nodes_of_test(Nodes, nodes=1)
    up.put("/across/a", b"1" * 10_000)
    up.grist.ok("cp", "-r", up.url("/across"), second.url("/there"))
    assert second.get("/there/a") == b"1" * 10_000
    assert "cluster" in up.grist.refuses(2, "mv", up.url("/across/a"), second.url("/moved"))


def test_other_users_files_are_not_moved_or_removed(clusters, socket, other):  # noqa: F811
    nodes = clusters(Up, nodes=1, args=("--socket", socket))
    mine = f"grist+unix://{socket}:"
    source = nodes.folder / "source"
    source.write_bytes(b"1")
    for name, mode in (("d/open", "666"), ("d/mine", "644"), ("e/open", "666")):
        nodes.grist.ok("put", source, f"{mine}/{name}", "--mode", mode)
    before = names(nodes)
    for command in (("mv", f"{mine}/d", f"{mine}/x"), ("mv", f"{mine}/d/mine", f"{mine}/x"), ("rm", "-r", f"{mine}/d"),
                    ("mv", f"{mine}/e/open", f"{mine}/d/mine")):  # fmt: skip
        done = other(*command)
        assert done.returncode == 1 and b"may not" in done.stderr and b"/d/mine" in done.stderr, done.stderr
    assert names(nodes) == before
    other.ok("mv", f"{mine}/e", f"{mine}/f")
    about = json.loads(nodes.grist.ok("stat", f"{mine}/f/open", "--json"))
    assert about["owner"] == f"uid:{os.getuid()}" != f"uid:{OTHER}"
    other.ok("rm", "-r", f"{mine}/f")


def test_a_folder_with_a_file_on_a_node_that_is_down(nodes_of_test, tmp_path):
    nodes = nodes_of_test(Nodes, nodes=2)
    filled(tmp_path / "source", {"a": b"1", "b": b"2"})
    nodes.grist.ok("put", tmp_path / "source", nodes.url("/f"), "--on", "1")
    nodes.kill(1)
    done = nodes.grist("get", nodes.url("/f"), tmp_path / "copy")
    assert done.returncode == 1 and nodes.listen[1] in one_message(done.stderr)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]
    # Names still work.
    nodes.grist.ok("mv", nodes.url("/f"), nodes.url("/g"))
    nodes.start(1)
    nodes.grist.ok("get", nodes.url("/g"), tmp_path / "copy")
    assert tree(tmp_path / "copy") == {"a": b"1", "b": b"2"}


def states(nodes):
    said = json.loads(nodes.grist.ok("nodes", nodes.url(), "--json"))["nodes"]
    return {node["target"]: node["state"] for node in said}


def test_nodes_say_how_they_are(nodes_of_test):
    nodes = nodes_of_test(Nodes, nodes=3)
    assert states(nodes) == {0: "up", 1: "up", 2: "up"}
    nodes.kill(1)
    until(lambda: states(nodes) == {0: "up", 1: "down", 2: "up"}, "the node is seen to be down")
    text = nodes.grist.ok("nodes", nodes.url()).decode().splitlines()
    assert [line.split()[3] for line in text] == ["up", "down", "up"] and "since 20" in text[1]
    said = json.loads(nodes.grist.ok("nodes", nodes.url(), "--json"))["nodes"][1]
    assert said["since"] > 1_700_000_000 and nodes.listen[1] in said["error"]
    nodes.kill(0)
    nodes.start(0)
    until(lambda: states(nodes) == {0: "up", 1: "never seen", 2: "up"}, "the entry node was started anew")
    assert "never seen" in nodes.grist.ok("nodes", nodes.url()).decode()
    nodes.start(1)
    until(lambda: set(states(nodes).values()) == {"up"}, "all are there")


def test_folders_and_files_are_put_together(up, tmp_path):
    source = filled(tmp_path / "mixed", {"one/a": b"a", "one/deep/b": b"b", "two/c": b"c", "file": b"f"})
    all_of_it = [source / name for name in ("one", "file", "two")]
    assert "write " in up.grist.refuses(2, "put", *all_of_it, up.url("/mixed"))
    up.grist.ok("put", *all_of_it, up.url("/mixed/"))
    assert names(up, "/mixed") == {"/mixed/one/a", "/mixed/one/deep/b", "/mixed/two/c", "/mixed/file"}
    done = up.grist("put", source / "one", tmp_path / "none", up.url("/more/"))
    assert done.returncode == 2 and "none" in done.stderr.decode() and names(up, "/more") == {"/more/one/a", "/more/one/deep/b"}


def test_permission_bits_of_a_folder(up, tmp_path):
    up.grist.ok("put", filled(tmp_path / "bits", {"a": b"a", "deep/b": b"b"}), up.url("/bits"))
    assert "/bits is a directory" in up.grist.refuses(2, "chmod", "600", up.url("/bits"))
    up.grist.ok("chmod", "-R", "640", up.url("/bits"))
    modes = [json.loads(up.grist.ok("stat", up.url(path), "--json"))["mode"] for path in ("/bits/a", "/bits/deep/b")]
    assert modes == ["640", "640"]
    up.grist.ok("chmod", "-R", "600", up.url("/bits/a"))
    assert json.loads(up.grist.ok("stat", up.url("/bits/a"), "--json"))["mode"] == "600"


def test_a_copy_to_a_cluster_is_not_got(up):
    up.put("/got", b"x")
    assert "'gristmill cp'" in up.grist.refuses(2, "get", up.url("/got"), up.url("/elsewhere"))
