"""Files from Python: opened, put, copied, listed and removed."""

import io
import os
import re
import signal
from datetime import datetime, timezone

import h5py
import numpy as np
import pytest
from python_package import TIMEOUT, cluster, gm, huge, place, python  # noqa: F401


def described(value):
    """The id of a test, the same in every process."""
    return re.sub(r" at 0x\w+", "", repr(value))


def test_an_open_file_is_read_as_python_reads_files(place):
    content = np.random.default_rng(1).bytes(100_003)
    with gm.open(place(content)) as file, io.BytesIO(content) as wanted:
        assert isinstance(file, io.BufferedReader)
        assert file.readable() and file.seekable() and not file.writable()
        for move, whence in [(0, 0), (4090, 0), (20, 1), (-7, 2), (50_000, 0), (-49_999, 1), (100_003, 0), (5, 2)]:
            assert file.seek(move, whence) == wanted.seek(move, whence) == file.tell()
            assert file.read(10_000) == wanted.read(10_000)
        file.seek(3)
        buffer, array = bytearray(5000), np.empty(1000, dtype="<u4")
        assert file.readinto(buffer) == 5000 and bytes(buffer) == content[3:5003]
        assert file.readinto(array) == 4000 and array.tobytes() == content[5003:9003]
        file.seek(0)
        assert file.read() == content
        with pytest.raises(ValueError):
            file.seek(-1)
    with pytest.raises(ValueError):
        file.read(1)
    with pytest.raises(ValueError):
        file.raw.readinto(bytearray(1))


def test_lines_and_numpy_read_from_an_open_file(cluster):
    values = np.arange(1000.0)
    stored = io.BytesIO()
    np.save(stored, values)
    gm.put(stored.getvalue(), cluster.path("saved.npy"), stripe=4096)
    with gm.open(cluster.path("saved.npy")) as file:
        assert file.name == cluster.path("saved.npy")
        assert np.array_equal(np.load(file), values)
    gm.put(b"one\ntwo\nthree", cluster.path("lines"))
    assert list(gm.open(cluster.path("lines"))) == [b"one\n", b"two\n", b"three"]


def test_a_file_replaced_while_it_is_open_is_stale(cluster):
    gm.put(bytes(100_000), cluster.path("replaced"), stripe=4096)
    with gm.open(cluster.path("replaced"), buffering=1) as file:
        assert file.read(10) == bytes(10)
        gm.put(b"x" * 100_000, cluster.path("replaced"), stripe=4096)
        # Readers that opened the file may still read its old content. They must never get a mixture with the new one.
        try:
            assert file.read(99_990) == bytes(99_990)
        except gm.Stale:
            pass


@pytest.mark.parametrize(
    "source",
    [
        b"some bytes",
        bytearray(b"some"),
        memoryview(b"0123456789")[::3],
        np.arange(12, dtype=">i4").reshape(3, 4).T,
        np.zeros((0, 3)),
        np.array(5.5),
        np.array([(1, 2.5)], dtype="i4,f8"),
        np.array(["2026-01-01"], dtype="M8[D]"),
        io.BytesIO(bytes(range(256)) * 5000),
        b"",
    ],
    ids=described,
)
def test_whatever_holds_bytes_can_be_put(cluster, source):
    if isinstance(source, io.BytesIO):
        wanted = source.getvalue()
    else:
        wanted = source.tobytes() if hasattr(source, "tobytes") else bytes(source)
    info = gm.put(source, cluster.path("held"), stripe=4096)
    assert info.length == len(wanted)
    assert gm.get(cluster.path("held")) == wanted


@pytest.mark.parametrize("source", [np.array([object()]), 7, None, io.StringIO("text")], ids=described)
def test_what_holds_no_bytes_is_refused(cluster, source):
    with pytest.raises((gm.Usage, TypeError)):
        gm.put(source, cluster.path("refused"))
    with pytest.raises(gm.NotFound):
        gm.stat(cluster.path("refused"))


def test_a_source_that_fails_leaves_nothing(cluster):
    class Failing:
        left = 5

        def read(self, size):
            self.left -= 1
            if not self.left:
                raise RuntimeError("the source broke")
            return bytes(size)

    gm.put(b"before", cluster.path("kept"))
    with pytest.raises(RuntimeError, match="the source broke"):
        gm.put(Failing(), cluster.path("kept"))
    assert gm.get(cluster.path("kept")) == b"before"


