"""Storage nodes that Python starts. They end with Python, however it ends, and they can be found again."""

import os
import select
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cluster import until
from python_package import TIMEOUT, gm, processes_of, python


def objects_of(nodes):
    return {path for path in Path(nodes.dir).glob("*/objects/objects/**/*") if path.is_file()}


def test_a_kept_connection_finds_nodes_that_were_started_again(tmp_path):
    with gm.up(nodes=2, dir=tmp_path / "nodes", lanes=1) as nodes:
        gm.put(np.arange(1000.0), nodes.path("x"), stripe=4096)
        assert gm.run("sum", nodes.path("x"), type="f64").sum == 499_500
        address = nodes.url.removeprefix("grist://").rstrip("/")
    with pytest.raises(gm.Unavailable):
        gm.stat(nodes.path("x"))
    with gm.up(nodes=2, dir=tmp_path / "nodes", listen=address, lanes=1) as again:
        assert again.url == nodes.url
        assert gm.run("sum", again.path("x"), type="f64").sum == 499_500
        assert gm.get(again.path("x")) == np.arange(1000.0).tobytes()


def test_nodes_end_with_their_block(tmp_path):
    with gm.up(nodes=2, lanes=1) as nodes:
        folder = nodes.dir
        assert len(processes_of(folder)) == 3 and nodes.url in repr(nodes)
        gm.put(b"x", nodes.path("/x"))
    assert processes_of(folder) == [] and not os.path.exists(folder) and "stopped" in repr(nodes)
    nodes.stop()
    # A directory that the user gave stays, and can be used again.
    with gm.up(nodes=1, dir=tmp_path / "kept", lanes=1) as nodes:
        gm.put(b"kept", nodes.path("x"))
    with gm.up(nodes=1, dir=tmp_path / "kept", lanes=1) as nodes:
        assert gm.get(nodes.path("x")) == b"kept"
    assert processes_of(tmp_path) == []


def test_nodes_end_with_the_interpreter():
    child = python("import gristmill; nodes = gristmill.up(nodes=1, lanes=1); print(nodes.dir)")
    folder, errors = child.communicate(timeout=TIMEOUT)
    assert errors == "" and processes_of(folder.strip()) == [] and not os.path.exists(folder.strip())


def test_nodes_end_when_the_interpreter_is_killed(tmp_path):
    code = "import sys, gristmill; nodes = gristmill.up(1, sys.argv[1], lanes=1); print(nodes.url, flush=True); input()"
    child = python(code, tmp_path / "killed", stdin=subprocess.PIPE)
    assert child.stdout.readline().startswith("grist://")
    left = [pid for pid in processes_of(tmp_path) if pid != child.pid]
    assert len(left) == 2
    ends = [os.pidfd_open(pid) for pid in left]
    child.kill()
    child.communicate(timeout=TIMEOUT)
    for end in ends:
        assert select.select([end], [], [], TIMEOUT)[0], "a node outlived the interpreter"
        os.close(end)


def test_why_nodes_do_not_start_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(gm.Usage, match="'bogus='"):
        gm.up(nodes=1, bogus=True)
    with pytest.raises(gm.Usage, match="7743"):
        gm.up(nodes=1, listen="7743")
    with pytest.raises(gm.GristmillError, match="file"):
        gm.up(nodes=1, dir=tmp_path / "file" / "sub")
    assert processes_of(tmp_path) == []


def test_a_file_that_is_replaced_is_not_read_as_another(tmp_path):
    with gm.up(nodes=2, lanes=1) as nodes:
        url = nodes.path("x.npy")
        for seed in (1, 2):
            np.save(tmp_path / f"{seed}.npy", np.random.default_rng(seed).random((200, 300)))
        gm.put(tmp_path / "1.npy", url)
        array = gm.open_arrays(url)["data"]
        before, old = float(array.mean()), objects_of(nodes)
        gm.put(tmp_path / "2.npy", url)
        # The elements can still be read until the objects of the old file are removed.
        until(lambda: old and not old & objects_of(nodes), "the objects of the replaced file are removed")
        for ask in (lambda: np.asarray(array), lambda: np.asarray(array[100:190]), lambda: array.mean(axis=0)):
            with pytest.raises(gm.Stale, match="open it again"):
                ask()
        assert float(gm.open_arrays(url)["data"].mean()) != before
