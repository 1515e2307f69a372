"""NumPy's own files (npy), and delimited text."""

import csv
import gzip

import numpy as np
import pytest
from formats import elements, same, stat, table, variables


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["i1", ">i2", "<u4", ">i8", "<f4", ">f8"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 3), (5, 6, 7), (3, 200, 300)])
def test_npy(grist, tmp_path, shape, dtype, order):
    path = tmp_path / "a.npy"
    values = np.asarray(np.random.default_rng(1).integers(0, 100, shape)).astype(dtype, order=order)
    np.save(path, values)
    ours = table(grist, path, "data")
    assert ours["shape"] == list(shape) and ours["order"] == ("big" if dtype[0] == ">" else "little")
    same(elements(grist, path, "data"), values)
    assert all(place[2] <= 1 << 20 for place in ours["places"].values())


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(grist, tmp_path, version):
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.arange(6.0).reshape(2, 3), version=version)
    same(elements(grist, path, "data"), np.arange(6.0).reshape(2, 3))


def test_npy_that_cannot_be_read(grist, tmp_path):
    path = tmp_path / "a.npy"
    for values in (np.array(["a"]), np.zeros(2, "c8"), np.zeros(2, [("a", "i4")]), np.zeros(2, "f2"), np.zeros(2, bool)):
        np.save(path, values)
        assert "numbers" in grist.refuses(1, "get", path, "-", "--var", "data")
    np.save(path, np.arange(10))
    path.write_bytes(path.read_bytes()[:-1])
    assert "truncated" in grist.refuses(1, "get", path, "-", "--var", "data")


def test_text_with_names(grist, tmp_path):
    path = tmp_path / "a.csv"
    rng = np.random.default_rng(5)
    n, x = rng.integers(-(2**60), 2**60, 20_001), rng.standard_normal(20_001) * 10.0 ** rng.integers(-300, 300, 20_001)
    x[7] = np.nan
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["n", "a, b", "x"])
        out.writerows((a, f"t,{a}", "" if np.isnan(b) else repr(float(b))) for a, b in zip(n, x))
    ours = variables(grist, path)
    assert {name: one["kind"] for name, one in ours.items()} == {"n": "i64", "a, b": "text", "x": "f64"}
    same(elements(grist, path, "n"), n)
    got = elements(grist, path, "x")
    assert got[~np.isnan(x)].tobytes() == x[~np.isnan(x)].tobytes() and np.isnan(got[7])
    assert table(grist, path, "n")["chunks"] == 3
    assert "text" in grist.refuses(1, "get", path, "-", "--var", "a, b")


def test_text_without_names(grist, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("1\t2.5\n# a comment\n\n-3\tNA\n")
    assert stat(grist, path)["dimensions"] == [{"name": "row", "length": 2, "unlimited": False}]
    same(elements(grist, path, "column0"), np.array([1, -3]))
    path.write_text("1\t2\n3\t4\t5\n")
    assert "line 2" in grist.refuses(1, "get", path, "-", "--var", "column0")


def test_other_files_are_shown_as_before(grist, tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"nothing known")
    assert list(stat(grist, path)) == ["path", "length", "stripe_unit", "targets"]
    assert "not a netCDF" in grist.refuses(2, "stat", path, "--var", "a")
    assert "not a netCDF" in grist.refuses(2, "get", path, "-", "--var", "a")
    assert "--var" in grist.refuses(2, "stat", path, "--chunks")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "directory" in grist.refuses(2, "stat", folder)


BINARY = {
    "gzip": (gzip.compress(b"a,b\n1,2\n"), ["compressed with gzip", "decompress"]),
    "zip": (b"PK\x03\x04" + bytes(26), ["a ZIP archive", "unpack"]),
    "hdf4": (b"\x0e\x03\x13\x01" + bytes(100), ["an HDF4 file", "convert"]),
    "utf-16": ("a,b\n1,2\n".encode("utf-16"), ["UTF-16", "UTF-8"]),
    "numbers": (np.arange(10.0).tobytes(), ["binary", "byte 0 is zero", "type"]),
    "random": (np.random.default_rng(1).bytes(100_000), ["binary", "is zero", "type"]),
}


@pytest.mark.parametrize("kind", BINARY)
def test_what_is_named_like_text_and_is_none_is_said(grist, tmp_path, kind):
    content, words = BINARY[kind]
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    for args in (("run", "sum", path, "--var", "b"), ("get", path, "-", "--var", "b"), ("stat", path, "--var", "b")):
        message = grist.refuses(2, *args)
        assert "not delimited text" in message and all(word in message for word in words), message
    assert "not delimited text" in grist.ok("stat", path).decode()


def test_what_is_compressed_is_said_whatever_its_name(grist, tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert "compressed with gzip" in grist.refuses(2, "run", "sum", path, "--var", "b")


def test_an_array_is_read_whatever_its_name(grist, tmp_path):
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        np.save(file, np.arange(6.0))
    same(elements(grist, path, "data"), np.arange(6.0))


def test_a_byte_order_mark_is_no_part_of_a_name(grist, tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes(b"\xef\xbb\xbftime,tos\r\n1,2.5\r\n2,3.5\r\n")
    assert set(variables(grist, path)) == {"time", "tos"}
    same(elements(grist, path, "time"), np.array([1, 2]))
    path.write_bytes(b"\xef\xbb\xbf1,2.5\n2,3.5\n")
    same(elements(grist, path, "column1"), np.array([2.5, 3.5]))
