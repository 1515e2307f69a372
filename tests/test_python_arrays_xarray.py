"""Operations of xarray on stored arrays. Reductions run where the data is, and the results are xarray's."""

import pickle
import warnings

import netCDF4
import numpy as np
import pytest
import xarray as xr
from python_arrays import PLACES, gm, places, same, theirs, unlimited  # noqa: F401

# Each with its number of requests.
PUSHED = {
    'ds.tos.mean("time")': 1,
    "ds.tos.sum()": 1,
    'ds.tos.max(["lat", "lon"])': 1,
    "ds.tos.std()": 1,
    'ds.tos.var("time", ddof=1)': 1,
    'ds.tos.count("time")': 1,
    'ds.tos.sum("time", min_count=3)': 1,
    'ds.b.fillna(0).argmax("time")': 1,
    'ds.i4.argmax("time")': 1,
    'ds.a.idxmax("time")': 2,
    'ds.tos.isnull().sum("time")': 1,
    '(ds.tos > 300).any("time")': 1,
    'ds.tos.mean("time", skipna=False)': 1,
    'ds.i4.mean("time")': 1,
    "ds.i4.sum()": 1,
    'ds.packed.mean("time")': 1,
    'ds.tos.isel(time=slice(2, 10)).mean("time")': 1,
    "ds.tos.sel(lat=slice(-30, 30)).mean()": 1,
    'ds.tos.sel(lat=20, lon=100, method="nearest").mean("time")': 1,
    '(ds.tos - 273.15).mean("time")': 1,
    'ds.tos.where(ds.tos > 280).mean("time")': 1,
    'ds.tos.where(ds.lat > 0).mean(["lat", "lon"])': 1,
    'ds.tos.where(ds.lat > 0).mean("time")': 1,
    'ds.tos.where(ds.lat > 0).count(["lat", "lon"])': 1,
    '((ds.a - ds.a.mean("time")) ** 2).mean("time")': 2,
    'ds.tos.fillna(0).sum("time")': 1,
    'ds.tos.clip(270, 290).mean("time")': 1,
    'ds.tos.weighted(np.cos(np.deg2rad(ds.lat))).mean(["lat", "lon"])': 1,
    'ds.tos.weighted(np.cos(np.deg2rad(ds.lat))).mean("lat")': 1,
    "ds.tos.coarsen(lat=2, lon=2).mean()": 1,
    "ds.a.coarsen(time=6).max()": 1,
    'ds.tos.resample(time="QS").mean()': 1,
    'ds.tos.coarsen(time=5, boundary="trim").mean()': 1,
    'ds.tos.sortby("lat", ascending=False).mean("lat")': 1,
    "xr.where(ds.tos > 280, 1, 0).sum('time')": 1,
    'ds.tos.argmin("lat", skipna=False)': 1,
    "np.isfinite(ds.tos).sum('lat')": 1,
    'ds.a.groupby("time.month").mean()': 1,
    "ds.a.isel(lat=[0, 3, 4, 9], lon=[2, 5, 3]).mean('time')": 1,
    "ds.a.isel(time=[0, 3, 4, 9]).std('time')": 1,
    'ds.tos.transpose("lon", "time", "lat").mean("time")': 1,
    'ds.tos.min("lat", keepdims=True)': 1,
    'ds.a.round().sum("lon")': 1,
    '(ds.i4 % 7 == 3).sum("time")': 1,
    'np.sqrt(ds.a * ds.a + 1).mean("lat")': 1,
    "(ds.a * ds.b).mean()": 1,
    'xr.dot(ds.a, ds.b, dim="time")': 1,
    'xr.corr(ds.a, ds.b, "time")': 1,
    'ds.tos.weighted(ds.a.fillna(0)).mean("lat")': 3,
}


def compute(text, ds):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, {"ds": ds, "np": np, "xr": xr})


@pytest.fixture(scope="module", params=PLACES)
def ours(request, places):
    return gm.open_dataset(places[request.param])


