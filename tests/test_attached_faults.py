"""Attached trees that are closed, that disappear, or that some nodes do not see."""

import json
import os
import shutil
import subprocess

import attached
import numpy as np
import pytest
from cluster import Nodes, Up, until
from identity import OTHER, other, socket  # noqa: F401

import gristmill as gm

NUMBERS = np.random.default_rng(2).normal(size=3_000_000)


@pytest.fixture
def folder(tmp_path_factory):
    return attached.Mounted(tmp_path_factory.mktemp("mount"))


@pytest.fixture(scope="module")
def up(clusters, socket):
    up = clusters(Up, nodes=2, args=("--socket", socket))
    up.socket_url = lambda path: f"grist+unix://{socket}:{path}"
    return up


@pytest.fixture
def admins(nodes_of_test):
    return lambda **how: nodes_of_test(Up, nodes=2, args=("--admin", "anonymous"), **how)


def test_only_administrators_attach(up, folder, other):
    if os.getuid() != 0:
        pytest.skip("needs an administrator and another user")
    for grist, url in [(up.grist, up.url), (other, up.socket_url)]:
        for source in (folder.source, "/no/such/folder"):
            text = grist.refuses(1, "attach", source, url("/t"))
            assert "may not attach trees" in text and "no such" not in text
    up.grist.ok("attach", folder.source, up.socket_url("/t"))
    assert "may not detach trees" in up.grist.refuses(1, "detach", up.url("/t"))
    up.grist.ok("detach", up.socket_url("/t"))


def test_a_node_reads_for_others_only_what_all_may_read(up, folder, other):
    if os.getuid() != 0:
        pytest.skip("needs another user")
    for name, mode in [("open.u8", 0o644), ("private.u8", 0o600), ("group.u8", 0o640), ("deep/x.u8", 0o644)]:
        folder.put(name, b"secret!!")
        (folder.folder / name).chmod(mode)
    (folder.folder / "deep").chmod(0o700)
    up.grist.ok("attach", folder.source, up.socket_url("/mount"))
    for grist, url in [(up.grist, up.url), (other, up.socket_url)]:
        assert grist.ok("get", url("/mount/open.u8"), "-") == b"secret!!"
        assert json.loads(grist.ok("run", "count", url("/mount/open.u8"), "--type", "u8", "--json"))["result"]["count"] == 8
        for name in ("private.u8", "group.u8", "deep/x.u8"):
            for command in (("get", url(f"/mount/{name}"), "-"), ("run", "sum", url(f"/mount/{name}"), "--type", "u8"), ("stat", url(f"/mount/{name}"))):
                text = grist.refuses(1, *command)
                assert "may not be read" in text and "chmod go+r" in text and "secret" not in text
        listed = json.loads(grist.ok("ls", url("/mount"), "--json"))["entries"]
        assert {one["name"]: one["kind"] for one in listed} == {
            "deep": "directory", "group.u8": "unreadable", "open.u8": "file", "private.u8": "unreadable",
        }  # fmt: skip
        assert "may not be read" in grist.refuses(1, "ls", url("/mount/deep"))
    # The administrator reads what the nodes may read.
    assert up.grist.ok("get", up.socket_url("/mount/private.u8"), "-") == b"secret!!"
    assert up.grist.ok("get", up.socket_url("/mount/deep/x.u8"), "-") == b"secret!!"
    up.grist.ok("detach", up.socket_url("/mount"))


def test_a_private_folder_is_left_out_of_a_size(up, folder, other):
    if os.getuid() != 0:
        pytest.skip("needs another user")
    for name in ("a.u8", "b/c.u8", "private/d.u8"):
        folder.put(name, b"12345678")
    (folder.folder / "private").chmod(0o700)
    up.grist.ok("attach", folder.source, up.socket_url("/sized"))
    size = json.loads(other.ok("du", up.socket_url("/sized"), "--json"))
    assert (size["files"], size["bytes"], size["unread"]) == (2, 16, 1)
    assert "without 1 that may not be read" in other.ok("stat", up.socket_url("/sized")).decode()
    info = gm.stat(up.url("/sized"))
    assert (info.files, info.length, info.unread, info.changed) == (2, 16, 1, None)
    assert gm.disk_usage(up.url("/sized")) == gm.DiskUsage(2, 16, 1)
    size = json.loads(up.grist.ok("du", up.socket_url("/sized"), "--json"))
    assert (size["files"], size["unread"]) == (3, 0)
    (folder.folder / "a.u8").chmod(0o600)
    assert "chmod go+r" in other.refuses(1, "du", up.socket_url("/sized/a.u8"))
    up.grist.ok("detach", up.socket_url("/sized"))


