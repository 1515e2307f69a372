"""netCDF files of every kind, compared with the C library (netCDF4), and the real file also with h5py."""

import h5py
import netCDF4
import numpy as np
import pytest
import scipy.io
import xarray
from formats import cut, elements, fill, same, stat, table, variables

CLASSIC = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]
TYPES = ["i1", "i2", "i4", "f4", "f8"]
LONG = ["u1", "u2", "u4", "i8", "u8"]


def some(shape, dtype="f4"):
    return (np.arange(int(np.prod(shape))) % 100).reshape(shape).astype(dtype)


def write(path, kind, records=3, types=TYPES):
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.set_fill_on()
        file.title = "a title"
        file.createDimension("t", None)
        file.createDimension("y", 3)
        file.createDimension("x", 5)
        file.createDimension("letters", 7)
        for dtype in types:
            fixed = file.createVariable(f"fixed_{dtype}", dtype, ("y", "x"))
            fixed[...] = some((3, 5), dtype)
            record = file.createVariable(f"record_{dtype}", dtype, ("t", "x"))
            record[0:records] = some((records, 5), dtype)
            record.scale_factor = np.float32(0.5)
            record.valid = np.array([1, 2], dtype)
        file.createVariable("scalar", "f8", ())[...] = 2.5
        file.createVariable("odd", "i1", ("t", "y"))[0:records] = some((records, 3), "i1")
        name = file.createVariable("name", "S1", ("letters",))
        name[:] = netCDF4.stringtochar(np.array([b"station"]))


def check(grist, path):
    """Compares every numeric variable with the C library, without masks or scales."""
    ours = variables(grist, path)
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        assert set(ours) == set(file.variables)
        dimensions = {one["name"]: (one["length"], one["unlimited"]) for one in stat(grist, path)["dimensions"]}
        assert dimensions == {name: (len(one), one.isunlimited()) for name, one in file.dimensions.items()}
        for name, theirs in file.variables.items():
            assert ours[name]["dimensions"] == list(theirs.dimensions)
            assert ours[name]["shape"] == list(theirs.shape)
            if theirs.dtype == "S1" or theirs.dtype is str:
                assert "text" in ours[name]["kind"] and "text" in ours[name]["refused"]
                continue
            for attribute in theirs.ncattrs():
                value = theirs.getncattr(attribute)
                said = ours[name]["attributes"][attribute]
                if isinstance(value, str):
                    assert said == value
                else:
                    assert said["value"] == (value.tolist() if isinstance(value, np.ndarray | np.generic) else value)
            same(elements(grist, path, name), theirs[...])


@pytest.mark.parametrize("kind", CLASSIC)
@pytest.mark.parametrize("records", [0, 1, 3])
def test_classic(grist, tmp_path, kind, records):
    path = tmp_path / "a.nc"
    write(path, kind, records, TYPES + (LONG if kind.endswith("DATA") else []))
    assert stat(grist, path)["format"] == "netCDF classic (CDF-%d)" % (1, 2, 5)[CLASSIC.index(kind)]
    check(grist, path)
    ours = table(grist, path, "record_i2")
    assert ours["storage"] == "records" and ours["stored_chunks"] == records and ours["order"] == "big"
    if records:
        with pytest.raises(AssertionError, match="truncated"):
            elements(grist, cut(path, 2), "odd")


@pytest.mark.parametrize("dtype", ["i1", "i2", "f8"])
@pytest.mark.parametrize("kind", CLASSIC)
def test_one_record_variable_has_no_padding(grist, tmp_path, kind, dtype):
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.createDimension("t", None)
        file.createDimension("x", 3)
        file.createVariable("a", dtype, ("t", "x"))[0:5] = some((5, 3), dtype)
    check(grist, path)
    assert table(grist, path, "a")["storage"] == "contiguous"


def test_fill_values(grist, tmp_path):
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_DATA") as file:
        file.createDimension("x", 2)
        for dtype in TYPES + LONG:
            file.createVariable(f"usual_{dtype}", dtype, ("x",))
            file.createVariable(f"own_{dtype}", dtype, ("x",), fill_value=7)
    ours = variables(grist, path)
    for dtype in TYPES + LONG:
        usual = np.dtype(dtype).type(netCDF4.default_fillvals[dtype])
        assert fill(ours[f"usual_{dtype}"]) == usual and fill(ours[f"own_{dtype}"]) == 7
    check(grist, path)


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF4_CLASSIC"])
def test_netcdf4(grist, tmp_path, kind):
    path = tmp_path / "a.nc"
    write(path, kind, 3, TYPES + (LONG if kind == "NETCDF4" else []))
    assert stat(grist, path)["format"] == "netCDF-4"
    check(grist, path)


def test_an_unlimited_dimension_longer_than_a_variable(grist, tmp_path):
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t", None)
        file.createDimension("x", 3)
        file.createVariable("t", "f8", ("t",))[0:10] = np.arange(10)
        file.createVariable("short", "i4", ("t", "x"), chunksizes=(4, 3), zlib=True, fill_value=-5)[0:5] = some((5, 3), "i4")
        file.createVariable("none", "i2", ("t", "x"), chunksizes=(4, 3))
    check(grist, path)
    ours = table(grist, path, "short")
    assert ours["shape"] == [10, 3] and ours["chunks"] == 3
    with h5py.File(path) as file:
        stored = {}
        file["short"].id.chunk_iter(
            lambda info: stored.__setitem__(tuple(info.chunk_offset), ("", info.byte_offset, info.size, info.filter_mask))
        )
    assert ours["places"] == stored and ours["stored_chunks"] == 2


