"""The first things that people try with `gristmill run`: no variable, dates, the variable's own name, NumPy's types, options for
parameters."""

import json
import os
import pty
import subprocess

import netCDF4
import numpy as np
import pytest
import xarray as xr

from conftest import binary, number

DAYS = 24


@pytest.fixture(scope="module")
def ocean(tmp_path_factory):
    """A year of temperatures with bounds, and with every attribute that is kept."""
    path = tmp_path_factory.mktemp("ocean") / "tos.nc"
    rng = np.random.default_rng(11)
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        for name, length in (("time", DAYS), ("lat", 4), ("lon", 5), ("bnds", 2)):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",))
        time[:], time.units, time.bounds = np.arange(DAYS) * 15 + 0.5, "days since 2001-01-01", "time_bnds"
        file.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = 0
        file.createVariable("lat", "f8", ("lat",))[:] = [-60, -20, 20, 60]
        tos = file.createVariable("tos", "f4", ("time", "lat", "lon"))
        tos[:] = rng.normal(285, 8, (DAYS, 4, 5))
        tos.units, tos.cell_methods = "K", "time: point"
        file.title, file.realization, file.history = "An ocean", np.int32(3), "2001-01-01: made"
    return path


def values(said):
    return np.reshape(np.array(number(said["values"]), "f8"), said["shape"])


def test_the_only_variable_with_data_is_taken(grist, ocean):
    with xr.open_dataset(ocean) as opened:
        wanted = opened.tos.astype("f8").mean(("lat", "lon"))
    said = grist.answer("mean", ocean, "--axes", "lat,lon")["result"]
    np.testing.assert_allclose(values(said["mean"]), wanted, rtol=1e-6)
    done = grist("run", "max", ocean)
    assert done.returncode == 0 and b"variable tos" in done.stderr and done.stdout.startswith(b"max")


def test_several_variables_are_listed(grist, tmp_path, ocean):
    with xr.open_dataset(ocean, decode_times=False) as opened:
        opened.assign(sos=opened.tos + 1).to_netcdf(tmp_path / "two.nc")
    message = grist.refuses(2, "run", "mean", tmp_path / "two.nc")
    assert "--var: tos, sos" in message and "--type" not in message
    xr.Dataset({"name": ("x", ["a", "b"])}).to_netcdf(tmp_path / "text.nc")
    assert "numbers" in grist.refuses(2, "run", "mean", tmp_path / "text.nc")
    (tmp_path / "plain.f64").write_bytes(b"\0" * 16)
    assert "--var" in grist.refuses(2, "run", "mean", tmp_path / "plain.f64", "--axes", "time")
    # A type makes the file plain bytes, whatever its name is. A note says so, because few people want this.
    done = grist("run", "count", ocean, "--type", "u8", "--json")
    assert json.loads(done.stdout)["result"]["count"] == ocean.stat().st_size
    assert b"note: " in done.stderr and b"--var" in done.stderr
    assert b"note: " not in grist("run", "count", tmp_path / "plain.f64", "--type", "f64").stderr
    assert b"note: " not in grist("run", "count", ocean, "--type", "u8", "--skip", "8").stderr


def test_numbers_that_are_read_as_lines_are_said(grist, tmp_path):
    for name, code in (("data.f64", "f64"), ("data.i2", "i16"), ("data.uint8", "u8")):
        (tmp_path / name).write_bytes(bytes(80))
        done = grist("run", "count", name, "--json")
        assert json.loads(done.stdout)["result"]["count"] == 1
        assert f"note: {name} is read as lines".encode() in done.stderr and f"--type {code} ".encode() in done.stderr
    (tmp_path / "data.log").write_bytes(bytes(80))
    pattern = ("grep", "data.f64", "--pattern", "x")
    for asked in (("count", "data.log"), ("count", "data.f64", "--record", "8"), ("wc", "data.f64"), pattern):
        assert b"note: " not in grist("run", *asked).stderr, asked


