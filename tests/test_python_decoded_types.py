"""Types and bits of decoded variables, compared with xarray: scales of every type, also numbers of JSON, which have no type."""

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

import gristmill as gm

INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def netcdf(path, variables):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t", 4)
        for name, (data, fill, attributes) in variables.items():
            var = file.createVariable(name, data.dtype, ("t",), fill_value=fill)
            var.set_auto_maskandscale(False)
            var.setncatts(attributes)
            var[:] = data
    return str(path)


def equal(ours, theirs):
    for name in theirs.data_vars:
        got, want = ours[name], theirs[name]
        assert got.dtype == want.dtype, name
        np.testing.assert_array_equal(got.values, want.values, err_msg=name)
        assert got.sum().dtype == want.sum().dtype and got.max().values == want.max().values, name


@pytest.mark.parametrize("scale", INTEGERS)
def test_integers_with_an_integer_scale_stay_integers(tmp_path, scale):
    # Types that the type of the scale can hold. xarray casts other types to it and loses large numbers.
    held = [dtype for dtype in INTEGERS if np.promote_types(dtype, scale) == np.dtype(scale)]
    data = np.array([0, 1, 100, 127])
    variables = {f"v{dtype}": (data.astype(dtype), None, {"scale_factor": np.dtype(scale).type(3)}) for dtype in held}
    path = netcdf(tmp_path / "a.nc", variables)
    equal(gm.open_dataset(path), xr.open_dataset(path))


def test_larger_integers_keep_what_a_scale_of_fewer_bits_would_lose(tmp_path):
    data = np.array([1, -2, 70000, 2**31 - 1], "i4")
    path = netcdf(tmp_path / "a.nc", {"v": (data, None, {"scale_factor": np.int16(1)})})
    assert gm.open_dataset(path).v.dtype == np.dtype("i4")
    np.testing.assert_array_equal(gm.open_dataset(path).v, data)


def test_integers_that_may_be_missing_are_floats_with_any_scale(tmp_path):
    data = np.array([1, 2, -1, 4], "i2")
    path = netcdf(tmp_path / "a.nc", {"v": (data, -1, {"scale_factor": np.int16(2)})})
    np.testing.assert_array_equal(gm.open_dataset(path).v, [2.0, 4.0, np.nan, 8.0])


def test_missing_lengths_of_time_are_no_numbers(tmp_path):
    data = np.array([1, 2, -1, 4], "i2")
    path = netcdf(tmp_path / "a.nc", {"dry_days": (data, -1, {"units": "days"})})
    np.testing.assert_array_equal(gm.open_dataset(path).dry_days, [1.0, 2.0, np.nan, 4.0])
    # xarray adds -2**63 for the missing element.
    assert float(gm.open_dataset(path).dry_days.sum()) == 7.0


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i4"])
@pytest.mark.parametrize("attributes", [{"scale_factor": 1e-7}, {"scale_factor": 1e-7, "add_offset": 0.3}, {"add_offset": 5}])
def test_numbers_of_json_have_no_type(tmp_path, version, dtype, attributes):
    path = str(tmp_path / "a.zarr")
    group = zarr.open_group(path, mode="w", zarr_format=version)
    data = (np.random.default_rng(0).normal(size=1000) * 1000).astype(dtype)
    more = {"dimension_names": ["t"]} if version == 3 else {}
    attributes = attributes | ({"_ARRAY_DIMENSIONS": ["t"]} if version == 2 else {})
    nan = np.dtype(dtype).type("nan") if dtype[0] == "f" else None
    array = group.create_array("v", shape=data.shape, dtype=dtype, attributes=attributes, fill_value=nan, **more)
    array[:] = data
    theirs = xr.open_dataset(path, engine="zarr", consolidated=False).v
    ours = gm.open_dataset(path).v
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours.values, theirs.values)
