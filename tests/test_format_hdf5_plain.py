"""HDF5 files without netCDF conventions: axes without names, and variables with unsupported types."""

import h5netcdf
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from formats import elements, same, stat, variables

import gristmill as gm


@pytest.fixture
def plain(tmp_path):
    """Axes of many lengths, in nested groups, without dimension scales."""
    path = tmp_path / "plain.h5"
    rng = np.random.default_rng(5)
    with h5py.File(path, "w") as file:
        for name, shape in {
            "a": (3,), "b": (5,), "c": (5, 3), "square": (4, 4), "cube": (4, 4, 4), "d": (3, 5, 3), "number": (),
            "g/x": (3,), "g/y": (7,), "g/h/z": (7, 3), "other/w": (3, 9),
        }.items():  # fmt: skip
            file[name] = rng.normal(size=shape)
        file.create_dataset("grows", (3, 2), "f4", maxshape=(None, 2), chunks=(1, 1))
        file["text"] = np.array([b"ab", b"cd"])
        file.create_group("empty")
    return path


GROUPS = [None, "g", "g/h", "other"]


@pytest.mark.parametrize("group", GROUPS)
def test_axes_without_names_are_called_as_netcdf_calls_them(plain, group):
    with xr.open_dataset(plain, engine="netcdf4", group=group) as wanted:
        ours = gm.open_dataset(plain, group=group)
        # Text is bytes with one library, and characters with the other.
        text = ["text"] if group is None else []
        xr.testing.assert_identical(ours.drop_vars(text).load(), wanted.drop_vars(text).load())
        assert {name: one.dims for name, one in ours.variables.items()} == {
            name: one.dims for name, one in wanted.variables.items()
        }


def test_the_same_axes_are_shared_as_in_h5netcdf(plain):
    """Only the sharing counts. h5netcdf may number the axes in its own way."""
    with h5netcdf.File(plain, "r", phony_dims="sort") as theirs:
        for group in GROUPS:
            found = theirs[group] if group else theirs
            ours = gm.open_dataset(plain, group=group)
            names = {}
            for name, one in found.variables.items():
                # h5netcdf does not distinguish axes that can grow.
                if name != "grows":
                    for mine, its in zip(ours[name].dims, one.dimensions, strict=True):
                        assert names.setdefault(mine, its) == its
            assert len(set(names.values())) == len(names)


def test_the_command_names_them_too(grist, plain):
    with netCDF4.Dataset(plain) as file:
        wanted = {name: list(one.dimensions) for name, one in file.variables.items()}
        d = file["d"][:].filled()
    ours = variables(grist, plain)
    assert {name: one["dimensions"] for name, one in ours.items() if "/" not in name} == wanted
    first = wanted["d"][0]
    for axis in (first, "0"):
        answer = grist.answer("max", plain, "--var", "d", "--axes", axis)["result"]
        np.testing.assert_array_equal(np.reshape(answer["max"]["values"], (5, 3)), d.max(0))
    # Arrays of one shape can be combined, whatever the names of their axes are.
    plainly = grist.answer("sum", plain, "--var", "g/x", "--with", "b=a", "--expr", "x + b")["result"]
    assert plainly["sum"]["shape"] == []


def test_a_group_without_variables_is_a_group(plain):
    ours = gm.open_dataset(plain, group="empty")
    assert not ours.variables and ours.sizes == {}
    with pytest.raises(gm.NotFound, match="empty, g, g/h, other"):
        gm.open_dataset(plain, group="nowhere")


