"""Attached trees: files of mounts, buckets and web servers under paths of a cluster."""

import json
import math
import os
import subprocess
import time

import attached
import netCDF4
import numpy as np
import pytest
from cluster import Up

import gristmill as gm

KINDS = ["mount", "s3", "nginx"]
NODES = 3


@pytest.fixture(scope="module", params=KINDS)
def tree(request, clusters, tmp_path_factory):
    """A tree that is attached as /t of a cluster of its own, whose users are all administrators."""
    tree = attached.made(request.param, tmp_path_factory)
    try:
        tree.up = clusters(Up, nodes=NODES, args=("--admin", "anonymous"), env=tree.env)
        tree.kind = request.param
        tree.said = tree.up.grist.ok("attach", tree.source, tree.up.url("/t"), *tree.options).decode()
        yield tree
    finally:
        tree.end()


@pytest.fixture(scope="module")
def numbers(tree):
    # Some stripes of 8 MiB, and a part of one. The server of S3 reads a whole object for each request.
    count = 2_199_999 if tree.kind == "s3" else 5_499_999
    random = np.random.default_rng(5)
    return random.normal(size=count) * 10.0 ** random.integers(-9, 9, count)


@pytest.fixture(scope="module")
def temperatures(tmp_path_factory):
    """The same variable as netCDF-4 whose chunks cross stripes, and as Zarr of both versions."""
    folder = tmp_path_factory.mktemp("made")
    return folder, attached.made_temperatures(folder)


def test_what_attach_and_ls_say(tree):
    assert tree.source in tree.said and " is attached as /t, " in tree.said and "0, 1, 2" in tree.said
    tree.put("said/x.f64", b"12345678")
    up = tree.up
    shown = json.loads(up.grist.ok("attach", "--list", up.url(), "--json"))["trees"]
    assert [(one["path"], one["targets"], one["failed"]) for one in shown] == [("/t", [0, 1, 2], None)]
    assert f"/t  {shown[0]['url']}\n  owner anonymous, mode 444" in up.grist.ok("attach", "--list", up.url()).decode()
    assert up.grist.ok("ls", up.url("/")).decode() == "t/\n"
    assert up.grist.ok("ls", up.url("/t/said")).decode() == "x.f64\n"
    about = up.stat("/t/said/x.f64")
    assert (about["length"], about["mode"], about["created"]) == (8, "444", None)
    assert about["attached"].endswith("/said/x.f64") and len(about["targets"]) == 1
    assert "each node reads it there" in up.grist.ok("stat", up.url("/t/said/x.f64")).decode()
    assert "a directory with 1 file," in up.grist.ok("stat", up.url("/t/said")).decode()
    assert up.grist.ok("du", up.url("/t/said")).decode().split()[:4] == ["8", "B", "1", "file"]


def test_nodes_read_from_the_server_that_is_nearest(clusters, tmp_path_factory):
    tree = attached.made("s3", tmp_path_factory)
    try:
        near = tree.client.meta.endpoint_url
        # There is no such host, so whatever is read comes from the nearer one.
        far = "http://store.invalid:9000"
        args = ("--admin", "anonymous", "--nearest-endpoint", f"{far}={near}")
        up = clusters(Up, nodes=2, args=args, env=tree.env)
        tree.put("x.u8", bytes(range(200)))
        up.grist.ok("attach", tree.source, up.url("/t"), "--endpoint", far)
        assert up.grist.ask("sum", up.url("/t/x.u8"), "--type", "u8", "--place", "storage")["sum"] == sum(range(200))
        assert up.grist.ok("get", up.url("/t/x.u8"), "-") == bytes(range(200))
        assert json.loads(up.grist.ok("attach", "--list", up.url(), "--json"))["trees"][0]["endpoint"] == far
    finally:
        tree.end()


def test_kernels_have_the_bits_of_a_local_file(tree, numbers, tmp_path):
    numbers.tofile(tmp_path / "x.f64")
    tree.put("plain/x.f64", numbers.tobytes())
    up = tree.up
    assert len(up.stat("/t/plain/x.f64")["targets"]) == NODES
    for kernel, *given in [
        ("sum",),
        ("minmax",),
        ("quantile", "q=0.1,0.5"),
        ("histogram", "bins=9"),
        ("top", "k=5"),
        ("kmeans", "dims=3", "k=3", "max_iter=3"),
    ]:
        if kernel == "kmeans":
            given.append("init=first")
        given = ["--type", "f64", *(word for one in given for word in ("--param", one))]
        local = up.grist.answer(kernel, tmp_path / "x.f64", *given)
        for place in ("storage", "client", "auto"):
            got = up.grist.answer(kernel, up.url("/t/plain/x.f64"), *given, "--place", place)
            assert got["result"] == local["result"], (kernel, place)
            if place == "storage" and kernel == "sum":
                assert got["report"]["bytes_moved"] == 0, got["report"]
    assert up.grist.ask("sum", up.url("/t/plain/x.f64"), "--type", "f64")["sum"] == math.fsum(numbers)


