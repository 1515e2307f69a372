"""Files of object stores and web servers, read by the process that asks."""

import json
import math
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import netCDF4
import numpy as np
import pytest
import web_servers
import zarr

import gristmill as gm

pytest.importorskip("moto", reason="moto is not installed")


@pytest.fixture(scope="module")
def s3():
    server = web_servers.S3()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.env.items():
            patch.setenv(name, value)
        yield server
    server.end()


@pytest.fixture(scope="module")
def nginx(tmp_path_factory):
    if web_servers.nginx_path() is None:
        pytest.skip("nginx is not installed: scripts/web_server installs it")
    server = web_servers.Nginx(tmp_path_factory.mktemp("nginx"))
    yield server
    server.end()


@pytest.fixture(params=["s3", "nginx"])
def server(request, grist):
    found = request.getfixturevalue(request.param)
    grist.env.update(getattr(found, "env", {}))
    return found


@pytest.fixture(scope="module")
def numbers():
    return np.random.default_rng(5).normal(size=1_500_000) * 10.0 ** np.random.default_rng(6).integers(-9, 9, 1_500_000)


@pytest.fixture(scope="module")
def temperatures(tmp_path_factory):
    """The same variable as netCDF-4, and as Zarr of both versions."""
    folder = tmp_path_factory.mktemp("made")
    values = np.round(np.random.default_rng(7).normal(280, 10, (30, 40, 50)), 2).astype("f4")
    with netCDF4.Dataset(folder / "t.nc", "w") as file:
        for name, length in zip("tyx", values.shape, strict=True):
            file.createDimension(name, length)
        variable = file.createVariable("t", "f4", tuple("tyx"), zlib=True, chunksizes=(7, 11, 50))
        variable[:] = values
    for version in (2, 3):
        made = zarr.create_array(
            folder / f"t{version}.zarr", name="t", shape=values.shape, chunks=(7, 11, 50), dtype="f4",
            zarr_format=version, fill_value=0, dimension_names=tuple("tyx") if version == 3 else None,
        )  # fmt: skip
        made[:] = values
        group = zarr.open_group(folder / f"t{version}.zarr", mode="r+")
        assert "t" in group
    return folder, values


def test_a_plain_file_has_the_bits_of_a_local_one(grist, server, numbers, tmp_path):
    local = tmp_path / "x.f64"
    numbers.tofile(local)
    url = server.put("plain/x.f64", numbers.tobytes())
    for kernel, more in [("sum", {}), ("minmax", {}), ("mean", {}), ("quantile", {"q": "0.1,0.5"})]:
        one = grist.answer(kernel, local, "--type", "f64", **more)
        other = grist.answer(kernel, url, "--type", "f64", **more)
        assert one["result"] == other["result"], kernel
    assert grist.ask("sum", url, "--type", "f64")["sum"] == math.fsum(numbers)
    part = grist.answer("sum", url, "--type", "f64", "--range", "800:4000000")
    assert part["result"] == grist.answer("sum", local, "--type", "f64", "--range", "800:4000000")["result"]


def test_lines_over_the_edges_of_requests(grist, server, tmp_path):
    lines = [f"{n} {'x' * (n * 7919 % 300)} {n * 7919 % 1000}" for n in range(60_000)]
    text = "\n".join(lines).encode()
    local = tmp_path / "lines.txt"
    local.write_bytes(text)
    url = server.put("plain/lines.txt", text)
    wanted = grist.ok("run", "grep", local, "--pattern", "x 99.$")
    assert wanted.count(b"\n") > 400
    assert grist.ok("run", "grep", url, "--pattern", "x 99.$") == wanted


def test_variables_of_a_netcdf_file(grist, server, temperatures):
    folder, values = temperatures
    url = server.put("nc/t.nc", (folder / "t.nc").read_bytes())
    for op, axes in [("mean", "t"), ("max", "y,x"), ("std", "t,y,x")]:
        one = grist.answer(op, folder / "t.nc", "--var", "t", "--axes", axes)
        assert one["result"] == grist.answer(op, url, "--var", "t", "--axes", axes)["result"]
    shown = json.loads(grist.ok("stat", url, "--json"))
    assert shown["path"] == url and shown["length"] == (folder / "t.nc").stat().st_size
    assert "t" in [one["name"] for one in shown["variables"]]
    assert "t.nc" in grist.ok("stat", url).decode()


@pytest.mark.parametrize("version", [2, 3])
def test_variables_of_a_zarr_folder(grist, server, temperatures, version):
    folder, values = temperatures
    url = server.put_folder(folder / f"t{version}.zarr", f"zarr{version}/t.zarr")
    for op, axes in [("mean", "0"), ("min", "0,1,2")]:
        one = grist.answer(op, folder / f"t{version}.zarr", "--var", "t", "--axes", axes)
        assert one["result"] == grist.answer(op, url, "--var", "t", "--axes", axes)["result"]
    assert grist.ask("count", url, "--var", "t", "--axes", "0,1,2")["count"]["values"] == [values.size]
    assert "a folder" in grist.ok("stat", url).decode()