DATES = [
    ("2001-03", "2001-03"),
    ("2001", "2001"),
    ("2001-01-16", "2001-01-16"),
    ("2001-01:2001-06", slice("2001-01", "2001-06")),
    ("2001-05:", slice("2001-05", None)),
    (":2001-02-15", slice(None, "2001-02-15")),
    ("2001-01-16T12:2001-03-02T11:59", slice("2001-01-16T12", "2001-03-02T11:59")),
    ("2001:2001", slice("2001", "2001")),
]


@pytest.mark.parametrize("said, wanted", DATES)
@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
def test_dates_as_far_as_they_are_written(grist, ocean, tmp_path, said, wanted, calendar):
    with xr.open_dataset(ocean, decode_times=False) as opened:
        opened.time.attrs["calendar"] = calendar
        opened.to_netcdf(tmp_path / "dates.nc")
    with xr.open_dataset(tmp_path / "dates.nc") as opened:
        theirs = opened.tos.sel(time=wanted).load()
    ours = grist.answer("max", tmp_path / "dates.nc", "--select", f"time={said}", "--axes", "lat,lon")["result"]["max"]
    np.testing.assert_array_equal(values(ours), theirs.max(("lat", "lon")))


def test_one_time_is_one_element(grist, ocean):
    with xr.open_dataset(ocean) as opened:
        theirs = opened.tos.sel(time="2001-01-16T12:00").load()
    ours = grist.answer("max", ocean, "--select", "time=2001-01-16T12:00", "--axes", "lat")["result"]
    assert ours["dimensions"] == ["lon"]
    np.testing.assert_array_equal(values(ours["max"]), theirs.max("lat"))
    # Numbers still work.
    same = grist.answer("max", ocean, "--select", "time=15.5", "--axes", "lat")["result"]
    assert same["max"] == ours["max"]


@pytest.mark.parametrize(
    "select, word",
    [
        ("time=2001-13", "no such date"),
        ("time=2005-01", "2001-01-01T12:00:00"),
        ("time=2001-06:2001-01", "lower end"),
        ("lat=2001-01", "days since"),
        ("time=then", "nor a date"),
        ("time=2001-01-16T13:00", "no element"),
    ],
)
def test_dates_that_make_no_sense(grist, ocean, select, word):
    assert word in grist.refuses(2, "run", "max", ocean, "--select", select)


def test_an_expression_names_the_variable(grist, ocean):
    plain = grist.answer("mean", ocean, "--expr", "where(x > 285, x - 273.15, nan)")["result"]
    assert grist.answer("mean", ocean, "--expr", "where(tos > 285, tos - 273.15, nan)")["result"] == plain
    both = grist.answer("mean", ocean, "--expr", "where(tos > 285, x - 273.15, nan)")["result"]
    assert both == plain
    # An input with this name takes precedence.
    other = grist.answer("max", ocean, "--with", "tos=tos", "--expr", "tos - x")["result"]
    assert other["max"]["values"] == [0]


def test_types_have_the_names_of_numpy(grist, tmp_path):
    for name in ("float64", "f8", "<f8", ">f4", "int32", "i4", "uint16", "|u1", "<i8"):
        data = np.arange(10, 60).astype(name)
        path = tmp_path / "data.bin"
        data.tofile(path)
        assert grist.ask("sum", path, "--type", name)["sum"] == data.sum(), name
    # This is eight bits here.
    assert grist.ask("count", path, "--type", "i8")["count"] == 400
    assert "float64" in grist.refuses(2, "run", "sum", path, "--type", "double")
    assert "--big-endian" in grist.refuses(2, "run", "sum", path, "--type", "<f4", "--big-endian")