def odd(path, libver, attributes):
    """Attributes of named types, of unknown types and of ordinary types."""
    with h5py.File(path, "w", libver=libver) as file:
        file["kind"] = np.dtype("f8")
        file["record"] = np.dtype([("a", "i4"), ("b", "f8")])
        file["colour"] = h5py.enum_dtype({"red": 0, "green": 1}, basetype="i1")
        for name in ("x", "g/y"):
            file[name] = np.arange(4.0)
        for one in (file, file["x"], file["g"], file["g/y"]):
            one.attrs["units"] = "K"
            one.attrs["names"] = ["one", "two"]
            for n in range(attributes):
                one.attrs[f"n{n:02}"] = n
            one.attrs.create("strange", 1.5, dtype=file["kind"])
            one.attrs.create("pair", np.zeros((), file["record"].dtype), dtype=file["record"])
            one.attrs["complex"] = 1 + 2j
            one.attrs["lists"] = np.array([np.arange(2), np.arange(3)], dtype=h5py.vlen_dtype("i4"))
            one.attrs["last"] = np.float32(0.5)
        file.create_dataset("coloured", data=[0, 1, 1], dtype=file["colour"])
        file.create_dataset("committed", data=[1.0, 2.0], dtype=file["kind"])
    return path


@pytest.mark.parametrize("attributes", [0, 30])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_attributes_of_other_types_leave_the_rest_readable(grist, tmp_path, libver, attributes):
    path = odd(tmp_path / "odd.h5", libver, attributes)
    ours = stat(grist, path)
    by_name = {one["name"]: one for one in ours["variables"]}
    assert set(by_name) == {"x", "g/y", "coloured", "committed"}
    for found in (ours["attributes"], by_name["x"]["attributes"], by_name["g/y"]["attributes"]):
        assert found["units"] == "K" and found["names"] == ["one", "two"] and found["last"]["value"] == 0.5
        assert [found[f"n{n:02}"]["value"] for n in range(attributes)] == list(range(attributes))
        assert "committed" in found["strange"]["other"] and "committed" in found["pair"]["other"]
        assert "complex" in found["complex"]["other"] and "lists" in found["lists"]["other"]
    same(elements(grist, path, "x"), np.arange(4.0))
    same(elements(grist, path, "committed"), np.array([1.0, 2.0]))
    assert "enumeration" in by_name["coloured"]["kind"]
    assert "committed" in grist.ok("stat", path, "--var", "x").decode()
    with pytest.warns(UserWarning, match="strange.*committed"):
        dataset = gm.open_dataset(path)
    assert float(dataset.x.sum()) == 6 and dataset.x.attrs["units"] == "K" and dataset.attrs["names"] == ["one", "two"]


def test_a_damaged_header_is_no_attribute_of_another_type(grist, tmp_path):
    path = odd(tmp_path / "odd.h5", "latest", 0)
    data = bytearray(path.read_bytes())
    at = data.index(b"strange")
    data[at] ^= 1
    path.write_bytes(data)
    done = grist("stat", path, "--json")
    assert b"hecksum" in done.stdout + done.stderr


def test_what_get_cannot_copy_is_said(grist, plain, tmp_path):
    (tmp_path / "plain.bin").write_bytes(b"\1\2\3\4" * 9)
    assert "omit --var" in grist.refuses(2, "get", tmp_path / "plain.bin", tmp_path / "x.npy", "--var", "a")
    (tmp_path / "folder").mkdir()
    assert "omit --var" in grist.refuses(2, "get", tmp_path / "folder", tmp_path / "x.npy", "--var", "a")
    assert "g/x, g/y, g/h/z" in grist.refuses(2, "get", plain, tmp_path / "x.npy", "--var", "g")
    assert "text of 2 bytes" in grist.refuses(1, "get", plain, tmp_path / "x.npy", "--var", "text")
    assert not (tmp_path / "x.npy").exists()
    # A striped file works like a plain one.
    for one in ("t0", "t1"):
        (tmp_path / one).mkdir()
    striped = grist.put(plain, tmp_path / "plain.grist", (tmp_path / "t0", tmp_path / "t1"), 1024)
    grist.ok("get", striped, tmp_path / "d.npy", "--var", "d")
    with h5py.File(plain) as file:
        same(np.load(tmp_path / "d.npy"), file["d"][:])
