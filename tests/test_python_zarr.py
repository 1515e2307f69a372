"""Zarr stores as datasets: the metadata that xarray and zarr-python write beside the elements."""

import gristmill as gm
import numpy as np
import pytest
import xarray as xr
import zarr


@pytest.mark.parametrize("version", [2, 3])
def test_attributes_that_json_has_no_number_for(tmp_path, version):
    """JSON has no such numbers, but stores have them as Python writes them: NaN, Infinity."""
    nan, inf = float("nan"), float("inf")
    given = {"valid_min": nan, "limits": [-inf, 0.5, inf, nan], "text": "NaN, \"Infinity\"", "missing_value": np.float64(nan)}
    made = xr.Dataset({"a": ("t", [1.0, nan, 2.0], given)}, attrs={"worst": -inf})
    path = tmp_path / "nan.zarr"
    made.to_zarr(path, zarr_format=version, consolidated=False)
    with xr.open_dataset(path, engine="zarr", consolidated=False) as wanted:
        ours = gm.open_dataset(path)
        xr.testing.assert_identical(ours.load(), wanted.load())
    assert float(gm.open_dataset(path).a.sum()) == 3


@pytest.mark.parametrize("version", [2, 3])
def test_numbers_of_json_are_pythons_own(tmp_path, version):
    """Such a number has no type, so it does not change the type of a result."""
    group = zarr.open_group(tmp_path / "z.zarr", mode="w", zarr_format=version)
    group.attrs.update({"one": 1.5, "many": [1, 2, 3], "large": 2**63})
    kept = group.create_array("a", shape=(2,), dtype="f4", attributes={"scale": 1e-7, "count": 3})
    kept[:] = [1, 2]
    ours = gm.open_arrays(tmp_path / "z.zarr")
    attributes = dict(ours.attrs) | ours.attributes_of("a")
    for name, value in (dict(group.attrs) | {"scale": 1e-7, "count": 3}).items():
        assert attributes[name] == value and type(attributes[name]) is type(value), name
