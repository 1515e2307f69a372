"""Clusters as a file system of fsspec: the test suites of fsspec, and tests of what they leave out."""

import pickle
import threading

import fsspec
import numpy as np
import pytest
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.tests import abstract
from python_package import cluster, gm, python  # noqa: F401
from python_package import TIMEOUT

from gristmill._fsspec.filesystem import GristmillFileSystem


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture
    def fs(self):
        return fsspec.filesystem("grist")

    @pytest.fixture
    def fs_path(self, cluster, request):  # noqa: F811
        return GristmillFileSystem._strip_protocol(cluster.path(f"abstract/{abs(hash(request.node.name))}"))

    @pytest.fixture
    def supports_empty_directories(self):
        return False


class TestCopy(Fixtures, abstract.AbstractCopyTests):
    pass


class TestGet(Fixtures, abstract.AbstractGetTests):
    pass


class TestPut(Fixtures, abstract.AbstractPutTests):
    pass


class TestOpen(Fixtures, abstract.AbstractOpenTests):
    pass


class TestPipe(Fixtures, abstract.AbstractPipeTests):
    pass


@pytest.fixture
def fs():
    return fsspec.filesystem("grist")


@pytest.fixture
def base(cluster, request):  # noqa: F811
    # The name has no brackets, because fsspec reads brackets as patterns.
    return cluster.path("".join(c if c.isalnum() else "-" for c in request.node.name))


@pytest.mark.parametrize(
    "url, path",
    [
        ("grist://127.0.0.1:7440/a/b", "127.0.0.1:7440/a/b"),
        ("grist://127.0.0.1:7440/a/", "127.0.0.1:7440/a"),
        ("grist://127.0.0.1:7440/", "127.0.0.1:7440"),
        ("grist:///a/b", "/a/b"),
        ("grist:///", ""),
        ("grist+unix:///run/g.sock:/a/b", "unix:/run/g.sock:/a/b"),
        ("grist+unix:///run/g.sock:/", "unix:/run/g.sock:"),
    ],
)
def test_names(fs, url, path):
    assert fs._strip_protocol(url) == fs._strip_protocol(path) == path
    assert fs._strip_protocol([url, path]) == [path, path]
    assert fs._strip_protocol(fs.unstrip_protocol(path)) == path
    assert fsspec.core.url_to_fs(url) == (fs, path)
    above = fs._parent(path)
    assert path.startswith(above) and fs._parent(above) in (above, above.rpartition("/")[0])
    # From every path the parents end at a root.
    for _ in range(5):
        above = fs._parent(above)
    assert above in ("127.0.0.1:7440", "", "unix:/run/g.sock:")


def test_ranges_are_those_of_python(fs, base):
    content = np.random.default_rng(3).bytes(10_007)
    fs.pipe_file(base, content, stripe=4096)
    asked = [
        (start, end)
        for start in (None, 0, 1, 4096, 9999, 10_007, 20_000, -1, -5000, -20_000)
        for end in (None, 0, 5, 4096, 10_007, 20_000, -1, -4000, -20_000)
    ]
    for start, end in asked:
        assert fs.cat_file(base, start, end) == content[start:end], (start, end)
    got = fs.cat_ranges([base] * len(asked), [start for start, _ in asked], [end for _, end in asked])
    assert got == [content[start:end] for start, end in asked]
    missing = base + "-missing"
    got = fs.cat_ranges([base, missing, base], 0, [3, 3, 7])
    assert got[0] == content[:3] and isinstance(got[1], FileNotFoundError) and got[2] == content[:7]
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges([base, missing], 0, 3, on_error="raise")
    assert fs.cat(base) == content
    assert fs.cat_ranges([], [], []) == []


def test_what_is_known_of_files_and_directories(fs, base, cluster):  # noqa: F811
    fs.pipe_file(f"{base}/a/x", b"123", stripe="8KiB")
    fs.pipe_file(f"{base}/b", b"")
    stripped = fs._strip_protocol(base)
    info = gm.stat(f"{base}/a/x")
    assert fs.info(f"{base}/a/x") == fs.ls(f"{base}/a/x")[0] == fs.ls(f"{base}/a")[0]
    found = fs.info(f"{base}/a/x")
    assert (found["name"], found["size"], found["type"]) == (f"{stripped}/a/x", 3, "file")
    assert (found["owner"], found["stripe_unit"], found["id"]) == (info.owner, 8192, info.id)
    assert fs.created(f"{base}/b") == fs.modified(f"{base}/b") == gm.stat(f"{base}/b").created
    for name in (f"{base}/a", f"{base}/a/", base):
        assert fs.info(name)["type"] == "directory" and fs.isdir(name) and not fs.isfile(name)
    root = cluster.path("")
    assert fs.isdir(root) and fs.exists(root) and stripped in fs.ls(root, detail=False)
    assert fs.ls(base, detail=False) == [f"{stripped}/a", f"{stripped}/b"]
    assert fs.find(base) == [f"{stripped}/a/x", f"{stripped}/b"]
    assert fs.glob(f"{base}/*/x") == [f"{stripped}/a/x"]
    assert fs.du(base) == 3 and fs.sizes([f"{base}/a/x", f"{base}/b"]) == [3, 0]
    before = fs.checksum(f"{base}/b"), fs.ukey(f"{base}/b")
    fs.touch(f"{base}/b")
    assert fs.checksum(f"{base}/b") != before[0] and fs.ukey(f"{base}/b") != before[1]
    for name in (f"{base}/a/y", f"{base}/b/c", f"{base}-none"):
        assert not fs.exists(name) and not fs.isdir(name)
        with pytest.raises(FileNotFoundError):
            fs.info(name)
    with pytest.raises(FileNotFoundError):
        fs.ls(f"{base}-none")


