"""`gristmill run OP FILE --var NAME`: variables of netCDF and HDF5 files, compared with xarray and exact sums."""

import json
import math

import h5py
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
        # xarray rounds its sums at every step. In f8 they are nearly rounded once.
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


def test_what_is_said_of_an_answer_is_true_of_it(grist, file, tmp_path):
    def made(*args):
        grist.ok("run", *args[:1], file, "--var", "tos", *args[1:], "--output", "out.nc", cwd=tmp_path)
        with xr.open_dataset(tmp_path / "out.nc", decode_times=False) as answer:
            return answer.load()

    celsius = made("mean", "--axes", "time", "--expr", "x - 273.15")
    assert "units" not in celsius.tos.attrs and "x - 273.15" in celsius.tos.attrs["comment"]
    row = made("mean", "--axes", "time", "--isel", "lat=3")
    assert row.tos.attrs["cell_methods"] == "time: mean" and row.tos.dims == ("lon",)
    shares = made("quantile", "--axes", "time", "--param", "q=0.1,0.5")
    assert shares.tos.dims == ("quantile", "lat", "lon") and shares["quantile"].values.tolist() == [0.1, 0.5]
    bins = made("histogram", "--axes", "time", "--param", "edges=0,280,300")
    assert bins.tos.dims == ("lat", "lon", "bin") and bins.bin_high.values.tolist() == [280, 300]
    said = grist.answer("quantile", file, "--var", "tos", "--axes", "time", q="0.1,0.5")["result"]
    assert said["dimensions"] == ["quantile", "lat", "lon"] and said["quantile"]["shape"] == [2, LATS, LONS]


def test_signs_that_an_attribute_turns(grist, tmp_path):
    with netCDF4.Dataset(tmp_path / "goes.nc", "w") as out:
        out.createDimension("x", 4)
        one = out.createVariable("v", "i1", ("x",), fill_value=-1)
        one.set_auto_maskandscale(False)
        one.setncattr("_Unsigned", "true")
        one.valid_range = np.array([0, -6], "i1")
        one[:] = np.array([-1, 1, 2, -3], "i1")
    ask = lambda *args, **params: grist.answer(*args, "--var", "v", **params)["result"]
    assert array(ask("mean", tmp_path / "goes.nc")["mean"]) == np.float32((1 + 2 + 253) / 3)
    assert array(ask("mean", tmp_path / "goes.nc", valid="true")["mean"]) == 1.5


def test_coordinates_of_f32_and_of_another_length(grist, tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as out:
        out["lat"] = np.array([0.1, 0.2, 0.3], "f4")
        out["d"] = np.arange(3.0)
        out["lat"].make_scale("lat")
        out["d"].dims[0].attach_scale(out["lat"])
        out["x"] = np.arange(5.0)
        out["x"].make_scale("x")
        out["e"] = np.arange(10.0)
        out["e"].dims[0].attach_scale(out["x"])
    ask = lambda name, *args: array(grist.answer("sum", tmp_path / "f.h5", "--var", name, *args)["result"]["sum"])
    assert ask("d", "--select", "lat=0.1:0.3") == 3
    assert ask("d", "--select", "lat=0.2") == 1
    assert "no coordinate" in grist.refuses(2, "run", "sum", tmp_path / "f.h5", "--var", "e", "--select", "x=0:4")


def test_a_file_that_says_it_has_any_number_of_chunks(grist, tmp_path):
    with h5py.File(tmp_path / "wide.h5", "w") as out:
        out.create_dataset("d", (2**40,), "u1", chunks=(1,))
    for select in ([], ["--isel", "d=0::1000"]):
        said = grist("run", "sum", tmp_path / "wide.h5", "--var", "d", *[s.replace("d=", "0=") for s in select])
        assert said.returncode in (1, 2) and b"chunks that are asked for" in said.stderr


def test_moments_and_histograms(grist, file):
    with xr.open_dataset(file, decode_times=False) as opened:
        tos = opened.tos.load().astype("f8")
    said = grist.answer("moments", file, "--var", "tos", "--axes", "time,lat,lon")["result"]
    assert array(said["n"]) == tos.count() and array(said["max"]) == tos.max()
    np.testing.assert_allclose(array(said["m2"]), float(((tos - tos.mean()) ** 2).sum()), rtol=1e-9)
    ours = result(grist, file, "histogram", bins=8, low=250, high=310)
    np.testing.assert_array_equal(ours, np.histogram(tos.values, 8, (250, 310))[0])


def test_medians_have_no_axis_of_shares(grist, file, tmp_path):
    with xr.open_dataset(file, decode_times=False) as opened:
        theirs = opened.tos.load().astype("f8").median("lat")
    np.testing.assert_allclose(result(grist, file, "median", "--axes", "lat"), theirs.values, rtol=1e-6)
    grist.ok("run", "median", file, "--var", "tos", "--axes", "lat", "--output", "median.nc", cwd=tmp_path)
    with xr.open_dataset(tmp_path / "median.nc", decode_times=False) as ours:
        assert ours.tos.dims == theirs.dims and ours.tos.attrs["cell_methods"] == "lat: median"


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
        (["mean", "FILE", "--var", "tos", "--isel", "time=99"], "index 99 is out of range for axis 0 (time) of length"),
        (["mean", "FILE", "--var", "tos", "--expr", "x +"], "character 4"),
        (["mean", "FILE", "--var", "tos", "--type", "f32"], "--type"),
        (["mean", "FILE", "--var", "tos", "--output", "mean.txt"], ".nc"),
        (["quantile", "FILE", "--var", "tos"], "q="),
        (["mean", "FILE", "--var", "tos", "--param", "ddoff=1"], "ddoff"),
        (["mean", "FILE", "--axes", "time", "--type", "f32"], "--var"),
        (["mean", "FILE", "--var", "tos", "--param", "q=0.9"], "no such parameter"),
        (["median", "FILE", "--var", "tos", "--param", "q=0.9"], "no such parameter"),
        (["sum", "FILE", "--var", "tos", "--param", "ddof=1"], "it takes min_count, keepdims, skipna, valid"),
        (["mean", "FILE", "--var", "tos", "--select", "lat=100:200"], "81"),
        (["mean", "FILE", "--var", "tos", "--select", "lat=30:-30"], "LOW:HIGH"),
        (["mean", "FILE", "--var", "tos", "--axes", "time", "--isel", "lon=5:5", "--output", "o.nc"], "lon"),
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
