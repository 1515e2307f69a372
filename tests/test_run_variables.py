"""`gristmill run OP FILE --var NAME`: variables of netCDF and HDF5 files, against xarray and exact sums."""

import json
import math

import netCDF4
import numpy as np
import pytest
import xarray as xr

from conftest import ROOT, number

TOS = ROOT.parent / "shared/data/tos_O1_2001-2002.nc"
TIMES, LATS, LONS = 7, 10, 12


def made(path, format="NETCDF4", dtype="f4", chunks=None, **how):
    """A file with gaps, coordinates and an unlimited time."""
    rng = np.random.default_rng(3)
    data = rng.normal(285, 10, (TIMES, LATS, LONS))
    missing = rng.random(data.shape) < 0.3
    missing[:, 2, 3] = True
    with netCDF4.Dataset(path, "w", format=format) as file:
        file.createDimension("time", None)
        file.createDimension("lat", LATS)
        file.createDimension("lon", LONS)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(TIMES) * 30.0 + 15
        lat = file.createVariable("lat", "f8", ("lat",))
        lat[:] = np.linspace(-81, 81, LATS)
        lat.units = "degrees_north"
        if dtype == "i2":
            how["fill_value"] = -999
            values = np.where(missing, -999, np.round((data - 273) * 100)).astype("i2")
        else:
            how["fill_value"] = np.asarray(1e20, dtype)
            values = np.where(missing, 1e20, data).astype(dtype)
        if chunks:
            how["chunksizes"] = chunks
        tos = file.createVariable("tos", dtype, ("time", "lat", "lon"), **how)
        tos.set_auto_maskandscale(False)
        tos[:] = values
        tos.units = "K"
        tos.long_name = "sea surface temperature"
        if dtype == "i2":
            tos.scale_factor, tos.add_offset = 0.01, 273.0
    return path


FILES = {
    "classic": {"format": "NETCDF3_CLASSIC"},
    "64-bit offsets": {"format": "NETCDF3_64BIT_OFFSET"},
    "64-bit data": {"format": "NETCDF3_64BIT_DATA", "dtype": "f8"},
    "netCDF-4": {"chunks": (3, 4, 5)},
    "compressed": {"chunks": (2, 10, 7), "zlib": True, "shuffle": True, "fletcher32": True},
    "packed": {"dtype": "i2", "chunks": (7, 3, 3), "zlib": True},
    "packed, classic": {"dtype": "i2", "format": "NETCDF3_CLASSIC"},
    "big-endian": {"endian": "big", "chunks": (4, 5, 6)},
}


@pytest.fixture(scope="module", params=FILES, ids=FILES)
def file(request, tmp_path_factory):
    return made(tmp_path_factory.mktemp("variables") / "tos.nc", **FILES[request.param])


def result(grist, path, op, *args, **params):
    """The array of an answer."""
    answer = grist.answer(op, path, "--var", "tos", *args, **params)["result"]
    return array(answer[op])


def array(said):
    kinds = {"f": "float", "i": "int", "u": "uint", "b": "bool"}
    dtype = kinds[said["type"][0]] + said["type"][1:].removeprefix("ool")
    return np.array(number(said["values"]), dtype).reshape(said["shape"])


OPS = ("count", "sum", "mean", "min", "max", "std", "var")
AXES = {"time": ("time",), "lat,lon": ("lat", "lon"), "1": ("lat",), None: ("time", "lat", "lon")}


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("op", OPS)
def test_what_xarray_says(grist, file, op, axes):
    with xr.open_dataset(file, decode_times=False) as opened:
        tos = opened.tos.load()
        theirs = getattr(tos, op)(dim=AXES[axes])
        # Their sums are rounded at every step; these nearly once.
        wide = getattr(tos.astype("f8"), op)(dim=AXES[axes]).values
    ours = result(grist, file, op, *(["--axes", axes] if axes else []))
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert (np.isnan(ours) == np.isnan(theirs.values)).all() if ours.dtype.kind == "f" else True
    if op in ("count", "min", "max"):
        np.testing.assert_array_equal(ours, theirs.values)
    else:
        tolerance = 1e-6 if ours.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(ours, wide, rtol=tolerance)


def test_selections_and_expressions(grist, file):
    with xr.open_dataset(file, decode_times=False) as opened:
        tos = opened.tos.load()
    ours = result(grist, file, "max", "--axes", "time", "--select", "lat=-30:30", "--isel", "lon=1:10:3")
    np.testing.assert_array_equal(ours, tos.sel(lat=slice(-30, 30)).isel(lon=slice(1, 10, 3)).max("time").values)
    ours = result(grist, file, "min", "--select", "time=45", "--axes", "lon")
    np.testing.assert_array_equal(ours, tos.sel(time=45).min("lon").values)
    ours = result(grist, file, "count", "--expr", "where(x > 285, x, nan)", "--axes", "lat,lon")
    np.testing.assert_array_equal(ours, tos.where(tos > 285).count(("lat", "lon")).values)
    kept = result(grist, file, "max", "--axes", "lat", keepdims="true")
    assert kept.shape == (TIMES, 1, LONS)