def test_parameters_are_options(grist, tmp_path, ocean):
    data = np.random.default_rng(2).normal(size=1000)
    path = tmp_path / "data.f64"
    data.tofile(path)
    typed = ("--type", "f64")
    assert grist.ask("quantile", path, *typed, "-q", "0.25") == grist.ask("quantile", path, *typed, q="0.25")
    assert grist.ask("lookup", path, *typed, "--where", "> 1", "--count-only")["count"] == (data > 1).sum()
    assert grist.ask("histogram", path, *typed, "--bins", "4")["counts"] == np.histogram(data, 4)[0].tolist()
    assert grist.ask("var", path, *typed, "--ddof", "1") == grist.ask("var", path, *typed, ddof="1")
    (tmp_path / "text").write_text("one\ntwo\n-x\n")
    assert grist.ok("run", "grep", tmp_path / "text", "--pattern", "-x") == b"8:-x\n"
    with xr.open_dataset(ocean) as opened:
        wanted = np.quantile(opened.tos.values.astype("f8"), [0.1, 0.9])
    np.testing.assert_allclose(values(grist.answer("quantile", ocean, "-q", "0.1,0.9")["result"]["quantile"]), wanted, rtol=1e-6)
    assert "omit one" in grist.refuses(2, "run", "quantile", path, *typed, "-q", "0.5", "--param", "q=0.5")
    assert "-q" in grist.refuses(2, "run", "quantile", ocean)


def test_files_of_answers_say_where_they_come_from(grist, ocean, tmp_path):
    out = tmp_path / "mean.nc"
    grist.ok("run", "mean", ocean, "--axes", "time", "--select", "lat=-30:30", "--output", out)
    with xr.open_dataset(out) as ours:
        assert ours.attrs["title"] == "An ocean" and ours.attrs["realization"] == 3 and ours.attrs["Conventions"] == "CF-1.8"
        made, before = ours.attrs["history"].split("\n")
        assert before == "2001-01-01: made"
        assert made.endswith(f"Z: gristmill run mean {ocean} --axes time --select lat=-30:30 --output {out}")
        assert np.datetime64(made.split("Z: ")[0]) <= np.datetime64("now") + np.timedelta64(1, "m")
        assert ours.tos.attrs["cell_methods"] == "time: point time: mean"
    again = tmp_path / "again.nc"
    grist.ok("run", "max", out, "--axes", "lat", "--output", again)
    with xr.open_dataset(again) as ours:
        assert ours.tos.attrs["cell_methods"] == "time: point time: mean lat: maximum"
        assert len(ours.attrs["history"].split("\n")) == 3


