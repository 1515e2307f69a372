"""Identity over a Unix socket: uids, owners and permission bits decide what a user may do."""

import json
import os
import shutil
import subprocess

import pytest
from cluster import Up
from identity import COMMANDS, OTHER, denied, other, owner, socket, store, up  # noqa: F401


def test_over_the_socket_the_owner_is_the_user(up):
    store(up, "/mine", b"abc")
    assert owner(up, "/mine") == f"uid:{os.getuid()}"
    assert up.grist.ok("get", up.socket_url("/mine"), "-") == b"abc"
    store(up, "/public", b"abc", url=up.url("/public"))
    assert owner(up, "/public") == "anonymous"


def test_the_other_user_has_another_name(up, other):
    other.ok("put", other.cwd / "file", up.socket_url("/theirs"), "--mode", "600")
    denied(up.grist("get", up.url("/theirs"), "-"), "/theirs")
    about = json.loads(other.ok("stat", up.socket_url("/theirs"), "--json"))
    assert (about["owner"], about["mode"]) == (f"uid:{OTHER}", "600")
    assert other.ok("get", up.socket_url("/theirs"), "-") == b"12345678"
    other.ok("rm", up.socket_url("/theirs"))


@pytest.mark.parametrize("command", COMMANDS)
def test_mode_600_keeps_others_out(up, other, command):
    store(up, "/closed", b"secret!!", "--mode", "600")
    denied(other(*COMMANDS[command](up.socket_url("/closed"), other.cwd / "file")), "/closed")
    denied(up.grist(*COMMANDS[command](up.url("/closed"), other.cwd / "file")), "/closed")
    assert up.grist.ok("get", up.socket_url("/closed"), "-") == b"secret!!"
    about = json.loads(up.grist.ok("stat", up.socket_url("/closed"), "--json"))
    assert about["mode"] == "600"


def test_mode_600_keeps_others_out_of_http(up):
    store(up, "/closed", b"secret!!", "--mode", "600")
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    for how in ((), ("-I",), ("-X", "DELETE"), ("-T", up.folder / "source")):
        done = subprocess.run(
            ["curl", "-sS", "-m", "30", "-w", "%{http_code}", *how, up.http("/closed")], capture_output=True
        )
        assert done.stdout.endswith(b"403") and b"secret" not in done.stdout, done


@pytest.mark.parametrize("command", COMMANDS)
def test_mode_644_lets_others_read_only(up, other, command):
    store(up, "/open", b"secret!!", "--mode", "644")
    done = other(*COMMANDS[command](up.socket_url("/open"), other.cwd / "file"))
    if command in ("put", "rm", "chmod"):
        denied(done, "/open")
        assert up.grist.ok("get", up.socket_url("/open"), "-") == b"secret!!"
    else:
        assert done.returncode == 0, done.stderr


def test_mode_666_lets_others_write_but_not_own(up, other):
    store(up, "/shared", b"abc", "--mode", "666")
    denied(other("chmod", "600", up.socket_url("/shared")), "/shared")
    other.ok("put", other.cwd / "file", up.socket_url("/shared"))
    assert up.grist.ok("get", up.socket_url("/shared"), "-") == b"12345678"
    assert owner(up, "/shared") == f"uid:{os.getuid()}"
    up.grist.ok("chmod", "600", up.socket_url("/shared"))
    denied(other("get", up.socket_url("/shared"), "-"), "/shared")


def test_names_of_closed_files_may_be_listed_but_not_more(up, other):
    store(up, "/dir/closed", b"secret!!", "--mode", "600")
    listed = other.ok("ls", up.socket_url("/dir"))
    assert b"secret" not in listed


def test_an_administrator_may_do_everything(nodes_of_test, socket, other):
    path = socket.parent / "admin.sock"
    up = nodes_of_test(Up, nodes=1, args=("--socket", path, "--admin", f"uid:{OTHER}"))
    url = f"grist+unix://{path}:/closed"
    store(up, "/closed", b"secret!!", "--mode", "600", url=url)
    assert other.ok("get", url, "-") == b"secret!!"
    other.ok("chmod", "644", url)
    assert owner(up, "/closed") == f"uid:{os.getuid()}"
    other.ok("rm", url)


def test_the_key_of_the_cluster_is_closed(up):
    for number in range(up.count):
        for path in up.node_dir(number).glob("**/*.key"):
            assert path.stat().st_mode & 0o077 == 0, path
