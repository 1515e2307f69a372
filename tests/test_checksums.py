"""Bytes that changed on a disk: every reader gets an error that names them, no fold uses them, and a scrub finds them."""

import http.client
import json
import re
import signal
import sqlite3
import subprocess
import urllib.error
import urllib.request

import pytest
from cluster import Nodes, Up
from conftest import binary
from faults import BOUND, identity, noise, numbers

BLOCK = 64 << 10
STRIPE = 256 << 10


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


def names_the_damage(text, path, start):
    """Asserts that the message names the file, the object and the damaged bytes."""
    assert path in text and re.search(r"object file-[0-9a-f]+", text), text
    assert f"bytes {start} to {start + BLOCK}" in text and "checksum" in text, text


@pytest.fixture
def damaged(clusters):
    """A file on two nodes with one changed bit in an object. The nodes were started again, so they remember no bytes."""
    nodes = clusters(Nodes, nodes=2)
    content = numbers(1 << 18)  # 2 MiB
    nodes.put("/data", content, "--stripe", STRIPE)
    nodes.put("/other", content)
    for number in (0, 1):
        nodes.stop(number)
    nodes.start(0)
    nodes.start(1)
    (path,) = [path for path in nodes.objects(1) if path.name == identity(nodes, "/data")]
    flip(path, 3 * BLOCK + 17)
    return nodes, path, content


def test_it_is_named_by_every_door_and_goes_to_nobody(damaged):
    nodes, path, content = damaged
    url = nodes.url("/data")
    for command in (
        ("run", "sum", url, "--type", "f64", "--place", "storage"),
        ("run", "sum", url, "--type", "f64", "--place", "client"),
        ("run", "median", url, "--type", "f64", "--place", "storage"),
        ("run", "grep", url, "--param", "pattern=x", "--place", "storage"),
        ("get", url, nodes.folder / "copy"),
        ("cp", url, nodes.url("/copy")),
    ):
        done = nodes.grist(*command)
        assert done.returncode == 1, (command, done.stdout[:200])
        names_the_damage(done.stderr.decode(), "/data", 3 * BLOCK)
    assert not (nodes.folder / "copy").exists()
    assert {name for name in ("data", "other", "copy") if nodes.grist("stat", nodes.url("/" + name)).returncode == 0} == {
        "data",
        "other",
    }
    # A range without the damaged block can be read.
    sound = nodes.grist.ok("run", "count", url, "--type", "u8", "--range", "0:1000")
    assert b"1000" in sound
    assert nodes.get("/other") == content


