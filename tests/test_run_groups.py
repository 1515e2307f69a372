"""`gristmill run OP FILE --var NAME` with groups, windows, bins of time and weights, compared with xarray."""

import warnings

import netCDF4
import numpy as np
import pytest
import xarray as xr

from conftest import ROOT

TOS = ROOT.parent / "shared/data/tos_O1_2001-2002.nc"
LATS, LONS = 6, 4
CALENDARS = ("standard", "gregorian", "proleptic_gregorian", "noleap", "365_day", "360_day", "all_leap", "366_day", "julian")
STRICT = xr.coders.CFDatetimeCoder(use_cftime=True)


def made(path, days, calendar="standard", units="days since 1999-11-20 06:00:00", dtype="f8"):
    """A file with random values and gaps at these times."""
    rng = np.random.default_rng(5)
    data = rng.normal(10, 3, (len(days), LATS, LONS))
    data[rng.random(data.shape) < 0.2] = np.nan
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", len(days))
        file.createDimension("lat", LATS)
        file.createDimension("lon", LONS)
        time = file.createVariable("time", dtype, ("time",))
        time[:] = days
        time.units, time.calendar = units, calendar
        lat = file.createVariable("lat", "f4", ("lat",))
        lat[:] = np.linspace(-90, 60, LATS)
        lat.units, lat.long_name = "degrees_north", "latitude"
        for name, kind, values in [
            ("kind", "i2", np.arange(len(days)) * 7 % 5 - 2),
            ("level", "f8", np.where(np.arange(len(days)) % 4 == 0, np.nan, np.arange(len(days)) % 3 - 0.5)),
        ]:
            file.createVariable(name, kind, ("time",))[:] = values
        file.createVariable("area", "f8", ("lat",))[:] = np.arange(LATS) + 0.5
        file.createVariable("hole", "f8", ("lat",))[:] = np.full(LATS, np.nan)
        file.createVariable("mask", "i4", ("lat", "lon"))[:] = 1
        x = file.createVariable("x", "f8", ("time", "lat", "lon"), chunksizes=(max(1, len(days) // 5), 4, 3))
        x[:] = data
        x.units = "kg"
        file.createVariable("n", "i4", ("time", "lat", "lon"))[:] = rng.integers(-99, 99, data.shape)
    return path


def opened(path, **how):
    with xr.open_dataset(path, decode_times=STRICT, **how) as file:
        return file.load()


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Uneven times within some two years."""
    days = np.sort(np.random.default_rng(7).uniform(0, 800, 300))
    return made(tmp_path_factory.mktemp("groups") / "days.nc", days)


def ran(grist, folder, op, path, *args, var="x", **params):
    """The answer as a file, opened with xarray."""
    given = [arg for name, value in params.items() for arg in ("--param", f"{name}={value}")]
    grist.ok("run", op, path, "--var", var, *args, *given, "--output", "out.nc", cwd=folder)
    return opened(folder / "out.nc")[var]


def same(ours, theirs):
    assert ours.dims == theirs.dims and ours.shape == theirs.shape
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("part", ("year", "season", "quarter", "month", "day", "dayofyear", "hour"))
def test_parts_of_dates_in_every_calendar(grist, tmp_path, calendar, part):
    times = np.random.default_rng(11).uniform(-150_000, 150_000, 2000).round(3)
    path = made(tmp_path / "dates.nc", times, calendar, "days since 2000-02-28 12:00:00")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = opened(path).x
        if part == "quarter":
            groups = (theirs.time.dt.month + 2) // 3
            theirs = theirs.groupby(groups.rename("quarter")).count()
        else:
            theirs = theirs.groupby(f"time.{part}").count()
    ours = ran(grist, tmp_path, "count", path, "--groupby", f"time.{part}")
    assert ours.dims == theirs.dims == (part, "lat", "lon")
    assert ours[part].values.tolist() == theirs[part].values.tolist()
    np.testing.assert_array_equal(ours.values, theirs.values)


@pytest.mark.parametrize("calendar", ("standard", "julian"))
def test_the_days_about_the_reform_of_the_calendar(grist, tmp_path, calendar):
    path = made(tmp_path / "reform.nc", np.arange(-400.0, 400.0), calendar, "days since 1582-10-01")
    theirs = opened(path).x
    for part in ("year", "month", "day", "dayofyear"):
        ours = ran(grist, tmp_path, "count", path, "--groupby", f"time.{part}")
        grouped = theirs.groupby(f"time.{part}").count()
        assert ours[part].values.tolist() == grouped[part].values.tolist()
        np.testing.assert_array_equal(ours.values, grouped.values)


@pytest.mark.parametrize("units", ("hours since 1999-12-31T18:00:00Z", "seconds since 1970-01-01", "minutes since 2000-1-1 0:0:0.5"))
@pytest.mark.parametrize("dtype", ("i4", "f8"))
def test_units_of_time(grist, tmp_path, units, dtype):
    path = made(tmp_path / "units.nc", np.arange(0, 90_000, 77), units=units, dtype=dtype)
    theirs = opened(path).x.groupby("time.hour").count()
    ours = ran(grist, tmp_path, "count", path, "--groupby", "time.hour")
    assert ours.hour.values.tolist() == theirs.hour.values.tolist()
    np.testing.assert_array_equal(ours.values, theirs.values)


@pytest.mark.parametrize("op", ("count", "sum", "mean", "min", "max", "std", "var", "median"))
@pytest.mark.parametrize("by", ("time.month", "time=kind", "time=level"))
def test_groups(grist, days, tmp_path, op, by):
    file = opened(days)
    theirs = getattr(file.x.groupby(by if "=" not in by else file[by.removeprefix("time=")]), op)()
    ours = ran(grist, tmp_path, op, days, "--groupby", by)
    same(ours, theirs)
    name = theirs.dims[0]
    assert ours[name].values.tolist() == theirs[name].values.tolist()
    assert ours[name].dtype.kind == theirs[name].dtype.kind


def test_groups_of_what_is_selected_and_reduced_too(grist, days, tmp_path):
    x = opened(days).x
    part = x.isel(time=slice(10, 200, 3))
    ours = ran(grist, tmp_path, "mean", days, "--groupby", "time.season", "--isel", "time=10:200:3", "--axes", "time,lon")
    same(ours, part.groupby("time.season").mean(("time", "lon")))
    assert ours.season.values.tolist() == ["DJF", "JJA", "MAM", "SON"] and ours.attrs["cell_methods"] == "time: lon: mean"
    ours = ran(grist, tmp_path, "max", days, "--groupby", "time.year", "--coarsen", "lat=2", "--axes", "lon")
    theirs = x.groupby("time.year").max().coarsen(lat=2).max().max("lon")
    same(ours, theirs)
    said = grist.answer("quantile", days, "--var", "x", "--groupby", "time.year", q="0.1,0.9")["result"]
    assert said["dimensions"] == ["quantile", "year", "lat", "lon"]
    assert said["labels"] == [{"dimension": "year", "values": [1999, 2000, 2001, 2002][: said["quantile"]["shape"][1]]}]


@pytest.mark.parametrize("op", ("count", "sum", "mean", "min", "max", "std"))
@pytest.mark.parametrize("window", ("lat=3", "lat=4,trim", "lat=4,pad", "time=7,trim", "time=7,pad", "lon=1,exact"))
def test_windows(grist, days, tmp_path, op, window):
    axis, length = window.split(",")[0].split("=")
    boundary = window.partition(",")[2] or "exact"
    ours = ran(grist, tmp_path, op, days, "--coarsen", window)
    with xr.open_dataset(days, decode_times=False) as file:
        theirs = getattr(file.x.load().coarsen({axis: int(length)}, boundary=boundary), op)()
    same(ours, theirs)
    if axis in theirs.coords:
        with xr.open_dataset(tmp_path / "out.nc", decode_times=False) as raw:
            np.testing.assert_allclose(raw[axis].values, theirs[axis].values, rtol=1e-6)
            assert raw[axis].attrs["units"] == theirs[axis].attrs["units"]


@pytest.mark.parametrize("calendar", ("standard", "noleap", "360_day"))
@pytest.mark.parametrize("length", ("6h", "D", "1D", "5D", "45D", "MS", "2MS", "QS", "QS-DEC", "QS-FEB", "2QS", "YS", "YS-JUL"))
def test_bins_of_time(grist, tmp_path, calendar, length):
    # The times lie in stretches a month and more apart, so that some bins are empty.
    at = np.r_[np.arange(0, 30, 0.37), np.arange(90, 100, 0.21), np.arange(500, 520, 1.5)]
    if length.endswith("h"):
        at = at[at < 100]
    path = made(tmp_path / "bins.nc", at, calendar)
    x = opened(path).x
    # flox is off, because it counts NaN elements in bins where all elements are missing.
    with warnings.catch_warnings(), xr.set_options(use_flox=False):
        warnings.simplefilter("ignore")
        for op in ("count", "sum", "mean", "max"):
            theirs = getattr(x.resample(time=length), op)()
            ours = ran(grist, tmp_path, op, path, "--resample", f"time={length}")
            same(ours, theirs)
            assert ours.time.values.tolist() == theirs.time.values.tolist()


def test_weights(grist, days, tmp_path):
    file = opened(days)
    cosine = np.cos(np.deg2rad(file.lat.astype("f8"))).clip(0)
    for op in ("mean", "sum"):
        for weights, by in ((cosine, "coslat"), (file.area, "area")):
            theirs = getattr(file.x.weighted(weights), op)(("lat", "lon"))
            ours = ran(grist, tmp_path, op, days, "--weights", f"lat={by}", "--axes", "lat,lon")
            same(ours, theirs)
            assert by in ours.attrs["cell_methods"]
    part = file.isel(lat=slice(1, 5, 2))
    ours = ran(grist, tmp_path, "mean", days, "--weights", "lat=coslat", "--isel", "lat=1:5:2", "--axes", "lat,lon", "--resample", "time=YS")
    years = [part.x.sel(time=part.time.dt.year == year) for year in np.unique(part.time.dt.year)]
    theirs = [year.weighted(cosine.isel(lat=slice(1, 5, 2))).mean() for year in years]
    np.testing.assert_allclose(ours.values, theirs, rtol=1e-12)


def test_integers_in_groups(grist, days, tmp_path):
    n = opened(days).n
    for op in ("sum", "min", "mean"):
        ours = ran(grist, tmp_path, op, days, "--groupby", "time.month", var="n")
        same(ours, getattr(n.groupby("time.month"), op)())


@pytest.mark.parametrize("op", ("count", "sum", "mean", "min", "max", "std", "median"))
def test_bins_without_times_are_missing(grist, tmp_path, op):
    """The same holds for integers. They become floats only if a bin is missing."""
    for at, empty in ((np.arange(0, 80, 3.0), False), (np.r_[np.arange(0, 28, 3.0), np.arange(90, 110, 3.0)], True)):
        path = made(tmp_path / "bins.nc", at, "standard")
        with xr.set_options(use_flox=False):
            theirs = getattr(opened(path).n.resample(time="MS"), op)()
        assert bool(theirs.isnull().any()) == empty
        ours = ran(grist, tmp_path, op, path, "--resample", "time=MS", "--axes", "lon", var="n")
        with xr.set_options(use_flox=False):
            theirs = getattr(opened(path).n.resample(time="MS"), op)(("time", "lon"))
        same(ours, theirs)
    shares = grist.answer("quantile", path, "--var", "x", "--resample", "time=MS", "-q", "0.1,0.9")["result"]["quantile"]
    assert shares["shape"][:2] == [2, 5] and "NaN" in shares["values"]


def test_labels_are_printed(grist, days):
    said = grist.answer("mean", days, "--var", "x", "--axes", "lat,lon", "--resample", "time=YS")["result"]
    assert said["labels"][0]["dimension"] == "time" and said["labels"][0]["values"][0] == "1999-01-01"
    text = grist.ok("run", "mean", days, "--var", "x", "--axes", "lat,lon", "--groupby", "time.season").decode()
    assert "season: DJF JJA MAM SON" in text


@pytest.mark.parametrize(
    "args, word",
    [
        (["--groupby", "time"], "time.month"),
        (["--groupby", "time.decade"], "dayofyear"),
        (["--groupby", "time=decade"], "neither a variable"),
        (["--groupby", "lat.month"], "days since"),
        (["--groupby", "lat=lat.month"], "days since"),
        (["--groupby", "lat=mask"], "one dimension lat"),
        (["--groupby", "time=area"], "one dimension time"),
        (["--groupby", "depth=area"], "time, lat, lon"),
        (["--groupby", "time.month", "--resample", "time=MS"], "twice"),
        (["--groupby", "time.month", "--isel", "time=3"], "one index"),
        (["--coarsen", "lat=4"], "trim or pad"),
        (["--coarsen", "lat=0"], "not a number of elements"),
        (["--coarsen", "lat=2,cut"], "not exact, trim or pad"),
        (["--coarsen", "lat"], "lat=4,trim"),
        (["--resample", "time=M"], "QS-DEC"),
        (["--resample", "lat=MS"], "days since"),
        (["--resample", "lon=MS"], "days since"),
        (["--weights", "lat=hole"], "make missing elements 0"),
        (["--weights", "time=coslat"], "latitudes are in degrees"),
        (["--weights", "lon=coslat"], "no coordinate"),
        (["--weights", "lat=mask"], "one dimension lat"),
        (["--weights", "lat="], "coslat"),
        (["--weights", "lat=nothing"], "area"),
    ],
)
def test_what_makes_no_sense_is_said(grist, days, args, word):
    assert word in grist.refuses(2, "run", "mean", days, "--var", "x", *args)


def test_weights_are_for_sums_and_means(grist, days):
    assert "sum, mean and totals" in grist.refuses(2, "run", "max", days, "--var", "x", "--weights", "lat=coslat")
    assert "--var" in grist.refuses(2, "run", "max", days, "--groupby", "time.month")


def test_more_bins_than_there_may_be(grist, tmp_path):
    path = made(tmp_path / "far.nc", [0.0, 1e6])
    assert "longer" in grist.refuses(2, "run", "mean", path, "--var", "x", "--resample", "time=h")


def test_calendars_and_units_that_are_none(grist, tmp_path):
    path = made(tmp_path / "mayan.nc", [0.0, 1.0], calendar="mayan")
    assert "mayan" in grist.refuses(2, "run", "mean", path, "--var", "x", "--groupby", "time.month")
    assert grist.ok("run", "mean", path, "--var", "x", "--axes", "time")
    path = made(tmp_path / "date.nc", [0.0, 1.0], units="days since 2001-02-30")
    assert "2001-02-30" in grist.refuses(2, "run", "mean", path, "--var", "x", "--groupby", "time.month")


@pytest.mark.skipif(not TOS.exists(), reason=f"{TOS} is not there")
def test_the_real_file(grist, tmp_path):
    tos = opened(TOS).tos
    ours = ran(grist, tmp_path, "mean", TOS, "--groupby", "time.season", var="tos")
    theirs = tos.astype("f8").groupby("time.season").mean()
    assert ours.dims == theirs.dims and ours.season.values.tolist() == theirs.season.values.tolist()
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-7)
