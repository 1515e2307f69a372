"""Directories of a cluster from Python: copied both ways, renamed, removed and added up; and arrays that become .npy files."""

import io
import re
import sys

import fsspec
import numpy as np
import pytest
import xarray as xr
from python_package import cluster, gm, huge  # noqa: F401
from test_python_progress import Watched

FILES = {"a": b"", "deep/b": b"b" * 200_000, "deep/er/c": b"c", **{f"many/{n}": str(n).encode() for n in range(70)}}


def filled(folder, files=None):
    for name, content in (files or FILES).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def base(cluster, request):  # noqa: F811
    return cluster.path("folders/" + re.sub(r"\W+", "-", request.node.name))


def test_a_folder_there_and_back(base, tmp_path):
    source = filled(tmp_path / "source")
    put = gm.put(source, base, stripe="4KiB")
    assert (put.url, put.files, put.length, put.is_dir) == (base, len(FILES), sum(map(len, FILES.values())), True)
    about = gm.stat(base)
    assert (about.url, about.files, about.length, about.is_dir) == (base, put.files, put.length, True)
    assert gm.stat(f"{base}/deep/b").stripe_unit == 4096 and not gm.stat(f"{base}/deep/b").is_dir
    assert gm.disk_usage(base) == gm.DiskUsage(put.files, put.length)
    assert gm.disk_usage(f"{base}/deep/er/c") == gm.DiskUsage(1, 1)
    gm.get(base, tmp_path / "back")
    assert tree(tmp_path / "back") == FILES
    with pytest.raises(gm.Usage, match="already"):
        gm.get(base, tmp_path / "back")
    assert gm.put(f"{source}/", f"{base}/below/").url == f"{base}/below/source"
    with pytest.raises(gm.NotFound, match="is a directory"):
        gm.get(base)
    with pytest.raises(gm.Usage, match="folder"):
        gm.put(source, tmp_path / "x.grist", on=[tmp_path / "target"])


def test_moves_and_copies(base, tmp_path):
    gm.put(filled(tmp_path / "source"), f"{base}/one")
    assert gm.move(f"{base}/one", f"{base}/two") == f"{base}/two"
    with pytest.raises(gm.NotFound):
        gm.stat(f"{base}/one")
    assert gm.move(f"{base}/two/deep/b", f"{base}/two/many") == f"{base}/two/many/b"
    assert gm.copy(f"{base}/two/many/b", f"{base}/two/deep/b") == f"{base}/two/deep/b"
    gm.remove(f"{base}/two/many/b")
    assert gm.copy(f"{base}/two", f"{base}/three/", recursive=True) == f"{base}/three/two"
    gm.get(f"{base}/three/two", tmp_path / "back")
    assert tree(tmp_path / "back") == FILES
    with pytest.raises(gm.Usage, match="recursive=True"):
        gm.copy(f"{base}/two", f"{base}/four")
    with pytest.raises(gm.Usage, match="with recursive=True"):
        gm.remove(f"{base}/two")
    gm.remove(f"{base}/two", recursive=True)
    assert [entry.name for entry in gm.ls(base)] == ["three"]
    for wrong in (lambda: gm.move("here", base), lambda: gm.copy(base, "here"), lambda: gm.disk_usage("here")):
        with pytest.raises(gm.Usage, match="no file of a cluster"):
            wrong()


def test_a_zarr_store_is_opened_where_it_went(base, tmp_path):
    data = xr.Dataset({"t": (("y", "x"), np.arange(12.0).reshape(3, 4))})
    data.to_zarr(tmp_path / "out.zarr")
    gm.put(tmp_path / "out.zarr", f"{base}.zarr")
    gm.move(f"{base}.zarr", f"{base}-moved.zarr")
    xr.testing.assert_identical(gm.open_dataset(f"{base}-moved.zarr").load(), data)
    fs = fsspec.filesystem("grist")
    fs.mv(f"{base}-moved.zarr", f"{base}-again.zarr")
    xr.testing.assert_identical(gm.open_dataset(f"{base}-again.zarr").load(), data)
    fs.rm(f"{base}-again.zarr", recursive=True)
    assert not fs.exists(f"{base}-again.zarr")


def test_a_move_of_fsspec_keeps_the_file(base):
    fs = fsspec.filesystem("grist")
    gm.put(b"12345678", f"{base}/from", stripe="4KiB", mode=0o640)
    before = gm.stat(f"{base}/from")
    fs.mv(f"{base}/from", f"{base}/to")
    # Nothing was copied, because it is the same file.
    assert gm.stat(f"{base}/to").id == before.id
    fs.mv(f"{base}/to", f"{base}/into/")
    assert gm.stat(f"{base}/into/to").id == before.id