def test_paths_are_copied_there_and_back(cluster, tmp_path):
    content = np.random.default_rng(2).bytes(3_000_001)
    (tmp_path / "source").write_bytes(content)
    info = gm.put(tmp_path / "source", cluster.path("copies/one"), stripe="64KiB", record=80, on=[2, 0], mode=0o600)
    assert (info.length, info.stripe_unit, info.record) == (len(content), 65_600, 80)
    assert info.targets == (2, 0) and info.mode == 0o600 and info.owner == "anonymous"
    assert abs((datetime.now(timezone.utc) - info.created).total_seconds()) < 600
    assert gm.stat(cluster.path("copies/one")) == info
    assert gm.get(cluster.path("copies/one"), tmp_path / "back") is None
    assert (tmp_path / "back").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "source"]
    assert len(gm.put(tmp_path / "source", cluster.path("copies/two"), targets=1).targets) == 1
    striped = tmp_path / "layout.grist"
    gm.put(tmp_path / "source", striped, on=[tmp_path / "t0", tmp_path / "t1"], stripe="64KiB")
    assert gm.get(striped) == content and gm.stat(striped).stripe_unit == 65_536
    gm.put(striped, cluster.path("copies/three"))
    assert gm.get(cluster.path("copies/three")) == content
    gm.remove(striped)
    assert not striped.exists()


def test_directories_are_listed_and_files_removed(cluster):
    for name in ("list/b", "list/a", "list/under/c"):
        gm.put(name.encode(), cluster.path(name))
    entries = gm.ls(cluster.path("list/"))
    assert [(entry.name, entry.is_dir) for entry in entries] == [("a", False), ("b", False), ("under", True)]
    assert gm.get(entries[0].url) == b"list/a" and entries[0].info == gm.stat(cluster.path("list/a"))
    assert [entry.name for entry in gm.ls(entries[2].url)] == ["c"]
    assert [entry.url for entry in gm.ls(cluster.path("list/b"))] == [cluster.path("list/b")]
    gm.remove(cluster.path("list/a"))
    with pytest.raises(gm.NotFound):
        gm.stat(cluster.path("list/a"))


INTERRUPTED_COPY = """
import sys, gristmill
try:
    gristmill.get(sys.argv[1], sys.argv[2])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_copy_that_is_interrupted_leaves_nothing(huge, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    child = python(INTERRUPTED_COPY, huge, folder / "copy")
    while not any(path.stat().st_size for path in folder.iterdir()):
        assert child.poll() is None
        os.sched_yield()
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=TIMEOUT) == ("interrupted\n", "")
    assert list(folder.iterdir()) == []


def test_a_copy_is_no_more_open_than_the_file(cluster, tmp_path):
    gm.put(b"secret", cluster.path("closed"), mode=0o600)
    gm.get(cluster.path("closed"), tmp_path / "stored")
    assert (tmp_path / "stored").stat().st_mode & 0o777 == 0o600
    (tmp_path / "stored").chmod(0o400)
    gm.get(tmp_path / "stored", tmp_path / "again")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("stored", "again")] == [0o400, 0o400]


def test_a_directory_is_said_to_be_one(cluster):
    gm.put(b"1", cluster.path("folder/file"))
    for call, kind in ((gm.get, gm.NotFound), (gm.open, gm.NotFound), (gm.remove, gm.Usage)):
        with pytest.raises(kind, match="/folder is a directory"):
            call(cluster.path("folder"))
    assert gm.get(cluster.path("folder/file")) == b"1"


def test_stripes_of_a_scientific_file_are_whole_chunks(cluster, tmp_path):
    with h5py.File(tmp_path / "chunks.h5", "w") as file:
        # There are 40 chunks of 240 KiB. A stripe has whole chunks and at least 1 MiB, so it has five of them, or 1200 KiB.
        file.create_dataset("x", data=np.ones((40, 30, 1024)), chunks=(1, 30, 1024))
    assert gm.put(tmp_path / "chunks.h5", cluster.path("chunks.h5")).stripe_unit == 1200 << 10
    on = [tmp_path / f"target{n}" for n in range(3)]
    assert gm.put(tmp_path / "chunks.h5", tmp_path / "chunks.grist", on=on).stripe_unit == 1200 << 10
    # A plain array has the usual stripe unit. A given size also counts.
    assert gm.put(np.zeros(10), cluster.path("plain")).stripe_unit == 1 << 20
    assert gm.put(tmp_path / "chunks.h5", cluster.path("given.h5"), stripe="64KiB").stripe_unit == 64 << 10
    assert gm.put(tmp_path / "chunks.h5", cluster.path("record.h5"), record=1000).stripe_unit == 1049000
