"""`gristmill run OP grist://... --var NAME`: the nodes reduce, and the answer is that of the local file, bit for bit."""

import json

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from conftest import one_message
from test_run_variables import FILES, made, result

NODES = 3
STRIPE = {"classic": 4096, "netCDF-4": 1000, "packed": 64 << 10}

QUESTIONS = {
    "mean of all": ("mean", ()),
    "mean over time": ("mean", ("--axes", "time")),
    "variances of a part": ("var", ("--axes", "lat,lon", "--select", "lat=-30:60", "--isel", "lon=1:11:3")),
    "largest": ("max", ("--axes", "lon")),
    "where": ("sum", ("--expr", "where(x > 285, x - 285, nan)", "--axes", "time")),
    "one time": ("std", ("--isel", "time=2", "--axes", "lat")),
    "medians": ("median", ("--axes", "time")),
    "quantiles": ("quantile", ("--param", "q=0.1,0.5,0.99")),
    "moments": ("moments", ("--axes", "lat,lon")),
    "a histogram": ("histogram", ("--param", "bins=7", "--param", "low=250", "--param", "high=320")),
}


@pytest.fixture(scope="module")
def nodes(clusters):
    from cluster import Up

    return clusters(Up, nodes=NODES)


@pytest.fixture(scope="module", params=FILES, ids=FILES)
def both(request, nodes, tmp_path_factory):
    """A local file, and the same file on storage nodes."""
    path = made(tmp_path_factory.mktemp("variables") / "tos.nc", **FILES[request.param])
    name = f"/{request.param.replace(' ', '-').replace(',', '')}.nc"
    nodes.put(name, path.read_bytes(), "--stripe", STRIPE.get(request.param, 16 << 10))
    return path, nodes.url(name)


def asked(grist, path, op, *args):
    return grist.answer(op, path, "--var", "tos", *args)