def test_answers_become_files(grist, file, tmp_path):
    grist.ok("run", "mean", file, "--var", "tos", "--axes", "time", "--select", "lat=-30:30", "--output", "mean.nc",
             cwd=tmp_path)
    grist.ok("run", "mean", file, "--var", "tos", "--axes", "time", "--select", "lat=-30:30", "--output", "mean.npy",
             cwd=tmp_path)
    plain = np.load(tmp_path / "mean.npy")
    with xr.open_dataset(file, decode_times=False) as opened, xr.open_dataset(tmp_path / "mean.nc") as ours:
        theirs = opened.tos.sel(lat=slice(-30, 30)).astype("f8").mean("time")
        assert ours.tos.dims == theirs.dims and ours.tos.attrs["units"] == "K"
        assert ours.tos.attrs["cell_methods"] == "time: mean"
        np.testing.assert_array_equal(ours.lat.values, theirs.lat.values)
        assert ours.lat.attrs["units"] == "degrees_north"
        np.testing.assert_array_equal(ours.tos.values, plain)
        np.testing.assert_allclose(plain, theirs.values, rtol=1e-6)
    grist.ok("run", "quantile", file, "--var", "tos", "--axes", "time", "--param", "q=0.1,0.5", "--output", "q.nc",
             cwd=tmp_path)
    with xr.open_dataset(file, decode_times=False) as opened, xr.open_dataset(tmp_path / "q.nc") as ours:
        theirs = opened.tos.astype("f8").quantile([0.1, 0.5], "time")
        np.testing.assert_allclose(ours.tos.values, theirs.values, rtol=1e-6)


def test_moments_and_histograms(grist, file):
    with xr.open_dataset(file, decode_times=False) as opened:
        tos = opened.tos.load().astype("f8")
    said = grist.answer("moments", file, "--var", "tos", "--axes", "time,lat,lon")["result"]
    assert array(said["n"]) == tos.count() and array(said["max"]) == tos.max()
    np.testing.assert_allclose(array(said["m2"]), float(((tos - tos.mean()) ** 2).sum()), rtol=1e-9)
    ours = result(grist, file, "histogram", bins=8, low=250, high=310)
    np.testing.assert_array_equal(ours, np.histogram(tos.values, 8, (250, 310))[0])


def test_any_number_of_lanes_gives_the_same_bits(grist, file):
    answers = [
        json.loads(grist.ok("run", "mean", file, "--var", "tos", "--axes", "lat", "--json", "--lanes", lanes))["result"]
        for lanes in (1, 2, 3)
    ]
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(
    "args, word",
    [
        (["mean", "FILE", "--var", "sst"], "tos"),
        (["mean", "FILE", "--var", "tos", "--axes", "depth"], "time, lat, lon"),
        (["mean", "FILE", "--var", "tos", "--axes", "time,time"], "twice"),
        (["blur", "FILE", "--var", "tos"], "quantile"),
        (["mean", "FILE", "--var", "tos", "--select", "lon=0:5"], "--isel lon"),
        (["mean", "FILE", "--var", "tos", "--select", "lat=7"], "lat=LOW:HIGH"),
        (["mean", "FILE", "--var", "tos", "--select", "lat"], "lat=-30:30"),
        (["mean", "FILE", "--var", "tos", "--isel", "time=99"], "99"),
        (["mean", "FILE", "--var", "tos", "--expr", "x +"], "character 4"),
        (["mean", "FILE", "--var", "tos", "--type", "f32"], "--type"),
        (["mean", "FILE", "--var", "tos", "--output", "mean.txt"], ".nc"),
        (["quantile", "FILE", "--var", "tos"], "q="),
        (["mean", "FILE", "--var", "tos", "--param", "ddoff=1"], "ddof"),
        (["mean", "FILE", "--axes", "time"], "--var"),
    ],
)
def test_what_makes_no_sense_is_said(grist, file, args, word):
    assert word in grist.refuses(2, "run", *[file if arg == "FILE" else arg for arg in args])


def test_a_file_that_is_cut_is_no_answer(grist, tmp_path):
    path = made(tmp_path / "whole.nc", chunks=(3, 4, 5))
    whole = path.read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) * 2 // 3])
    assert grist("run", "mean", tmp_path / "cut.nc", "--var", "tos").returncode == 1


@pytest.mark.skipif(not TOS.exists(), reason=f"{TOS} is not there")
def test_the_real_file(grist):
    with xr.open_dataset(TOS, decode_times=False) as opened:
        tos = opened.tos.load()
    ours = result(grist, TOS, "mean", "--axes", "time")
    assert (np.isnan(ours) == np.isnan(tos.mean("time").values)).all()
    np.testing.assert_allclose(ours, tos.astype("f8").mean("time").values, rtol=1e-7)
    values = tos.values[~np.isnan(tos.values)].astype("f8")
    mean = result(grist, TOS, "mean")
    assert mean == np.float32(math.fsum(values) / len(values))
    assert result(grist, TOS, "count") == len(values)
