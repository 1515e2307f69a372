"""CF attributes compared with xarray: the type and every value."""

import itertools
import warnings

import numpy as np
import pytest
import xarray as xr

from arrays import Reducer, ulps

RAW = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


@pytest.fixture(scope="module")
def reducer(tmp_path_factory):
    reducer = Reducer(tmp_path_factory.mktemp("arrays"))
    yield reducer
    reducer.close()


def decoded(reducer, data, **attributes):
    """Decodes each element, as a maximum over no axes."""
    return reducer.one(data, "max", axes=[], skipna=False, **attributes)


def xarray_decodes(data, attributes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variable = xr.Variable(("x",), data, attributes)
        return xr.conventions.decode_cf_variable("v", variable).values


def data_of(raw):
    rng = np.random.default_rng(7)
    if raw.startswith("float"):
        data = rng.normal(0, 100, 50).astype(raw)
        data[:6] = [0, -9, 99, np.nan, np.inf, 1]
        return data
    info = np.iinfo(raw)
    data = rng.integers(info.min, info.max, 50, dtype=raw, endpoint=True)
    data[:6] = [0, info.max, 99, info.min, 7, 1]
    return data


@pytest.mark.parametrize("raw", RAW)
def test_types_and_values_are_xarrays(reducer, raw):
    data = data_of(raw)
    of = np.dtype(raw).type
    fills = ([], [0], [99], [0, 99])
    factors = (None, (0.5, np.float32), (0.01, np.float64), (3.0, np.float32))
    offsets = (None, (10.0, np.float32), (273.15, np.float64))
    compared = 0
    for missing, scale, offset in itertools.product(fills, factors, offsets):
        attributes, asked = {}, {"missing": missing}
        if missing:
            attributes["_FillValue"] = of(missing[0])
        if len(missing) > 1:
            attributes["missing_value"] = np.array(missing[1:], raw)
        for name, key, factor in (("scale_factor", "scale", scale), ("add_offset", "offset", offset)):
            if factor:
                attributes[name] = factor[1](factor[0])
                asked[key] = (float(attributes[name]), factor[1] == np.float32)
        expected = xarray_decodes(data, attributes)
        got = decoded(reducer, data, **asked)
        assert got.dtype == expected.dtype, (attributes, got.dtype, expected.dtype)
        if got.dtype.kind == "f":
            assert ulps(got, expected) == 0, attributes
        else:
            np.testing.assert_array_equal(got, expected)
        compared += 1
    assert compared == 48


def test_floats_whose_missing_value_is_nan(reducer):
    for raw in ("float32", "float64"):
        data = data_of(raw)
        attributes = {"_FillValue": np.dtype(raw).type(np.nan), "scale_factor": np.float64(0.1)}
        expected = xarray_decodes(data, attributes)
        got = decoded(reducer, data, missing=["nan"], scale=(0.1, False))
        assert got.dtype == expected.dtype == raw and ulps(got, expected) == 0


@pytest.mark.parametrize("raw", [name for name in RAW if "int" in name])
def test_unsigned(reducer, raw):
    data = data_of(raw)
    turn = raw.startswith("int")
    expected = xarray_decodes(data, {"_Unsigned": "true" if turn else "false"})
    got = decoded(reducer, data, unsigned=turn)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


def test_unsigned_bytes_with_a_fill_value_of_minus_one(reducer):
    data = np.array([-1, -2, 0, 5], np.int8)
    expected = xarray_decodes(data, {"_Unsigned": "true", "_FillValue": np.int8(-1)})
    got = decoded(reducer, data, unsigned=True, missing=[255])
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


def test_missing_values_are_compared_as_they_are_stored(reducer):
    # xarray compares after the conversion to f64, where these two numbers are equal.
    data = np.array([2**53, 2**53 + 1], np.int64)
    np.testing.assert_array_equal(decoded(reducer, data, missing=[2**53 + 1]), [2.0**53, np.nan])
    # The attribute is a double and the data are float. The fill value is the float nearest to the attribute.
    data = np.array([1e20, 1], np.float32)
    np.testing.assert_array_equal(decoded(reducer, data, missing=[1e20]), np.float32([np.nan, 1]))


def test_valid_ranges_are_honoured_when_asked_for(reducer):
    data = np.array([-3, -2, 0, 4, 5], np.int16)
    np.testing.assert_array_equal(decoded(reducer, data, valid=[-2, 4]), np.float32([np.nan, -2, 0, 4, np.nan]))
    np.testing.assert_array_equal(decoded(reducer, data, valid=[-2.5, None]), np.float32([np.nan, -2, 0, 4, 5]))
    np.testing.assert_array_equal(decoded(reducer, data, valid=[100000, None]), np.full(5, np.nan, np.float32))
    scaled = decoded(reducer, data, valid=[None, 0], scale=(2.0, False))
    np.testing.assert_array_equal(scaled, [-6, -4, 0, np.nan, np.nan])
    data = np.array([0, 1e-3, np.nan], np.float64)
    np.testing.assert_array_equal(decoded(reducer, data, valid=[1e-3, None]), [np.nan, 1e-3, np.nan])