def shown(*args):
    """The output that a terminal shows."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([binary(), *map(str, args)], stdout=theirs, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 1 << 16):
            parts.append(part)
    except OSError:
        pass  # the other end of the terminal is closed
    assert child.wait(60) == 0
    os.close(ours)
    return b"".join(parts).decode()


def test_a_terminal_shows_the_beginning_of_what_is_long(grist, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(300.0 * 200).reshape(300, 200))
    args = ("run", "max", tmp_path / "a.npy", "--isel", "0=0:300")
    for axes, most in (("0", 15), ("1", 15)):
        text = shown(*args, "--axes", axes)
        assert len(text.splitlines()) < most and "--output" in text and "--json" in text
        whole = grist.ok(*args, "--axes", axes).decode()
        assert "..." not in whole and len(whole.split()) >= (200 if axes == "0" else 300)
    np.save(tmp_path / "b.npy", np.arange(3.0 * 300 * 200).reshape(3, 300, 200))
    text = shown("run", "max", tmp_path / "b.npy", "--axes", "0")
    assert len(text.splitlines()) < 30 and "300x200" in text and "120000" in text
    assert "..." not in shown("run", "max", tmp_path / "b.npy")


def test_histograms_tell_their_edges(grist, ocean, tmp_path):
    with xr.open_dataset(ocean) as opened:
        tos = opened.tos.values
    said = grist.answer("histogram", ocean)["result"]
    counts, edges = np.histogram(tos, 10)
    assert said["histogram"]["values"] == counts.tolist() and said["dimensions"] == ["bin"]
    np.testing.assert_allclose(said["edges"], edges, rtol=1e-7)
    said = grist.answer("histogram", ocean, "--bins", "4", range="270:300")["result"]
    counts, edges = np.histogram(tos, 4, (270, 300))
    assert said["histogram"]["values"] == counts.tolist() and said["edges"] == edges.tolist()
    # The edges along one dimension are those of all elements.
    said = grist.answer("histogram", ocean, "--axes", "time", "--bins", "3")["result"]
    counts, edges = np.histogram(tos, 3)
    assert said["histogram"]["shape"] == [4, 5, 3] and values(said["histogram"]).sum((0, 1)).tolist() == counts.tolist()
    text = grist.ok("run", "histogram", ocean, "--bins", "2").decode()
    assert "edges" in text and text.index("histogram") < text.index("edges")
    done = grist("run", "histogram", ocean, "--bins", "5", "--output", tmp_path / "h.nc")
    assert done.returncode == 0 and b"bin 5" in done.stderr and b"one number" not in done.stderr
    np.save(tmp_path / "large.npy", np.array([2**62 + 1, 2**62 + 1025], "i8"))
    assert grist.answer("histogram", tmp_path / "large.npy", "--bins", "1")["result"]["histogram"]["values"] == [2]
    np.save(tmp_path / "nan.npy", np.full(3, np.nan))
    assert "range=" in grist.refuses(2, "run", "histogram", tmp_path / "nan.npy")
    np.save(tmp_path / "same.npy", np.full(3, 5.0))
    assert grist.answer("histogram", tmp_path / "same.npy")["result"]["edges"] == np.histogram([5.0])[1].tolist()


def test_operations_and_words_are_explained(grist):
    listed = grist.ok("kernels").decode()
    for name in ("totals", "moments", "argmax", "histogram", "binned"):
        assert name in listed
    assert "sum" in grist.ok("kernels", "totals").decode()
    assert json.loads(grist.ok("kernels", "moments", "--json"))["params"]
    assert "2^-80" in grist.ok("kernels", "binned").decode()
    both = grist.ok("kernels", "quantile").decode()
    assert "lines" not in both.split("\n")[0] and "of a variable" in both
    assert "nosuch" in grist.refuses(2, "kernels", "nosuch")


def test_what_was_rounded_is_said(grist, tmp_path):
    data = np.random.default_rng(3).uniform(0, 1e4, 30_000).astype("f4")
    np.save(tmp_path / "f4.npy", data)
    np.save(tmp_path / "f8.npy", data.astype("f8"))
    assert b"exact, rounded to f32" in grist("run", "sum", tmp_path / "f4.npy").stderr
    done = grist("run", "sum", tmp_path / "f8.npy")
    assert done.stderr.rstrip().endswith(b"exact")
    assert b"exact, rounded to f32" in grist("run", "moments", tmp_path / "f4.npy").stderr
    for kernel, rounded in (("sum", "f32"), ("moments", "f32"), ("totals", None), ("max", None)):
        assert grist.answer(kernel, tmp_path / "f4.npy").get("rounded") == rounded
    totals = grist.answer("totals", tmp_path / "f4.npy")["result"]["sum"]
    assert totals["type"] == "f64" and totals["values"] == [float(np.sum(data.astype("f8")))]
    np.save(tmp_path / "grid.npy", data.reshape(100, 300).astype("f8"))
    assert b"binned ('gristmill kernels binned'" in grist("run", "sum", tmp_path / "grid.npy", "--axes", "0").stderr


def test_an_answer_does_not_take_the_place_of_its_file(grist, tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(12.0).reshape(3, 4))
    (tmp_path / "link.npy").symlink_to(path)
    before = path.read_bytes()
    for output in (path, tmp_path / "link.npy"):
        assert "--output names the input file" in grist.refuses(2, "run", "mean", path, "--axes", "0", "--output", output)
    assert path.read_bytes() == before