@pytest.mark.parametrize("text", PUSHED)
def test_reductions_run_where_the_data_is(ours, theirs, text):
    gm._variables.variable.answers.clear()
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = compute(text, ours)
    same(got, compute(text, theirs))
    assert trace.fallbacks == [] and trace.reads == 0
    assert trace.requests == PUSHED[text]
    assert isinstance(got.data, np.ndarray)


def test_several_numbers_of_one_array_are_one_request(ours, theirs):
    gm._variables.variable.answers.clear()
    with gm.trace() as trace:
        std, mean, count = ours.tos.std("time"), ours.tos.mean("time"), ours.tos.count("time")
        stats = gm.stats(ours.tos.data, ["mean", "std", "count", "max"], axis=0)
    assert trace.requests == 1 and trace.fallbacks == []
    same(mean, theirs.tos.mean("time"))
    same(std, theirs.tos.std("time"))
    same(count, theirs.tos.count("time"))
    np.testing.assert_array_equal(stats["mean"], mean.values)
    np.testing.assert_array_equal(stats["count"], count.values)


def test_variables_are_those_of_xarray(ours, theirs):
    assert set(ours.variables) == set(theirs.variables) and ours.attrs["title"] == theirs.attrs["title"]
    for name in theirs.variables:
        mine, other = ours[name], theirs[name]
        assert (mine.dims, mine.shape, mine.dtype) == (other.dims, other.shape, other.dtype)
        assert {key: mine.attrs.get(key) for key in other.attrs} == other.attrs
    assert ours.packed.encoding["dtype"] == np.dtype("int16")


FALLS_BACK = {
    'ds.tos.quantile(0.5, "time")': "nanquantile",
    'ds.tos.median("time")': "nanmedian",
    "ds.tos.rolling(time=3).mean()": None,
    'ds.a.cumsum("time")': "nancumsum",
    "ds.b.interp(lat=[0.0, 3.0])": None,
    "ds.a.reduce(lambda values, axis: np.ptp(values, axis), 'lat')": "ptp",
    "ds.tos[::-1].mean('lat')": "nanmean",
    'ds.tos.diff("time").mean()': "nanmean",
    'ds.tos.isel(lat=xr.DataArray([1, 2], dims="p"), lon=xr.DataArray([3, 4], dims="p")).mean("time")': None,
    "ds.tos.stack(z=('lat', 'lon')).mean('z')": "nanmean",
    "xr.concat([ds.a, ds.a + 1], 'time').mean('time')": None,
}


@pytest.mark.parametrize("text", FALLS_BACK)
def test_all_else_reads_each_element_once(places, theirs, text):
    ours = gm.open_dataset(places["netcdf"])
    with gm.trace() as trace:
        got = compute(text, ours)
        values = got.values
    assert trace.fallbacks
    if FALLS_BACK[text]:
        assert FALLS_BACK[text] in trace.fallbacks
    expected = compute(text, theirs)
    assert got.dims == expected.dims and values.dtype == expected.dtype
    np.testing.assert_allclose(values, expected.values, rtol=1e-4, atol=1e-6)
    stored = sum(about["stored_bytes"] for name, about in ours_about(places).items() if f"ds.{name}" in text)
    assert trace.bytes_in <= stored
    ours = gm.open_dataset(places["netcdf"])
    with gm.set_options(fallback="error"), pytest.raises(gm.PushdownError, match="cannot run where the data is stored"):
        compute(text, ours).values


def test_comparing_with_what_is_here_reads_once(places, theirs):
    ours = gm.open_dataset(places["cluster"])
    with gm.trace() as trace:
        assert ours.tos.equals(theirs.tos) and not ours.tos.equals(theirs.tos + 1)
    assert trace.reads == 1 and trace.fallbacks


CODED = {
    "both_f4": ("i2", {"scale_factor": np.float32(0.5), "add_offset": np.float32(3)}),
    "scale_f8": ("i2", {"scale_factor": 0.5}),
    "fill_i2": ("i2", {"_FillValue": np.int16(7)}),
    "fill_i4": ("i4", {"_FillValue": np.int32(7)}),
    "two_fills": ("i2", {"_FillValue": np.int16(7), "missing_value": np.int16(5)}),
    "valid_range": ("i2", {"valid_range": np.array([0, 5], "i2")}),
    "unsigned": ("i1", {"_Unsigned": "true", "_FillValue": np.int8(-1)}),
    "fill_f4": ("f4", {"_FillValue": np.float32(3)}),
    "offset_i4": ("i4", {"add_offset": np.float32(1), "scale_factor": np.float32(2)}),
}