def test_nodes_of_a_cluster_that_knows_its_users_are_asked(nodes_of_test, folder, socket):
    folder.put("x.f64", NUMBERS.tobytes())
    place = socket.with_name("known.sock")
    up = nodes_of_test(Up, nodes=3, args=("--socket", place, "--require-identity", "--admin", f"uid:{os.getuid()}"))
    url = f"grist+unix://{place}:/t"
    assert "targets 0, 1, 2" in up.grist.ok("attach", folder.source, url).decode()
    local = up.grist.answer("sum", folder.folder / "x.f64", "--type", "f64")["result"]
    assert up.grist.answer("sum", f"{url}/x.f64", "--type", "f64", "--place", "storage")["result"] == local


def test_the_mode_of_a_tree_keeps_others_out(up, folder, other):
    if os.getuid() != 0:
        pytest.skip("needs another user")
    folder.put("x.u8", b"secret!!")
    up.grist.ok("attach", folder.source, up.socket_url("/closed"), "--mode", "400")
    for command in ("get", "stat", "ls", "du"):
        more = ("-",) if command == "get" else ()
        text = other.refuses(1, command, up.socket_url("/closed/x.u8"), *more)
        assert "may not read /closed" in text
    assert json.loads(other.ok("attach", "--list", up.socket_url("/"), "--json"))["trees"] == []
    assert up.grist.ok("get", up.socket_url("/closed/x.u8"), "-") == b"secret!!"
    up.grist.ok("detach", up.socket_url("/closed"))


def test_links_do_not_lead_out_of_a_tree(admins, folder, tmp_path):
    up = admins()
    (tmp_path / "outside").write_bytes(b"secret!!")
    folder.put("x.u8", b"12345678")
    (folder.folder / "out").symlink_to(tmp_path / "outside")
    (folder.folder / "in").symlink_to("x.u8")
    (folder.folder / "nowhere").symlink_to("nothing")
    os.mkfifo(folder.folder / "pipe")
    up.grist.ok("attach", folder.source, up.url("/t"))
    assert up.get("/t/in") == b"12345678"
    assert "leads out of the tree" in up.grist.refuses(1, "get", up.url("/t/out"), "-")
    assert "pipe" in up.grist.refuses(2, "get", up.url("/t/pipe"), "-")
    listed = json.loads(up.grist.ok("ls", up.url("/t"), "--json"))["entries"]
    assert {one["name"] for one in listed if one["kind"] == "unreadable"} == {"out", "nowhere", "pipe"}
    for path in ("/t/../etc/passwd", "/t/a//b", "/t/./x.u8"):
        assert "not allowed" in up.grist.refuses(2, "get", up.url(path), "-")


def test_a_tree_that_disappears_and_comes_back(admins, folder):
    up = admins()
    folder.put("x.f64", NUMBERS.tobytes())
    up.grist.ok("attach", folder.source, up.url("/t"))
    want = up.grist.ask("sum", up.url("/t/x.f64"), "--type", "f64")
    away = folder.folder.with_name("away")
    folder.folder.rename(away)
    assert "there is no" in up.grist.refuses(2, "run", "sum", up.url("/t/x.f64"), "--type", "f64")
    assert "there is no" in up.grist.refuses(2, "ls", up.url("/t"))
    shown = json.loads(up.grist.ok("attach", "--list", up.url(), "--json"))["trees"][0]
    assert shown["path"] == "/t"
    away.rename(folder.folder)
    assert up.grist.ask("sum", up.url("/t/x.f64"), "--type", "f64") == want


def test_a_file_that_is_written_or_cut_meanwhile_is_stale(admins, folder):
    up = admins()
    for change in ("grow", "cut", "overwrite", "remove", "replace"):
        folder.put("x.u8", b"\x01" * 30_000_000)
        path = folder.folder / "x.u8"
        if not json.loads(up.grist.ok("attach", "--list", up.url(), "--json"))["trees"]:
            up.grist.ok("attach", folder.source, up.url("/t"))
        with gm.open(up.url("/t/x.u8")) as file:
            assert file.read(1) == b"\x01"
            with open(path, "r+b") as writer:
                if change == "grow":
                    writer.seek(0, 2)
                    writer.write(b"\x02")
                elif change == "cut":
                    writer.truncate(29_000_000)
                elif change == "overwrite":
                    writer.seek(25_000_000)
                    writer.write(b"\x02" * 10)
            if change == "remove":
                path.unlink()
            elif change == "replace":
                folder.put("x.u8", b"\x02" * 30_000_000)
            file.seek(25_000_000)
            with pytest.raises(gm.GristmillError) as raised:
                file.read(8)
            assert "changed" in str(raised.value) or "replaced" in str(raised.value), (change, raised.value)


def mounts_of_their_own():
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True) if shutil.which("unshare") else None
    return done is not None and done.returncode == 0


