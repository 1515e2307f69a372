"""The folders of nodes: only the user of the node may read them, whatever the rights of files in the cluster are."""

import os
import shutil
import stat
import subprocess

import pytest
from cluster import Nodes, Up
from identity import OTHER

AT_ALL_HOURS = ("sh", "-c", 'umask 0; exec "$@"', "sh")


def open_to_others(folder):
    """The paths of a folder, and below it, that other users may read, write or enter."""
    found = [folder, *folder.rglob("*")]
    assert len(found) > 5
    return [path for path in found if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077]


@pytest.mark.parametrize("umask", ["as here", "none"])
def test_what_a_node_writes_is_for_its_owner(clusters, umask):
    up = clusters(Up, nodes=2, before=AT_ALL_HOURS if umask == "none" else ())
    up.put("/public", b"secret!!" * 1000, "--stripe", "64", "--mode", "644")
    up.grist.ok("run", "count", up.url("/public"), "--type", "u8", "--place", "storage")
    for number in range(2):
        assert open_to_others(up.node_dir(number)) == []
    up.restart()
    for number in range(2):
        assert open_to_others(up.node_dir(number)) == []
    assert "could read" not in up.errors()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_another_user_of_the_machine_cannot_read_it(clusters):
    up = clusters(Up, nodes=1)
    up.folder.chmod(0o755)
    up.put("/closed", b"secret!!", "--mode", "600")
    (path,) = up.objects(0)
    assert path.read_bytes() == b"secret!!"
    for what in ((shutil.which("cat"), path), (shutil.which("ls"), path.parent)):
        done = subprocess.run([*map(str, what)], capture_output=True, user=OTHER, group=OTHER, extra_groups=[])
        assert done.returncode != 0 and b"secret" not in done.stdout


def test_an_old_store_is_closed_when_it_is_opened(clusters):
    nodes = clusters(Nodes, nodes=1)
    nodes.put("/kept", b"secret!!")
    nodes.stop(0)
    for path in [nodes.node_dir(0), *nodes.node_dir(0).rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    (nodes.node_dir(0) / "cluster.key").chmod(0o600)
    nodes.start(0)
    assert open_to_others(nodes.node_dir(0)) == []
    assert nodes.errors().count("others on this machine could read what lies in") == 1
    assert nodes.get("/kept") == b"secret!!"


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_target_that_others_may_write_is_refused(grist, tmp_path, mode):
    target = tmp_path / "target"
    target.mkdir()
    target.chmod(mode)
    said = grist.refuses(2, "serve", "--target", target, "--listen", "127.0.0.1:0")
    assert "others may write" in said and "chmod 700" in said
    assert list(target.iterdir()) == [] and stat.S_IMODE(target.stat().st_mode) == mode


def test_a_folder_with_other_files_is_no_target(grist, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").write_text("dear")
    home.chmod(0o755)
    assert "holds other files" in grist.refuses(2, "serve", "--target", home, "--listen", "127.0.0.1:0")
    assert stat.S_IMODE(home.stat().st_mode) == 0o755 and [path.name for path in home.iterdir()] == ["letter"]


def test_striped_files_of_this_machine_are_as_the_umask_has_it(grist, tmp_path):
    (tmp_path / "source").write_bytes(b"x" * 1000)
    before = os.umask(0o022)
    try:
        grist.put(tmp_path / "source", tmp_path / "striped.grist", [tmp_path / "t0", tmp_path / "t1"], 64)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t0").stat().st_mode) == 0o755
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o644 for path in (tmp_path / "t0").rglob("file*") if path.is_file())