@pytest.mark.parametrize("name", CODED)
def test_what_attributes_mean_is_what_xarray_says(tmp_path, name):
    dtype, attrs = CODED[name]
    values = np.arange(-6, 12, dtype=dtype).reshape(3, 6)
    with netCDF4.Dataset(tmp_path / "coded.nc", "w") as file:
        file.createDimension("y", 3)
        file.createDimension("x", 6)
        stored = file.createVariable("v", dtype, ("y", "x"), fill_value=attrs.get("_FillValue"))
        stored.set_auto_maskandscale(False)
        stored.setncatts({key: value for key, value in attrs.items() if key != "_FillValue"})
        stored[:] = values
    with xr.open_dataset(tmp_path / "coded.nc") as expected, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = gm.open_dataset(tmp_path / "coded.nc")
        with gm.set_options(fallback="error"), gm.trace() as trace:
            same(ours.v.mean("x"), expected.v.mean("x"))
            same(ours.v.max("x"), expected.v.max("x"))
        assert trace.requests == 2
        same(ours.v, expected.v)


def ours_about(places):
    return gm.open_arrays(places["netcdf"])._about


def test_values_are_read_once(places, theirs):
    ours = gm.open_dataset(places["cluster"])
    with gm.trace() as trace:
        first, second = ours.tos.values, ours.tos.values
    np.testing.assert_array_equal(first, theirs.tos.values)
    np.testing.assert_array_equal(second, theirs.tos.values)
    assert trace.reads == 1
    first[:] = 0
    np.testing.assert_array_equal(ours.tos.values, theirs.tos.values)


def test_what_needs_no_data_asks_for_none(places):
    with gm.trace() as opening:
        ours = gm.open_dataset(places["cluster"])
    with gm.set_options(fallback="error"), gm.trace() as trace:
        assert "tos" in repr(ours) and "tos" in repr(ours.tos) and ours._repr_html_() and ours.tos._repr_html_()
        assert ours.nbytes > 0 and ours.tos.isel(time=3).shape == (12, 16)
        assert (ours.tos - 273.15).dtype == np.float32
        again = pickle.loads(pickle.dumps(ours))
    assert trace.requests == trace.reads == 0, trace
    # Only labels were read: times, latitudes, longitudes.
    assert opening.requests == 0 and opening.reads == 3
    same(again.tos.mean("time"), ours.tos.mean("time"))


def test_what_is_written_is_what_was_stored(places, theirs, tmp_path):
    gm.open_dataset(places["netcdf"]).to_netcdf(tmp_path / "copy.nc")
    with xr.open_dataset(tmp_path / "copy.nc", mask_and_scale=False) as copy:
        assert copy.packed.dtype == np.int16
        with xr.open_dataset(places["netcdf"], mask_and_scale=False) as original:
            np.testing.assert_array_equal(copy.packed.values, original.packed.values)


def test_the_tail_of_an_unlimited_dimension_is_missing(tmp_path):
    path = unlimited(tmp_path / "tail.nc", 8)
    with xr.open_dataset(path) as expected, gm.set_options(fallback="error"):
        ours = gm.open_dataset(path)
        for name in ("long", "short"):
            same(ours[name].sum(), expected[name].sum())
            same(ours[name].count(), expected[name].count())


def test_nothing_is_wrong_in_silence(places, theirs):
    ours = gm.open_dataset(places["netcdf"])
    assert np.isnan(ours.tos.mean("time").values[3, 5])
    assert ours.tos.sum("time").values[3, 5] == 0 and np.isnan(ours.tos.sum("time", min_count=1).values[3, 5])
    with pytest.raises(ValueError, match="All-NaN"):
        ours.a.argmax("time")