def test_directories_come_and_go_with_their_files(fs, base):
    fs.mkdir(f"{base}/d")
    fs.makedirs(f"{base}/d")
    assert not fs.exists(f"{base}/d")
    fs.pipe({f"{base}/d/1": b"1", f"{base}/d/e/2": b"2", f"{base}/d/3": b"3"})
    fs.makedirs(f"{base}/d", exist_ok=True)
    with pytest.raises(FileExistsError):
        fs.makedirs(f"{base}/d")
    with pytest.raises(gm.Usage, match="it is a directory"):
        fs.pipe_file(f"{base}/d", b"")
    with pytest.raises(OSError, match="has files"):
        fs.rmdir(f"{base}/d")
    with pytest.raises(FileNotFoundError):
        fs.rmdir(f"{base}/none")
    with pytest.raises(IsADirectoryError):
        fs.rm(f"{base}/d")
    fs.rm([f"{base}/d/1", f"{base}/d/3"])
    assert fs.find(f"{base}/d") == [fs._strip_protocol(f"{base}/d/e/2")]
    fs.rm(f"{base}/d", recursive=True)
    assert not fs.exists(base)
    with pytest.raises(FileNotFoundError):
        fs.rm(f"{base}/d/1")


def test_copies_and_moves_keep_what_files_are(fs, base):
    gm.put(b"12345678", f"{base}/from", stripe="8KiB", record=4, mode=0o640)
    fs.cp_file(f"{base}/from", f"{base}/copy")
    for _ in range(2):
        first, copy = gm.stat(f"{base}/from"), gm.stat(f"{base}/copy")
        assert (copy.stripe_unit, copy.record, copy.mode) == (first.stripe_unit, first.record, first.mode)
        fs.mv(f"{base}/copy", fs._strip_protocol(f"{base}/copy"))
    fs.mv(f"{base}/copy", f"{base}/moved")
    assert fs.cat(f"{base}/moved") == b"12345678" and not fs.exists(f"{base}/copy")
    fs.mv(base, f"{base}-all", recursive=True)
    assert not fs.exists(base) and sorted(fs.find(f"{base}-all")) == [
        fs._strip_protocol(f"{base}-all/{name}") for name in ("from", "moved")
    ]
    with pytest.raises(FileNotFoundError):
        fs.mv(f"{base}/none", f"{base}/other")


@pytest.mark.parametrize("compression", [None, "gzip", "bz2", "zip"])
def test_what_is_written_is_seen_when_it_is_closed(fs, base, compression):
    content = np.random.default_rng(5).bytes(3_000_000)
    fs.pipe_file(base, b"before")
    file = fs.open(base, "wb", compression=compression, block_size=1 << 20, stripe="64KiB")
    for at in range(0, len(content), 700_001):
        file.write(content[at : at + 700_001])
        assert fs.cat_file(base) == b"before"
    file.close()
    with fs.open(base, compression=compression) as stored:
        assert stored.read() == content
    assert gm.stat(base).stripe_unit == 64 << 10


@pytest.mark.parametrize("compression", [None, "gzip", "zip"])
@pytest.mark.parametrize("mode", ["wb", "w", "xb"])
def test_a_failed_write_leaves_what_was_there(fs, base, mode, compression):
    name = f"{base}/{compression}"
    if mode != "xb":
        fs.pipe_file(name, b"before")
    with pytest.raises(KeyboardInterrupt), fs.open(name, mode, compression=compression) as file:
        for _ in range(3):
            file.write("x" * 1_000_000 if mode == "w" else bytes(1_000_000))
        raise KeyboardInterrupt
    if mode == "xb":
        assert not fs.exists(name)
    else:
        assert fs.cat_file(name) == b"before"


def test_a_file_that_is_never_closed_is_not_stored(fs, base):
    file = fs.open(base, "wb")
    file.write(b"half")
    with pytest.warns(ResourceWarning, match="never closed"):
        del file
    assert not fs.exists(base)