def test_a_node_that_does_not_see_a_tree_is_not_asked(nodes_of_test, folder):
    if not mounts_of_their_own():
        pytest.skip("needs mounts of its own for one node")

    class OneIsBlind(Nodes):
        def before(self, number):
            hide = f"mount -t tmpfs none '{folder.source}' && exec \"$0\" \"$@\""
            return ("unshare", "-m", "sh", "-c", hide) if number == 1 else ()

    folder.put("x.f64", NUMBERS.tobytes())
    nodes = nodes_of_test(OneIsBlind, nodes=3, args=("--admin", "anonymous"))
    said = nodes.grist.ok("attach", folder.source, nodes.url("/t")).decode()
    assert "targets 0, 2" in said
    assert [target["target"] for target in nodes.stat("/t/x.f64")["targets"]] == [0, 2]
    local = nodes.grist.answer("sum", folder.folder / "x.f64", "--type", "f64")["result"]
    assert nodes.grist.answer("sum", nodes.url("/t/x.f64"), "--type", "f64", "--place", "storage")["result"] == local
    nodes.kill(2)

    def answered_by_one():
        done = nodes.grist("run", "sum", nodes.url("/t/x.f64"), "--type", "f64", "--json")
        return done.returncode == 0 and json.loads(done.stdout)["result"] == local

    # Once the entry node misses its signs of life, the node is left out.
    until(answered_by_one, "the file is read without the node that ended", 60)


def test_addresses_of_the_nodes_are_refused(admins, tmp_path_factory):
    up = admins()
    server = attached.made("nginx", tmp_path_factory)
    try:
        server.put("x.u8", b"12345678")
        port = server.source.rpartition(":")[2].rstrip("/")
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]"):
            up.grist.ok("attach", f"http://{host}:{port}", up.url("/web"))
            text = up.grist.refuses(1, "run", "sum", up.url("/web/x.u8"), "--type", "u8")
            assert "address of this machine" in text
            up.grist.ok("detach", up.url("/web"))
        text = up.grist.refuses(1, "attach", "s3://bucket", up.url("/s3"), "--endpoint", server.source, "--anonymous")
        assert "address of this machine" in text
        up.grist.ok("attach", server.source, up.url("/web"), "--allow-local")
        assert up.get("/web/x.u8") == b"12345678"
        gone = f"http://127.0.0.1:1/{port}"
        assert "refused" in up.grist.refuses(1, "attach", gone, up.url("/gone"), "--allow-local")
    finally:
        server.end()


def test_wrong_arguments(admins, folder, tmp_path):
    up = admins()
    for words, why in [
        ((), "TREE"),
        ((folder.source,), "name a tree and its path"),
        ((folder.source, "relative"), "not a file of a cluster"),
        (("/no/such/folder", up.url("/t")), "there is no /no/such/folder"),
        (("file://era5", up.url("/t")), "three slashes"),
        (("ftp://host/x", up.url("/t")), "no scheme"),
        (("s3://me:hidden@bucket/x", up.url("/t")), "must not hold a user"),
        ((up.url("/x"), up.url("/t")), "in a cluster already"),
        ((folder.source, up.url("/")), "names no file"),
        ((folder.source, up.url("/t"), "--mode", "9"), "not a mode"),
        (("--list", up.url(), "--anonymous"), "cannot be used with"),
        ((folder.source, up.url("/t"), "--region", "x"), "a mount has no endpoint"),
        (("s3://bucket", up.url("/t"), "--endpoint", "https://me:hidden@host"), "must not hold a user"),
        (("s3://bucket", up.url("/t"), "--endpoint", "https://host/x?sig=hidden"), "no query"),
        (("s3://bucket", up.url("/t"), "--endpoint", "host"), "endpoint"),
        (("s3://bucket", up.url("/t"), "--region", "a/b"), "a region has letters"),
        (("https://host/x", up.url("/t"), "--endpoint", "https://host"), "only trees of S3"),
        (("https://host/x", up.url("/t"), "--without-change-time"), "only mounts"),
    ]:
        text = up.grist.refuses(2, "attach", *words)
        assert why in text and "hidden" not in text, (words, text)
    (tmp_path / "file").write_bytes(b"x")
    assert "name a directory" in up.grist.refuses(2, "attach", tmp_path / "file", up.url("/t"))


def test_the_server_that_a_tree_names_counts_more_than_the_environment(clusters, tmp_path_factory):
    bucket = attached.made("s3", tmp_path_factory)
    try:
        # A bucket of the same name on the other server would be read without an error.
        env = {**bucket.env, "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}
        up = clusters(Up, nodes=1, args=("--admin", "anonymous"), env=env)
        up.grist.ok("attach", bucket.source, up.url("/b"), "--endpoint", bucket.endpoint, "--allow-local")
        bucket.put("x.f64", np.arange(10.0).tobytes())
        assert up.grist.ask("sum", up.url("/b/x.f64"), "--type", "f64")["sum"] == 45
    finally:
        bucket.end()