@pytest.mark.parametrize("dtype", ["f8", ">i2", "?", "c8", "M8[s]", "S3", [("a", "f4"), ("b", "i8")]])
@pytest.mark.parametrize("shape", [(6,), (), (2, 3), (0, 4)])
def test_an_array_becomes_what_the_name_says(base, dtype, shape):
    array = np.arange(int(np.prod(shape)), dtype="i8").astype("f8").astype("i8").reshape(shape)
    array = array.astype(dtype) if not isinstance(dtype, list) else np.zeros(shape, dtype)
    for one in (array, np.array(array, order="F")):
        gm.put(one, f"{base}.npy")
        found = np.load(io.BytesIO(gm.get(f"{base}.npy")))
        assert found.dtype == array.dtype and found.shape == array.shape
        np.testing.assert_array_equal(found, array)
        gm.put(one, f"{base}.raw")
        assert gm.get(f"{base}.raw") == array.tobytes()
    # Bytes are stored unchanged.
    gm.put(b"abc", f"{base}.npy")
    assert gm.get(f"{base}.npy") == b"abc"


def test_an_array_by_its_name_is_reduced_where_it_lies(base):
    gm.put(np.arange(6.0), f"{base}.npy")
    assert float(gm.open_arrays(f"{base}.npy")["data"].sum()) == 15.0


@pytest.mark.parametrize("mode, compression", [("wb", None), ("w", None), ("wb", "gzip"), ("wt", "gzip")])
def test_half_of_a_file_is_not_published(base, mode, compression):
    """`fsspec.open` closes its files after an exception, but does not say that there was one."""
    fs = fsspec.filesystem("grist")
    text = "t" in mode or "b" not in mode
    with pytest.raises(ZeroDivisionError), fsspec.open(base, mode, compression=compression) as file:
        file.write("half" if text else b"half")
        1 / 0  # noqa: B018
    assert not fs.exists(base)
    # The same holds for existing files, and for several files.
    fs.pipe_file(base, b"before")
    files = fsspec.open_files([base, f"{base}-2"], mode, compression=compression)
    with pytest.raises(KeyboardInterrupt), files as opened:
        for file in opened:
            file.write("half" if text else b"half")
        raise KeyboardInterrupt
    assert fs.cat(base) == b"before" and not fs.exists(f"{base}-2")


def test_what_is_written_while_another_exception_is_handled_is_stored(base):
    try:
        raise ValueError
    except ValueError:
        with fsspec.open(f"{base}/with", "wb") as file:
            file.write(b"all")
        opened = fsspec.open(f"{base}/open", "wb")
        file = opened.open()
        file.write(b"all")
        opened.close()
        with fsspec.open(f"{base}/inner", "wb") as outer:
            try:
                raise KeyError
            except KeyError:
                outer.write(b"all")
    assert gm.get(f"{base}/with") == gm.get(f"{base}/open") == gm.get(f"{base}/inner") == b"all"


@pytest.mark.parametrize("name", ["nul\0", "\0", "line\nbreak", "tab\t", "\x7f", "a//b", "../b", "x" * 256])
def test_names_that_are_none_are_refused_in_a_sentence(cluster, tmp_path, name):  # noqa: F811
    url = cluster.path(f"names/{name}")
    gm.put(b"1", cluster.path("names/there"))
    calls = (
        lambda: gm.put(b"1", url), lambda: gm.get(url), lambda: gm.stat(url), lambda: gm.remove(url),
        lambda: gm.remove(url, recursive=True), lambda: gm.move(cluster.path("names/there"), url),
        lambda: gm.copy(cluster.path("names/there"), url), lambda: gm.disk_usage(url), lambda: gm.ls(url),
        lambda: gm.run("count", url, type="uint8"),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(gm.Usage, match="the path .* is not allowed"):
            call()
    assert [entry.name for entry in gm.ls(cluster.path("names"))] == ["there"]


def test_a_nul_is_in_no_name_of_this_machine(cluster, tmp_path):  # noqa: F811
    name, url = f"{tmp_path}/nul\0", cluster.path("nul")
    gm.put(b"1", url)
    calls = (
        lambda: gm.get(url, name), lambda: gm.put(name, url), lambda: gm.stat(name), lambda: gm.open(name),
        lambda: gm.run("count", name, type="uint8"), lambda: gm.open_arrays(name),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(gm.Usage, match="holds a NUL character"):
            call()
    assert list(tmp_path.iterdir()) == []


PUT = """
import sys, gristmill as gm
try:
    with gm.progress():
        gm.put(sys.argv[1], sys.argv[2])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_a_put_shows_how_far_it_is(cluster, huge):  # noqa: F811
    shown = Watched(PUT, huge, cluster.path("huge"))
    try:
        shown.until(r"[█░]{6,30} +\d+% .* of 4\.00 TiB, .*/s")
        assert shown.interrupted() == "interrupted\n" and shown.seen.endswith("\r\033[K")
    finally:
        shown.end()
    with pytest.raises(gm.NotFound):
        gm.stat(cluster.path("huge"))


def test_mypy_knows_what_comes_back(tmp_path):
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(
        "import gristmill as gm\n"
        "a: bytes = gm.get('x')\nb: None = gm.get('x', 'y')\nc: gm.FileInfo = gm.put(b'', 'x')\n"
        "d: str = gm.move('x', 'y')\ne: int = gm.disk_usage('x').bytes\n"
    )
    out, _, code = api.run(["--strict", "--python-executable", sys.executable, str(program)])
    assert code == 0, out