@pytest.mark.parametrize("place", ["storage", "client", "auto"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_nodes_give_the_same_bits(grist, both, question, place):
    path, url = both
    op, args = QUESTIONS[question]
    here = asked(grist, path, op, *args)
    there = asked(grist, url, op, *args, "--place", place)
    assert there["result"] == here["result"]
    assert there["numerics"] == here["numerics"]
    if place == "storage":
        assert {one["place"] for one in there["report"]["places"]} == {"storage"}


def test_little_travels(grist, nodes, tmp_path):
    data = np.random.default_rng(1).normal(size=(64, 128, 128)).astype("f4")
    path = tmp_path / "big.nc"
    xr.Dataset({"tos": (("time", "lat", "lon"), data)}).to_netcdf(path, engine="netcdf4", encoding={
        "tos": {"chunksizes": (8, 64, 64)},
    })
    nodes.put("/big.nc", path.read_bytes(), "--stripe", 1 << 20)
    report = asked(grist, nodes.url("/big.nc"), "mean", "--axes", "lat,lon", "--place", "storage")["report"]
    assert report["bytes_read"] == data.nbytes
    assert 0 < report["bytes_to_client"] < data.nbytes / 100, report
    assert report["rounds"] == 1


def test_answers_become_files(grist, nodes, both, tmp_path):
    path, url = both
    for source, to in ((path, "here.nc"), (url, "there.nc")):
        grist.ok("run", "mean", source, "--var", "tos", "--axes", "time", "--output", tmp_path / to)
    with xr.open_dataset(tmp_path / "here.nc") as here, xr.open_dataset(tmp_path / "there.nc") as there:
        # Each file names the command that made it.
        assert str(path) in here.attrs.pop("history") and url in there.attrs.pop("history")
        xr.testing.assert_identical(here, there)


def test_answers_become_files_of_the_cluster(grist, nodes, both, tmp_path):
    path, url = both
    for source in (path, url):
        grist.ok("run", "mean", source, "--var", "tos", "--axes", "time", "--output", nodes.url("/mean.nc"))
        grist.ok("run", "mean", source, "--var", "tos", "--axes", "time", "--output", tmp_path / "mean.nc")
        grist.ok("get", nodes.url("/mean.nc"), tmp_path / "back.nc")
        with xr.open_dataset(tmp_path / "mean.nc") as here, xr.open_dataset(tmp_path / "back.nc") as there:
            assert here.attrs.pop("history") != there.attrs.pop("history")
            xr.testing.assert_identical(here, there)
    said = grist.refuses(2, "run", "mean", url, "--var", "tos", "--axes", "time", "--output", url)
    assert "name another file" in said
    said = grist.refuses(2, "run", "mean", url, "--var", "tos", "--axes", "time", "--output", nodes.url("/mean.txt"))
    assert ".nc or .npy" in said


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_folders(grist, nodes, tmp_path, version):
    rng = np.random.default_rng(2)
    data = rng.normal(size=(20, 30, 40)).astype("f4")
    data[rng.random(data.shape) < 0.2] = np.nan
    data[:, 8:16, 10:20] = np.nan
    shards = {} if version == 2 else {"shards": (8, 16, 20)}
    group = zarr.open_group(tmp_path / "store.zarr", mode="w", zarr_format=version)
    inner = group.create_group("ocean")
    # Blocks with only missing elements are not stored.
    made = inner.create_array("tos", shape=data.shape, chunks=(4, 8, 10), dtype="f4", fill_value=np.nan, **shards)
    made[:] = data
    grist.ok("put", tmp_path / "store.zarr", nodes.url(f"/v{version}.zarr"))
    url = nodes.url(f"/v{version}.zarr")
    opened = xr.DataArray(data, dims=("a", "b", "c"))
    for axes, dims in (("0", ("a",)), ("1,2", ("b", "c")), ("0,1,2", None)):
        args = ("--var", "ocean/tos", "--axes", axes)
        here = grist.answer("max", tmp_path / "store.zarr", *args)["result"]
        assert here == grist.answer("max", url, *args, "--place", "storage")["result"]
        assert here == grist.answer("max", url, *args, "--place", "client")["result"]
        ours = np.array([float(x) for x in here["max"]["values"]], "f4").reshape(here["max"]["shape"])
        np.testing.assert_array_equal(ours, opened.max(dims).values)
    # The request needs few of many files, or none.
    args = ("--var", "ocean/tos", "--isel", "0=3", "--isel", "1=25:29", "--axes", "2")
    for place in ("storage", "client"):
        there = grist.answer("mean", url, *args, "--place", place)["result"]
        assert there == grist.answer("mean", tmp_path / "store.zarr", *args)["result"]


def test_an_array_of_which_nothing_is_stored(grist, nodes, tmp_path):
    zarr.open_group(tmp_path / "empty.zarr", mode="w").create_array(
        "x", shape=(10, 10), chunks=(3, 3), dtype="i4", fill_value=7
    )
    grist.ok("put", tmp_path / "empty.zarr", nodes.url("/empty.zarr"))
    for path in (tmp_path / "empty.zarr", nodes.url("/empty.zarr")):
        assert grist.answer("sum", path, "--var", "x")["result"]["sum"]["values"] == [700]


def test_a_folder_is_put_below_a_directory(grist, nodes, tmp_path):
    for name in ("a.txt", "deep/b.txt", "deep/er/c.txt"):
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_text(name)
    said = json.loads(grist.ok("put", tmp_path / "folder", nodes.url("/below/"), "--json"))
    assert (said["files"], said["path"]) == (3, nodes.url("/below/folder"))
    assert grist.ok("get", nodes.url("/below/folder/deep/er/c.txt"), "-") == b"deep/er/c.txt"


def test_a_file_that_was_replaced_is_not_mixed(grist, nodes, tmp_path):
    """The table of one state never meets the bytes of another, because the request names versions."""
    path = made(tmp_path / "tos.nc", chunks=(2, 5, 6))
    nodes.put("/replaced.nc", path.read_bytes())
    first = result(grist, nodes.url("/replaced.nc"), "mean")
    with netCDF4.Dataset(path, "a") as file:
        file["tos"][:] = 1.5
    nodes.put("/replaced.nc", path.read_bytes())
    assert result(grist, nodes.url("/replaced.nc"), "mean") == np.float32(1.5) != first


def test_what_is_wrong_is_said(grist, nodes, tmp_path):
    path = made(tmp_path / "tos.nc", chunks=(2, 5, 6), zlib=True)
    data = bytearray(path.read_bytes())
    with netCDF4.Dataset(path) as file:
        assert file["tos"].chunking() == [2, 5, 6]
    table = json.loads(grist.ok("stat", path, "--var", "tos", "--chunks", "--json"))["variables"][0]["table"]
    chunk = next(one for one in table if "offset" in one)
    data[chunk["offset"] : chunk["offset"] + 8] = b"\xff" * 8
    nodes.put("/damaged.nc", bytes(data))
    url = nodes.url("/damaged.nc")
    for place in ("storage", "client", "auto"):
        message = grist.refuses(1, "run", "mean", url, "--var", "tos", "--place", place)
        assert "chunk 0" in message, message
    assert "sst" in grist.refuses(2, "run", "mean", url, "--var", "sst")
    assert "nothing at /none.nc" in grist.refuses(2, "run", "mean", nodes.url("/none.nc"), "--var", "tos")
    done = grist("run", "mean", url, "--var", "tos", "--checkpoint", tmp_path / "c")
    assert done.returncode == 2 and "--checkpoint" in one_message(done.stderr)


def test_a_coordinate_far_behind_is_read_after_the_answer(grist, nodes, tmp_path):
    """After its reduction a request may read more of the file. It must read the same version as before."""
    path = tmp_path / "behind.nc"
    data = np.random.default_rng(4).normal(size=(200, 200))
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("t", 200)
        file.createDimension("x", 200)
        # The coordinate lies behind 320,000 bytes of data. Blocks of 64 KiB are kept in memory.
        a, x = file.createVariable("a", "f8", ("t", "x")), file.createVariable("x", "f8", ("x",))
        a[:], x[:] = data, np.arange(200.0) / 3
    nodes.put("/behind.nc", path.read_bytes())
    for place in ("storage", "client", "auto"):
        to = tmp_path / f"{place}.nc"
        grist.ok("run", "mean", nodes.url("/behind.nc"), "--var", "a", "--axes", "t", "--place", place, "--output", to)
        with xr.open_dataset(to) as ours, xr.open_dataset(path) as theirs:
            np.testing.assert_array_equal(ours.x, theirs.x)
            np.testing.assert_allclose(ours.a, theirs.a.mean("t"), rtol=0, atol=1e-15)