def test_a_chunk_that_is_missing_in_a_folder_is_the_fill_value_and_one_that_fails_is_an_error(
    grist, s3, temperatures
):
    folder, values = temperatures
    grist.env.update(s3.env)
    url = s3.put_folder(folder / "t3.zarr", "holes/t.zarr")
    s3.remove("holes/t.zarr/t/c/0/0/0")
    assert grist.ask("min", url, "--var", "t", "--axes", "0,1,2")["min"]["values"] == [0]
    s3.put("holes/t.zarr/t/c/1/0/0", b"short")
    assert "chunk" in grist.refuses(1, "run", "min", url, "--var", "t", "--axes", "0,1,2")


def test_a_list_that_may_leave_files_out_is_not_believed(grist, nginx, temperatures):
    folder, values = temperatures
    url = nginx.put_folder(folder / "t3.zarr", "holes/t.zarr")
    nginx.remove("holes/t.zarr/t/c/0/0/0")
    text = grist.refuses(1, "run", "min", url, "--var", "t", "--axes", "0,1,2")
    assert "19 of its 20 files" in text


def test_a_copy_is_the_file(grist, server, numbers, tmp_path):
    url = server.put("copies/x.f64", numbers[:10_000].tobytes())
    grist.ok("get", url, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == numbers[:10_000].tobytes()
    grist.ok("get", url, f"{tmp_path}/")
    assert (tmp_path / "x.f64").read_bytes() == (tmp_path / "copy").read_bytes()
    assert grist.ok("get", url, "-") == (tmp_path / "copy").read_bytes()


def test_the_explanation_says_who_reads(grist, server, numbers):
    url = server.put("explained/x.f64", numbers[:50_000].tobytes())
    explained = grist("run", "sum", url, "--type", "f64", "--explain")
    assert explained.returncode == 0 and b"read and folded by the process that asks" in explained.stderr


def test_arrays_whose_names_are_numbers(grist, server, tmp_path):
    group = zarr.create_group(tmp_path / "image.zarr", zarr_format=2)
    for level in ("0", "1"):
        group.create_array(level, shape=(4, 4), chunks=(2, 2), dtype="i2", fill_value=0)[:] = 7 + int(level)
    url = server.put_folder(tmp_path / "image.zarr", "numbers/image.zarr")
    for level in (0, 1):
        assert grist.ask("max", url, "--var", str(level), "--axes", "0,1")["max"]["values"] == [7 + level]
    assert grist.ask("max", f"{url}/0", "--var", "data", "--axes", "0,1")["max"]["values"] == [7]


def test_what_is_not_there(grist, server):
    for name in ("nothing/here.f64", "nothing"):
        text = grist.refuses(2, "run", "sum", server.url(name), "--type", "f64")
        assert server.url(name) in text and "there is no" in text
    text = grist.refuses(2, "run", "mean", server.url("nothing.zarr"), "--var", "t")
    assert "there is no" in text


def test_what_cannot_be_done(grist, server, tmp_path):
    url = server.put("refused/x.f64", b"12345678")
    assert "nothing is written" in grist.refuses(2, "put", tmp_path, url)
    assert "never removed" in grist.refuses(2, "rm", url)
    assert "not a file of a cluster" in grist.refuses(2, "du", url)
    assert "omit --place" in grist.refuses(2, "run", "sum", url, "--type", "f64", "--place", "storage")
    for secret in ("https://me:hidden@127.0.0.1/x", "ftp://me:hidden@host/x", "az://c/x?sig=hidden"):
        assert "hidden" not in grist.refuses(2, "run", "sum", secret, "--type", "f64")
    assert "query" in grist.refuses(2, "run", "sum", "https://127.0.0.1/x?token=hidden", "--type", "f64")


def test_a_server_that_is_not_there(grist, s3):
    s3.put("plain/y.f64", b"12345678")
    away = {**s3.env, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    text = grist.refuses(1, "run", "sum", s3.url("plain/y.f64"), "--type", "f64", env=away)
    assert "refused" in text and web_servers.SECRET not in text


def test_folders_of_a_server_that_are_closed(grist, nginx):
    nginx.put("closed/x.f64", b"12345678")
    text = grist.refuses(1, "run", "sum", nginx.url("closed/x.f64"), "--type", "f64")
    assert "403" in text and "may not be read" in text


def test_a_server_that_could_compress_is_asked_not_to(grist, nginx, numbers):
    url = nginx.put("packed/x.f64", numbers[:1000].tobytes())
    assert grist.ask("sum", url, "--type", "f64")["sum"] == math.fsum(numbers[:1000])


def test_redirects_are_followed(grist, nginx, numbers):
    nginx.put("open/moved/x.f64", numbers[:1000].tobytes())
    got = grist.ask("sum", nginx.url("moved/x.f64"), "--type", "f64")
    assert got["sum"] == math.fsum(numbers[:1000])


def test_a_server_without_ranges_says_so(grist, tmp_path, numbers):
    (tmp_path / "x.f64").write_bytes(numbers.tobytes())

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: Quiet(*args, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/x.f64"
        text = grist.refuses(1, "run", "sum", url, "--type", "f64")
        assert "range requests" in text and url in text
    finally:
        server.shutdown()


def test_python_reads_files_and_variables(server, temperatures, numbers, tmp_path):
    folder, values = temperatures
    plain = server.put("python/x.f64", numbers.tobytes())
    assert gm.run("sum", plain, type="f64")["sum"] == math.fsum(numbers)
    with gm.open(plain) as file:
        file.seek(8 * 1000)
        assert file.read(16) == numbers[1000:1002].tobytes()
    assert gm.stat(plain).length == numbers.nbytes
    gm.get(plain, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == numbers.tobytes()
    for url in (
        server.put("python/t.nc", (folder / "t.nc").read_bytes()),
        server.put_folder(folder / "t3.zarr", "python/t.zarr"),
    ):
        array = gm.open(url)["t"] if url.endswith(".nc") else gm.open_dataset(url)["t"].data
        np.testing.assert_array_equal(np.asarray(array[3, 5:9, ::7]), values[3, 5:9, ::7])
        np.testing.assert_array_equal(np.asarray(array.max(axis=0)), values.max(axis=0))


def test_python_opens_datasets_with_xarray(server, temperatures):
    folder, values = temperatures
    import xarray as xr

    for url in (
        server.put("xarray/t.nc", (folder / "t.nc").read_bytes()),
        server.put_folder(folder / "t3.zarr", "xarray/t.zarr"),
    ):
        with xr.open_dataset(url, engine="gristmill") as found:
            np.testing.assert_array_equal(found["t"].max("t").values, values.max(axis=0))


def test_folders_are_listed(grist, server):
    for name in ("listed/b.u8", "listed/deep/c.u8", "listed/a b%25.u8"):
        server.put(name, b"12345678")
    names = ["a b%25.u8", "b.u8", "deep"]
    shown = json.loads(grist.ok("ls", server.url("listed"), "--json"))["entries"]
    assert shown == [
        {"name": names[0], "kind": "file", "length": 8}, {"name": names[1], "kind": "file", "length": 8},
        {"name": names[2], "kind": "directory"},
    ]  # fmt: skip
    assert grist.ok("ls", server.url("listed/")).decode().splitlines() == [*names[:2], "deep/"]
    assert "8 B  b.u8" in grist.ok("ls", "-l", server.url("listed")).decode()
    entries = gm.ls(server.url("listed"))
    assert [(entry.name, entry.is_dir, entry.unreadable) for entry in entries] == [
        (names[0], False, None), (names[1], False, None), (names[2], True, None),
    ]  # fmt: skip
    assert entries[1].info.length == 8 and entries[1].url == server.url("listed/b.u8")
    # The URL of each entry names its file, whatever characters its name has.
    assert [gm.stat(entry.url).length for entry in entries[:2]] == [8, 8]
    [file] = gm.ls(server.url("listed/b.u8"))
    assert (file.name, file.url) == ("b.u8", server.url("listed/b.u8"))
    for missing in ("listed/nothing", "nothing"):
        assert "there is no" in grist.refuses(2, "ls", server.url(missing))
        with pytest.raises(gm.NotFound):
            gm.ls(server.url(missing))


def test_patterns_name_several_files(server, tmp_path):
    parts = np.split(np.random.default_rng(8).normal(size=(6, 5)), 3)
    for n, part in enumerate(parts):
        with netCDF4.Dataset(tmp_path / "part.nc", "w") as file:
            for name, length in zip("tx", part.shape, strict=True):
                file.createDimension(name, length)
            file.createVariable("t", "f8", ("t",))[:] = np.arange(2) + 2 * n
            file.createVariable("v", "f8", ("t", "x"))[:] = part
        server.put(f"several/200{n}/v_{n}.nc", (tmp_path / "part.nc").read_bytes())
    server.put("several/2001/other.txt", b"x")
    whole = gm.open_mfdataset(server.url("several/200*/v_?.nc"))
    assert whole.v.shape == (6, 5)
    assert math.isclose(float(whole.v.sum()), math.fsum(np.concatenate(parts).ravel()), rel_tol=1e-15)
    assert gm.open_mfdataset(server.url("several/200[12]/*.nc")).v.shape == (4, 5)
    with pytest.raises(gm.NotFound, match="names no files"):
        gm.open_mfdataset(server.url("several/200*/w_?.nc"))
    with pytest.raises(gm.Usage, match="is not supported"):
        gm.open_mfdataset(server.url("several/**/v_?.nc"))


def test_python_errors_name_the_file(server):
    with pytest.raises(gm.GristmillError, match="there is no"):
        gm.run("sum", server.url("nothing.f64"), type="f64")
    with pytest.raises(gm.GristmillError, match="there is no"):
        gm.open(server.url("nothing.nc"))
