"""Groups of xarray: one request for all of them, with the answers of xarray."""

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, places, same, theirs  # noqa: F401

from gristmill._arrays import groupby_loops
from gristmill._expressions import groupings
from gristmill._variables import variable

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::FutureWarning")

# Each with its number of requests.
GROUPED = {
    'ds.tos.groupby("time.month").mean()': 1,
    'ds.a.groupby("time.month").std("time")': 1,
    'ds.i4.groupby("time.month").max(["time", "lon"])': 1,
    'ds.packed.groupby("time.season").sum(["time", "lat", "lon"])': 1,
    'ds.tos.groupby("time.month").count()': 1,
    'ds.tos.groupby("time.year").sum(min_count=2)': 1,
    '(ds.tos > 280).groupby("time.month").any()': 1,
    '(ds.tos - 273.15).isel(time=slice(3, None, 2)).groupby("time.month").min()': 1,
    'ds.tos.isel(time=[0, 9, 4, 30]).groupby("time.month").mean()': 1,
    'ds[["tos", "a"]].groupby("time.month").mean().a': 2,
    'ds.tos.groupby_bins("lat", [-90, -30, 30, 90]).mean()': 1,
    'ds.tos.groupby(xr.DataArray([1, 0, 1] * 12, dims="time", name="g")).var()': 1,
    'ds.tos.resample(time="QS").mean()': 1,
    'ds.b.resample(time="MS").max()': 1,
    # Each group subtracts another number, so each needs its own request. One request is for all groups, before this is known.
    'ds.b.groupby("time.season").map(lambda group: (group - group.mean()).std())': 5,
    'ds.b.fillna(0).resample(time="QS").map(lambda group: group.argmax("time"))': 4,
}


def compute(text, ds):
    return eval(text, {"ds": ds, "np": np, "xr": xr})


@pytest.fixture(autouse=True)
def nothing_known():
    variable.answers.clear()


@pytest.mark.parametrize("text", GROUPED)
def test_all_groups_are_one_request(places, theirs, text):
    ours = gm.open_dataset(places["cluster"])
    with xr.set_options(use_flox=False), gm.set_options(fallback="error"), gm.trace() as trace:
        got = compute(text, ours)
    with xr.set_options(use_flox=False):
        same(got, compute(text, theirs))
    assert trace.reads == 0 and trace.requests == GROUPED[text]


def test_many_groups_are_a_few_requests(places, theirs, monkeypatch):
    monkeypatch.setattr(groupings, "MAX_CELLS", 5 * 12 * 16)
    ours = gm.open_dataset(places["netcdf"])
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = ours.tos.groupby("time.dayofyear").max()
    assert trace.requests == 8
    same(got, theirs.tos.groupby("time.dayofyear").max())


def test_what_cannot_be_asked_together_is_asked_alone(places, theirs):
    ours = gm.open_dataset(places["netcdf"])
    for text in (
        'ds.tos.groupby("time.month").map(lambda group: group[:2].mean())',
        'ds.tos.groupby("time.month").map(lambda group: group.where(group.time.dt.day > 9).mean("time"))',
        'ds.tos.groupby("time.month").map(lambda group: group.isel(lat=[3, 1]).sum("time"))',
        'ds.tos.groupby("time.month").map(lambda group: group.transpose("lon", "lat", "time").max("time"))',
        'ds.tos.groupby("time.month").map(lambda group: group.mean("lat").sum("time"))',
    ):
        with gm.set_options(fallback="error"):
            same(compute(text, ours), compute(text, theirs))


def test_groups_are_found_without_xarray_too(places, theirs, monkeypatch):
    monkeypatch.setattr(groupby_loops, "LOOPS", ())
    ours = gm.open_dataset(places["netcdf"])
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = ours.tos.groupby("time.month").mean()
    assert trace.requests == 12
    same(got, theirs.tos.groupby("time.month").mean())


REDUCEAT = [np.add, np.minimum, np.maximum, np.fmin, np.fmax, np.logical_or, np.logical_and]


@pytest.mark.parametrize("function", REDUCEAT, ids=lambda function: function.__name__)
@pytest.mark.parametrize("name", ["b", "i4", "tos"])
def test_sums_between_places_are_one_request(places, theirs, function, name):
    array, values = gm.open_arrays(places["netcdf"])[name], theirs[name].values
    for axis, starts in ((0, [0, 4, 20]), (-1, [3, 4, 9]), (1, [0])):
        with gm.set_options(fallback="error"), gm.trace() as trace:
            got = function.reduceat(array, starts, axis=axis)
        expected = function.reduceat(values, starts, axis=axis)
        assert got.dtype == expected.dtype and trace.requests <= 1
        np.testing.assert_allclose(got, expected, rtol=1e-4 if name == "tos" else 1e-11)
    filled = np.where(np.isnan(array), 0, array)
    out = np.empty((3, 12, 16), values.dtype)
    with gm.set_options(fallback="error"), gm.trace() as trace:
        assert np.add.reduceat(filled, [0, 4, 20], axis=0, out=out) is out
    assert trace.requests <= 1
    expected = np.add.reduceat(np.where(np.isnan(values), 0, values).astype("f8"), [0, 4, 20], axis=0)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-9)
    # If an index is not below the next one, NumPy takes a single element, which is not a group.
    np.testing.assert_array_equal(np.maximum.reduceat(array, [4, 4, 2]), np.maximum.reduceat(values, [4, 4, 2]))


def test_flox_asks_once(places, theirs):
    flox = pytest.importorskip("flox", reason="flox is not installed")
    array, values = gm.open_arrays(places["netcdf"])["a"], theirs.a.values
    lons = np.repeat([0, 1, 2, 3], 4)
    for function in ("nansum", "nanmean", "count", "nanmax", "sum"):
        with gm.set_options(fallback="error"), gm.trace() as trace:
            got, labels = flox.groupby_reduce(array, lons, func=function, engine="flox")
        expected, _ = flox.groupby_reduce(values, lons, func=function, engine="flox")
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)
        assert trace.requests <= 2 and list(labels) == [0, 1, 2, 3]


@pytest.mark.parametrize("text", ['ds.a.groupby("time.month").mean()', 'ds.tos.resample(time="QS").max()'])
def test_flox_over_dask_reads_each_element_once(places, theirs, text):
    pytest.importorskip("dask", reason="dask is not installed")
    pytest.importorskip("flox", reason="flox is not installed")
    ours = gm.open_dataset(places["netcdf"], chunks={})
    name = text[3 : text.index(".", 3)]
    with gm.trace() as trace:
        got = compute(text, ours).compute()
    same(got, compute(text, theirs))
    assert trace.bytes_in <= gm.open_arrays(places["netcdf"])._about[name]["stored_bytes"]