def test_lines_over_the_edges_of_stripes(tree, tmp_path):
    lines = [f"{n} {'x' * (n * 7919 % 300)} {n * 7919 % 1000}" for n in range(120_000)]
    text = "\n".join(lines).encode()
    assert len(text) > 16 << 20
    (tmp_path / "lines.txt").write_bytes(text)
    tree.put("plain/lines.txt", text)
    wanted = tree.up.grist.ok("run", "grep", tmp_path / "lines.txt", "--pattern", "x 99.$")
    assert wanted.count(b"\n") > 1000
    for place in ("storage", "client", "auto"):
        got = tree.up.grist.ok("run", "grep", tree.up.url("/t/plain/lines.txt"), "--pattern", "x 99.$", "--place", place)
        assert got == wanted, place
    done = tree.up.grist("run", "wc", tree.up.url("/t/plain/lines.txt"), "--place", "storage")
    assert b" 0 B between targets" in done.stderr, done.stderr


def test_images_over_the_edges_of_stripes(tree, tmp_path):
    image = np.random.default_rng(3).integers(0, 255, (4100, 4500), dtype="u1")
    image.tofile(tmp_path / "image.u8")
    tree.put("plain/image.u8", image.tobytes())
    up, blur = tree.up, ("--type", "u8", "--param", "shape=4100,4500", "--param", "sigma=1.5")
    up.grist.ok("run", "gaussian", tmp_path / "image.u8", *blur, "--output", tmp_path / "local")
    wanted = (tmp_path / "local").read_bytes()
    to_nodes = ("--place", "storage", "--json", "--output", up.url("/blurred"))
    done = up.grist("run", "gaussian", up.url("/t/plain/image.u8"), *blur, *to_nodes)
    report = json.loads(done.stdout)["report"]
    assert report["bytes_to_client"] < 5_000 and report["bytes_moved"] == 0, report
    assert up.get("/blurred") == wanted
    up.grist.ok("run", "gaussian", up.url("/t/plain/image.u8"), *blur, "--place", "client", "--output", tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == wanted


def test_variables_of_a_netcdf_file(tree, temperatures):
    folder, values = temperatures
    tree.put("nc/t.nc", (folder / "t.nc").read_bytes())
    url = tree.up.url("/t/nc/t.nc")
    for op, axes in [("mean", "t"), ("max", "y,x"), ("std", "t,y,x"), ("median", "t")]:
        one = tree.up.grist.answer(op, folder / "t.nc", "--var", "t", "--axes", axes)
        for place in ("storage", "client"):
            other = tree.up.grist.answer(op, url, "--var", "t", "--axes", axes, "--place", place)
            assert one["result"] == other["result"], (op, place)
    shown = json.loads(tree.up.grist.ok("stat", url, "--var", "t", "--json"))["variables"][0]
    assert shown["name"] == "t"


def test_chunks_are_read_once_and_then_known_from_their_statistics(tree, temperatures):
    folder, values = temperatures
    tree.put("known/t.nc", (folder / "t.nc").read_bytes())
    url = tree.up.url("/t/known/t.nc")
    first = tree.up.grist("run", "max", url, "--var", "t", "--axes", "t,y,x", "--place", "storage")
    second = tree.up.grist("run", "max", url, "--var", "t", "--axes", "t,y,x", "--place", "storage")
    assert first.stdout == second.stdout and b"known from their statistics" in second.stderr
    changed = values.copy()
    changed[0, 0, 0] = 9999
    with netCDF4.Dataset(folder / "changed.nc", "w") as file:
        for name, length in zip("tyx", values.shape, strict=True):
            file.createDimension(name, length)
        file.createVariable("t", "f4", tuple("tyx"), chunksizes=(5, 170, 400))[:] = changed
    tree.put("known/t.nc", (folder / "changed.nc").read_bytes())
    assert tree.up.grist.ask("max", url, "--var", "t", "--axes", "t,y,x")["max"]["values"] == [9999]


@pytest.mark.parametrize("version", [2, 3])
def test_variables_of_a_zarr_folder(tree, temperatures, version):
    folder, values = temperatures
    tree.put_folder(folder / f"t{version}.zarr", f"zarr{version}/t.zarr")
    url = tree.up.url(f"/t/zarr{version}/t.zarr")
    for op, axes in [("mean", "0"), ("min", "0,1,2")]:
        one = tree.up.grist.answer(op, folder / f"t{version}.zarr", "--var", "t", "--axes", axes)
        for place in ("storage", "client"):
            other = tree.up.grist.answer(op, url, "--var", "t", "--axes", axes, "--place", place)
            assert one["result"] == other["result"]
    assert "a directory with" in tree.up.grist.ok("stat", url).decode()


def test_holes_in_a_zarr_folder(tree, temperatures):
    folder, values = temperatures
    tree.put_folder(folder / "t3.zarr", "holes/t.zarr")
    tree.remove("holes/t.zarr/t/c/0/0/0")
    url = tree.up.url("/t/holes/t.zarr")
    if tree.kind == "nginx":
        # Its pages may leave names out.
        assert "of its" in tree.up.grist.refuses(1, "run", "min", url, "--var", "t", "--axes", "0,1,2")
        return
    assert tree.up.grist.ask("min", url, "--var", "t", "--axes", "0,1,2")["min"]["values"] == [0]
    tree.put("holes/t.zarr/t/c/1/0/0", b"short")
    assert "chunk" in tree.up.grist.refuses(1, "run", "min", url, "--var", "t", "--axes", "0,1,2")


def test_copies_are_the_file(tree, numbers, tmp_path):
    tree.put("copies/x.f64", numbers.tobytes())
    url = tree.up.url("/t/copies/x.f64")
    tree.up.grist.ok("get", url, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == numbers.tobytes()
    assert tree.up.grist.ok("get", url, "-") == numbers.tobytes()
    got = subprocess.run(["curl", "-sS", "-r", "8388600-8388615", tree.up.http("/t/copies/x.f64")], capture_output=True)
    assert got.stdout == numbers.tobytes()[8388600:8388616]
    tree.up.grist.ok("cp", url, tree.up.url("/own.f64"))
    assert tree.up.get("/own.f64") == numbers.tobytes()
    tree.put("copies/empty", b"")
    assert tree.up.grist.ok("get", tree.up.url("/t/copies/empty"), "-") == b""
    assert tree.up.grist.ask("count", tree.up.url("/t/copies/empty"), "--type", "u8")["count"] == 0


def test_python_reads_everything(tree, temperatures, numbers, tmp_path):
    import xarray as xr

    folder, values = temperatures
    tree.put("python/x.f64", numbers[:100_000].tobytes())
    tree.put("python/t.nc", (folder / "t.nc").read_bytes())
    tree.put_folder(folder / "t3.zarr", "python/t.zarr")
    plain = tree.up.url("/t/python/x.f64")
    assert gm.run("sum", plain, type="f64")["sum"] == math.fsum(numbers[:100_000])
    with gm.open(plain) as file:
        file.seek(8 * 1000)
        assert file.read(16) == numbers[1000:1002].tobytes()
    about = gm.stat(plain)
    assert about.length == 800_000 and about.created is None
    for name in ("t.nc", "t.zarr"):
        with xr.open_dataset(tree.up.url(f"/t/python/{name}"), engine="gristmill") as found:
            np.testing.assert_array_equal(found["t"].max("t").values, values.max(axis=0))
            np.testing.assert_array_equal(found["t"][3, 5:9, ::7].values, values[3, 5:9, ::7])


def test_fsspec_lists_and_reads(tree):
    import fsspec

    tree.put("spec/a/one", b"1")
    tree.put("spec/b", b"22")
    found = fsspec.filesystem("grist")
    names = {entry["name"].rpartition("/t/spec/")[2]: entry["type"] for entry in found.ls(tree.up.url("/t/spec"))}
    assert names == {"a": "directory", "b": "file"}
    assert found.cat(tree.up.url("/t/spec/a/one")) == b"1"
    assert found.exists(tree.up.url("/t/spec/b")) and not found.exists(tree.up.url("/t/spec/c"))


def test_an_empty_folder_of_a_bucket_is_a_directory(tree):
    if tree.kind != "s3":
        pytest.skip("only buckets have such objects")
    tree.put("marked/x.u8", b"12345678")
    # The page of a cloud's console makes such an object.
    tree.put("marked/empty/", b"")
    up = tree.up
    assert up.grist.ok("ls", up.url("/t/marked")).decode() == "empty/\nx.u8\n"
    assert up.grist.ok("ls", up.url("/t/marked/empty")) == b""
    assert up.grist.ok("du", up.url("/t/marked")).decode().split()[2] == "1"
    assert "there is no" in up.grist.refuses(2, "ls", up.url("/t/marked/nothing"))


def test_a_file_that_changed_just_now_is_not_answered_from_statistics(tree, tmp_path):
    if tree.kind != "nginx":
        pytest.skip("only versions of web servers have seconds")

    def content(value):
        with netCDF4.Dataset(tmp_path / "t.nc", "w") as file:
            for name, length in (("t", 8), ("x", 1000)):
                file.createDimension(name, length)
            file.createVariable("t", "f4", ("t", "x"), chunksizes=(2, 1000))[:] = np.full((8, 1000), value)
        return (tmp_path / "t.nc").read_bytes()

    now, url = time.time(), tree.up.url("/t/twice/t.nc")
    # Without compression both contents have one length, so nginx gives both one version.
    for value in (3, 7):
        tree.put("twice/t.nc", content(value))
        os.utime(tree.files / "twice/t.nc", (now, now))
        for _ in range(2):
            done = tree.up.grist("run", "max", url, "--var", "t", "--axes", "t,x", "--place", "storage", "--json")
            assert json.loads(done.stdout)["result"]["max"]["values"] == [value]
            assert b"statistics" not in done.stderr, done.stderr
    # An older file has one version for each second.
    os.utime(tree.files / "twice/t.nc", (now - 3600, now - 3600))
    for _ in range(2):
        done = tree.up.grist("run", "max", url, "--var", "t", "--axes", "t,x", "--place", "storage")
    assert b"known from their statistics" in done.stderr, done.stderr


def test_a_file_that_is_replaced_between_requests_has_its_new_content(tree):
    url = tree.up.url("/t/replaced/x.u8")
    for content in (b"\x01" * 1000, b"\x02" * 1000, b"\x03" * 900):
        tree.put("replaced/x.u8", content)
        assert tree.up.grist.ask("sum", url, "--type", "u8")["sum"] == sum(content)


def test_an_open_file_that_is_replaced_is_stale(tree):
    if tree.kind == "nginx":
        pytest.skip("its times of change have seconds only")
    tree.put("stale/x.u8", b"\x01" * 3_000_000)
    with gm.open(tree.up.url("/t/stale/x.u8")) as file:
        assert file.read(10) == b"\x01" * 10
        tree.put("stale/x.u8", b"\x02" * 3_000_000)
        file.seek(2_900_000)
        with pytest.raises(gm.GristmillError) as raised:
            file.read(10)
        assert "changed" in str(raised.value) or "replaced" in str(raised.value)


def test_what_is_not_there(tree):
    up = tree.up
    tree.put("there/x.u8", b"1")
    for path in ("/t/nothing", "/t/there/nothing.f64", "/t/there/x.u8/more"):
        text = up.grist.refuses(2, "run", "sum", up.url(path), "--type", "u8")
        assert "nothing" in text or "x.u8" in text
    assert "directory" in up.grist.refuses(2, "run", "sum", up.url("/t/there"), "--type", "u8")


def test_nothing_is_changed(tree, tmp_path):
    up = tree.up
    tree.put("kept/x.u8", b"12345678")
    (tmp_path / "file").write_bytes(b"x")
    url = up.url("/t/kept/x.u8")
    for command in (
        ("rm", url),
        ("rm", "-r", up.url("/t/kept")),
        ("rm", "-r", up.url("/t")),
        ("mv", url, up.url("/moved")),
        ("mv", up.url("/t"), up.url("/moved")),
        ("chmod", "600", url),
        ("put", tmp_path / "file", up.url("/t/new")),
        ("put", tmp_path / "file", url),
        ("put", tmp_path / "file", up.url("/t")),
        ("attach", tree.source, up.url("/t/again"), *tree.options),
    ):
        text = up.grist.refuses(2, *command)
        assert "/t" in text and ("attached" in text or "directory" in text), (command, text)
    assert up.get("/t/kept/x.u8") == b"12345678"


def test_a_cluster_finds_its_trees_after_a_restart(tree, numbers):
    tree.put("restart/x.f64", numbers[:1000].tobytes())
    tree.up.restart()
    got = tree.up.grist.ask("sum", tree.up.url("/t/restart/x.f64"), "--type", "f64", "--wait", "30")
    assert got["sum"] == math.fsum(numbers[:1000])


def test_detach_leaves_the_files(tree):
    tree.put("left/x.u8", b"12345678")
    up = tree.up
    up.grist.ok("attach", tree.source, up.url("/again/deep"), *tree.options)
    assert up.get("/again/deep/left/x.u8") == b"12345678"
    assert up.grist.ok("ls", up.url("/again")).decode() == "deep/\n"
    up.grist.ok("detach", up.url("/again/deep"))
    assert "nothing" in up.grist.refuses(2, "get", up.url("/again/deep/left/x.u8"), "-")
    assert "nothing" in up.grist.refuses(2, "detach", up.url("/again/deep"))
    assert up.get("/t/left/x.u8") == b"12345678"