def test_http_says_so_or_ends_before_it(damaged):
    nodes, path, content = damaged
    request = urllib.request.Request(nodes.http("/data"))
    stat = nodes.stat("/data")
    # The block lies in the first stripe of the second node's object.
    at = (1 - stat["first"]) % 2 * STRIPE + 3 * BLOCK
    with pytest.raises((http.client.IncompleteRead, ConnectionError, urllib.error.HTTPError)) as failed:
        with urllib.request.urlopen(request) as answer:
            answer.read()
    if isinstance(failed.value, http.client.IncompleteRead):
        got = failed.value.partial
        assert got == content[: len(got)] and len(got) <= at
    part = urllib.request.Request(nodes.http("/data"), headers={"Range": f"bytes={at}-{at + 99}"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(part)
    names_the_damage(refused.value.read().decode(), "/data", 3 * BLOCK)


def test_what_was_checked_lately_is_checked_where_somebody_says_so(clusters):
    nodes = clusters(Nodes, nodes=1)
    content = numbers(1 << 16)
    url = nodes.put("/data", content)
    assert nodes.get("/data") == content
    (path,) = nodes.objects(0)
    flip(path, 5)
    for command in (
        ("get", url, "-", "--verify"),
        ("run", "sum", url, "--type", "f64", "--place", "storage", "--verify"),
        ("run", "sum", url, "--type", "f64", "--place", "client", "--verify"),
    ):
        done = nodes.grist(*command)
        assert done.returncode == 1, command
        names_the_damage(done.stderr.decode(), "/data", 0)
    assert "checksum" in nodes.grist.refuses(1, "run", "mean", url, "--type", "f64", env={"GRISTMILL_VERIFY": "1"})
    flip(path, 5)
    assert nodes.grist.ok("get", url, "-", "--verify") == content


def test_a_scrub_finds_it(damaged):
    nodes, path, content = damaged
    done = nodes.grist("scrub", nodes.url("/"))
    said = done.stdout.decode()
    assert done.returncode == 1, said
    assert f"/data: damaged: bytes {3 * BLOCK} to {4 * BLOCK} of object {path.name} on storage node 1" in said
    assert "1 range DAMAGED" in said
    report = json.loads(nodes.grist("scrub", nodes.url("/data"), "--json").stdout)
    (found,) = report["damaged"]
    assert (found["start"], found["end"], found["object"]) == (3 * BLOCK, 4 * BLOCK, path.name)
    assert report["checked_bytes"] == len(content) - BLOCK and report["learnt_bytes"] == 0
    assert nodes.grist("scrub", nodes.url("/other")).returncode == 0
    # A new put makes the file whole.
    nodes.put("/data", content, "--stripe", STRIPE)
    assert nodes.grist.ok("scrub", nodes.url("/")).endswith(b"none damaged\n")
    assert nodes.get("/data") == content


def test_a_scrub_finds_objects_without_their_file_and_goes_on(clusters):
    up = clusters(Up, nodes=1)
    for name in ("/a", "/b"):
        up.put(name, noise(200_000))
    # The node has both files open.
    assert up.get("/a") == up.get("/b")
    up.objects(0)[0].unlink()
    done = up.grist("scrub", up.url("/"), "--rate", "64MiB")
    said = done.stdout.decode()
    assert done.returncode == 1, said
    assert "damaged: bytes 0 to 200000 of object" in said
    assert "2 objects" in said and "1 range DAMAGED" in said


def test_a_scrub_keeps_to_its_rate_and_is_ended(clusters):
    up = clusters(Up, nodes=1)
    up.put("/data", noise(12 << 20))
    assert b"12.00 MiB as they were written" in up.grist.ok("scrub", up.url("/data"), "--rate", "64MiB")
    assert "is no size" in up.grist.refuses(2, "scrub", up.url("/data"), "--rate", "fast")
    assert "/nowhere" in up.grist.refuses(2, "scrub", up.url("/nowhere"))
    slow = subprocess.Popen([binary(), "scrub", up.url("/data"), "--rate", "256KiB"], stderr=subprocess.PIPE)
    up.put("/beside", noise(100_000))
    assert up.get("/beside") == noise(100_000)
    slow.send_signal(signal.SIGINT)
    assert slow.wait(BOUND) == 130 and b"stopped" in slow.stderr.read()


def test_short_and_empty_files_have_objects_on_some_targets_only(clusters):
    up = clusters(Up, nodes=3)
    up.put("/short", b"few bytes")
    up.put("/empty", b"")
    up.put("/folder/other", noise(200_000), "--stripe", "64KiB")
    report = json.loads(up.grist.ok("scrub", up.url("/"), "--json"))
    assert report["objects"] == 4 and report["checked_bytes"] == 200_009 and report["damaged"] == []


def test_striped_files_of_this_machine(grist, tmp_path):
    content = noise(1 << 20)
    (tmp_path / "source").write_bytes(content)
    layout = grist.put(tmp_path / "source", tmp_path / "a.grist", [tmp_path / "t0", tmp_path / "t1"], STRIPE)
    assert grist.ok("scrub", layout).endswith(b"none damaged\n")
    (path,) = [path for path in (tmp_path / "t1" / "objects").glob("**/*") if path.is_file()]
    flip(path, BLOCK)
    for command in (("run", "sum", layout, "--type", "u8"), ("get", layout, "-")):
        done = grist(*command)
        assert done.returncode == 1 and f"bytes {BLOCK} to {2 * BLOCK}" in done.stderr.decode(), done.stderr
    for what in (layout, tmp_path / "t1"):
        done = grist("scrub", what)
        assert done.returncode == 1 and b"1 range DAMAGED" in done.stdout
    assert grist.ok("scrub", tmp_path / "t0").endswith(b"none damaged\n")
    assert "holds no store" in grist.refuses(1, "scrub", tmp_path)
    assert "plain file, which has no checksums" in grist.refuses(2, "scrub", tmp_path / "source")
    assert "at least 1 byte" in grist.refuses(2, "scrub", layout, "--rate", "0")
    assert "no such file" in grist.refuses(2, "scrub", tmp_path / "nowhere")


def test_a_store_without_checksums_is_upgraded(grist, tmp_path):
    """A store of an earlier release has no checksums. It can be read, a scrub computes its checksums, and they are checked from
    then on."""
    content = noise(300_000)
    (tmp_path / "source").write_bytes(content)
    layout = grist.put(tmp_path / "source", tmp_path / "a.grist", [tmp_path / "t0"], STRIPE)
    with sqlite3.connect(tmp_path / "t0" / "meta.sqlite") as old:
        old.executescript(
            "DROP TABLE sums; ALTER TABLE objects DROP COLUMN dirty_start; ALTER TABLE objects DROP COLUMN dirty_end;"
            "ALTER TABLE objects DROP COLUMN summed; PRAGMA user_version = 1;"
        )
    old.close()
    assert grist.ok("get", layout, "-") == content
    assert b"had no checksum" in grist.ok("scrub", layout)
    assert b"had no checksum" not in grist.ok("scrub", layout)
    (path,) = [path for path in (tmp_path / "t0" / "objects").glob("**/*") if path.is_file()]
    flip(path, len(content) - 1)
    done = grist("get", layout, "-")
    assert done.returncode == 1 and b"checksum" in done.stderr