def test_groups_and_names(grist, tmp_path):
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 4)
        file.createVariable("x", "f8", ("x",))[:] = np.arange(4)
        group = file.createGroup("deep").createGroup("deeper")
        group.createDimension("y", 2)
        group.createVariable("a", "i2", ("y", "x"))[...] = some((2, 4), "i2")
        file.createDimension("lat", 3)
        # This variable has the name of a dimension, but it is not its coordinate.
        file.createVariable("lat", "f4", ("x",))[:] = np.arange(4)
        file.createDimension("n", 2)
        # This coordinate has two dimensions.
        file.createVariable("n", "f4", ("n", "x"))[...] = some((2, 4))
        file.createVariable("words", str, ("x",))[:] = np.array(["a", "b", "c", "d"], object)
    ours = variables(grist, path)
    assert set(ours) == {"x", "deep/deeper/a", "lat", "n", "words"}
    assert ours["deep/deeper/a"]["dimensions"] == ["deep/deeper/y", "x"]
    assert ours["lat"]["dimensions"] == ["x"] and ours["n"]["dimensions"] == ["n", "x"]
    same(elements(grist, path, "deep/deeper/a"), some((2, 4), "i2"))
    same(elements(grist, path, "n"), some((2, 4)))
    assert "text" in ours["words"]["kind"]


@pytest.fixture(scope="module")
def temperatures(real_data):
    return real_data / "tos_O1_2001-2002.nc"


def test_the_real_file(grist, temperatures):
    check(grist, temperatures)
    text = grist.ok("stat", temperatures).decode()
    assert "netCDF classic (CDF-1)" in text and "tos" in text and "time=24" in text
    ours = table(grist, temperatures, "tos")
    assert ours["type"] == "f32" and ours["storage"] == "records" and ours["chunks"] == 24
    assert len({place[1] for place in ours["places"].values()}) == 24


@pytest.mark.parametrize("how", ["netcdf4", "chunks", "cdf5", "h5netcdf-like", "zarr2", "zarr3"])
def test_the_real_file_written_again(grist, temperatures, tmp_path, how):
    path = tmp_path / ("a.zarr" if how.startswith("zarr") else "a.nc")
    with xarray.open_dataset(temperatures, decode_cf=False) as file:
        file = file.load()
        chunk = {"tos": {"chunksizes": (5, 64, 50), "zlib": True, "shuffle": True, "fletcher32": True}}
        match how:
            case "netcdf4":
                file.to_netcdf(path, format="NETCDF4", engine="netcdf4")
            case "chunks":
                file.to_netcdf(path, format="NETCDF4", engine="netcdf4", encoding=chunk, unlimited_dims=["time"])
            case "cdf5":
                file.to_netcdf(path, format="NETCDF3_64BIT_DATA", engine="netcdf4")
            case "h5netcdf-like":
                with h5py.File(path, "w", libver="latest") as out:
                    for name, variable in file.variables.items():
                        out[name] = variable.values
            case "zarr2" | "zarr3":
                file.to_zarr(path, zarr_format=int(how[-1]), consolidated=False)
        assert "tos" in variables(grist, path)
        for name in ("tos", "lon", "lat", "time", "time_bnds"):
            same(elements(grist, path, name), file[name].values)


def test_damaged_headers(grist, tmp_path):
    path = tmp_path / "a.nc"
    write(path, "NETCDF3_CLASSIC")
    data = path.read_bytes()
    for end in (3, 4, 20, 100, 300):
        path.write_bytes(data[:end])
        assert '"unreadable"' in grist.ok("stat", path, "--json").decode()
        grist.refuses(1, "stat", path, "--var", "scalar")
    path.write_bytes(b"CDF\x07" + data[4:])
    assert "version 7" in grist.refuses(1, "stat", path, "--var", "scalar")


def test_two_unlimited_dimensions_longer_than_a_variable(grist, tmp_path):
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t", None)
        file.createDimension("u", None)
        file.createVariable("t", "f8", ("t",))[0:10] = np.arange(10)
        file.createVariable("u", "f8", ("u",))[0:6] = np.arange(6)
        file.createVariable("two", "f4", ("t", "u"), chunksizes=(3, 3), fill_value=-1)[0:2, 0:4] = some((2, 4))
    # The C library 4.9 reads uninitialised memory here. So the expected values are those that were written.
    want = np.full((10, 6), -1, "f4")
    want[:2, :4] = some((2, 4))
    same(elements(grist, path, "two"), want)


def test_zeros_that_c_writes_behind_names_and_texts(grist, tmp_path):
    path = tmp_path / "c.nc"
    with scipy.io.netcdf_file(path, "w") as file:
        file.createDimension("x\0", 3)
        data = file.createVariable("a\0", "f8", ("x\0",))
        data[:] = [1, 2, 3]
        data.units = b"K\0"
        setattr(data, "long_name\0", b"warm\0\0")
    (ours,) = stat(grist, path)["variables"]
    assert (ours["name"], ours["dimensions"]) == ("a", ["x"])
    assert ours["attributes"] == {"units": "K", "long_name": "warm"}
    same(elements(grist, path, "a"), np.array([1.0, 2.0, 3.0]))