def test_transactions(fs, base):
    fs.pipe_file(f"{base}/1", b"before")
    with pytest.raises(RuntimeError), fs.transaction:
        with fs.open(f"{base}/1", "wb") as file:
            file.write(b"after")
        raise RuntimeError
    assert fs.cat(f"{base}/1") == b"before"
    with fs.transaction:
        for name in "12":
            with fs.open(f"{base}/{name}", "wb") as file:
                file.write(name.encode())
        assert fs.find(base, detail=False) == [fs._strip_protocol(f"{base}/1")]
    assert fs.cat(fs.find(base)) == {fs._strip_protocol(f"{base}/{n}"): n.encode() for n in "12"}


@pytest.mark.parametrize("mode", ["ab", "a", "r+b"])
def test_files_are_not_changed_in_place(fs, base, mode):
    fs.pipe_file(base, b"before")
    with pytest.raises(gm.Usage, match="replaced whole"):
        fs.open(base, mode)
    assert fs.cat(base) == b"before"


def test_open_files_are_one_state(fs, base):
    content = np.random.default_rng(8).bytes(5_000_000)
    fs.pipe_file(base, content, stripe="64KiB")
    with fs.open(base, block_size=4096) as file:
        file.seek(-10, 2)
        assert file.read() == content[-10:]
        file.seek(17)
        assert file.read(5) == content[17:22] and file.tell() == 22
        again = pickle.loads(pickle.dumps(file))
        assert again.tell() == 22 and again.read(100) == file.read(100) == content[22:122]
        kept = pickle.dumps(file)
        fs.pipe_file(base, b"x" * 5_000_000)
        with pytest.raises(gm.Stale):
            pickle.loads(kept)
    with fs.open(base) as file:
        assert file.read() == b"x" * 5_000_000


def test_the_file_system_travels_and_says_no_secrets(fs, base, monkeypatch):
    fs.pipe_file(base, b"content")
    again = pickle.loads(pickle.dumps(fs))
    assert again == fs and again.cat(base) == b"content"
    assert fsspec.AbstractFileSystem.from_json(fs.to_json()).cat(base) == b"content"
    file = fs.open(base)
    monkeypatch.setenv("GRISTMILL_TOKEN", "token-of-alice-0123456789")
    for shown in (repr(fs), fs.to_json(), str(fs.storage_options), str(pickle.dumps(fs)), repr(file)):
        assert "alice" not in shown
    for name in ("token", "token_file", "ca"):
        with pytest.raises(gm.Usage, match=f"GRISTMILL_{name.upper()}") as error:
            fsspec.filesystem("grist", **{name: "secret-of-bob"})
        assert "bob" not in str(error.value)


def test_a_node_that_is_gone_is_not_an_absent_file(fs):
    with pytest.raises(gm.Unavailable):
        fs.exists("grist://127.0.0.1:1/x")


def test_threads_at_once(fs, base):
    contents = {f"{base}/{n}": np.random.default_rng(n).bytes(200_000) for n in range(6)}
    begin = threading.Barrier(len(contents))
    failures = []

    def work(name):
        try:
            begin.wait(TIMEOUT)
            fs.pipe_file(name, contents[name], stripe=4096)
            for start in range(0, 200_000, 50_001):
                assert fs.cat_file(name, start, start + 777) == contents[name][start : start + 777]
            with fs.open(name) as file:
                assert file.read() == contents[name]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert not failures
    assert fs.cat(list(contents)) == {fs._strip_protocol(name): content for name, content in contents.items()}


FORKED = """
import os, sys, fsspec
url = sys.argv[1]
fs = fsspec.filesystem("grist")
file = fs.open(url, block_size=16, cache_type="none")
before = fs.cat(url), file.read(8)
child = os.fork()
if child == 0:
    file.seek(0)
    again = fsspec.filesystem("grist")
    os._exit(0 if (fs.cat(url), file.read(8)) == before == (again.cat(url), before[1]) else 1)
assert os.waitpid(child, 0)[1] == 0
file.seek(0)
print((fs.cat(url), file.read(8)) == before)
"""


def test_a_forked_child_has_connections_of_its_own(fs, base):
    fs.pipe_file(base, b"content of it")
    child = python(FORKED, base)
    assert child.communicate(timeout=TIMEOUT) == ("True\n", "")


def test_asynchronous_callers(fs, base):
    import asyncio

    async def work():
        wrapped = AsyncFileSystemWrapper(fs, asynchronous=True)
        await wrapped._pipe_file(base, b"0123456789")
        return await wrapped._cat_ranges([base] * 3, [0, 3, -2], [2, 5, None])

    assert asyncio.run(work()) == [b"01", b"34", b"89"]
