"""Files of the distribution's own Ceph, through its gateway to S3: read by the process that asks, and by storage nodes.

It takes longer than other files of tests and needs packages, so `make test-ceph` runs it, and `make test` does not.
"""

import gzip
import json
import math
import signal
import urllib.error
import urllib.request
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import attached
import netCDF4
import numpy as np
import pytest
import zarr
from cluster import Up

import gristmill as gm

pytest.importorskip("boto3", reason="boto3 is not installed")
import ceph_cluster  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402

pytestmark = pytest.mark.ceph

NODES = 3
MIB = 1 << 20
#: Names that other programs have in buckets. Some look like a part of a URL.
NAMES = [
    "two words.u8",
    "100%.u8",
    "50%20x.u8",
    "%2F.u8",
    "a+b.u8",
    "q?x=1&y#z.u8",
    "ä ö.u8",
    "a\u0308.u8",
    "日本 🌾.u8",
    "~'\"<>&;:,=@$!*()[]{}|^`.u8",
    "back\\slash.u8",
    "...u8",
]


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    yield from ceph_cluster.started(ceph_cluster.Ceph, tmp_path_factory)


@pytest.fixture
def ceph(started, grist, monkeypatch):
    return ceph_cluster.named_by_environment(started, grist, monkeypatch)


@pytest.fixture(scope="module")
def up(clusters, started):
    """Storage nodes with the bucket as /t."""
    up = clusters(Up, nodes=NODES, args=("--admin", "anonymous", "--outside-sources", "all"), env=started.env)
    said = up.grist.ok("attach", f"s3://{started.bucket}", up.url("/t"), "--endpoint", started.endpoint, "--allow-local")
    assert b"0, 1, 2" in said
    return up


@pytest.fixture(params=["bare", "attached"])
def url(request, ceph, up):
    """The URL of a key: in the bucket, or in the tree of the nodes."""
    return ceph.url if request.param == "bare" else lambda key: up.url(f"/t/{key}")


@pytest.fixture(scope="module")
def numbers():
    return ceph_cluster.numbers()


@pytest.fixture(scope="module")
def temperatures(tmp_path_factory):
    """The same variable as netCDF-4 of more than one stripe, and as Zarr of both versions."""
    folder = tmp_path_factory.mktemp("made")
    attached.made_temperatures(folder)
    return folder


def test_kernels_over_numbers_give_what_numpy_gives(grist, ceph, url, numbers):
    ceph.put("numbers/x.f64", numbers.tobytes())
    found = url("numbers/x.f64")
    assert grist.ask("sum", found, "--type", "f64")["sum"] == math.fsum(numbers)
    extremes = grist.ask("minmax", found, "--type", "f64")
    assert (extremes["min"], extremes["min_index"]) == (numbers.min(), numbers.argmin())
    assert (extremes["max"], extremes["max_index"]) == (numbers.max(), numbers.argmax())
    part = grist.ask("sum", found, "--type", "f64", "--range", f"{4 * MIB - 8}:{8 * MIB + 16}")
    assert part["sum"] == math.fsum(numbers[4 * MIB // 8 - 1 :][: MIB + 2])
    assert grist.ask("median", found, "--type", "f64")["median"] == np.median(numbers)


def test_every_node_reads_a_part(up, ceph, numbers):
    ceph.put("numbers/x.f64", numbers.tobytes())
    assert len(up.stat("/t/numbers/x.f64")["targets"]) == NODES
    for place in ("storage", "client"):
        got = up.grist.answer("sum", up.url("/t/numbers/x.f64"), "--type", "f64", "--place", place)
        assert got["result"]["sum"] == math.fsum(numbers)
        if place == "storage":
            assert got["report"]["bytes_moved"] == 0 and got["report"]["bytes_to_client"] < 10_000, got["report"]


def test_lines_over_the_edges_of_stripes(grist, ceph, url, tmp_path):
    text = b"\n".join(b"%d %s %d" % (n, b"x" * (n * 7919 % 300), n * 7919 % 1000) for n in range(60_000))
    assert len(text) > 8 * MIB
    (tmp_path / "lines.txt").write_bytes(text)
    ceph.put("lines/lines.txt", text)
    wanted = grist.ok("run", "grep", tmp_path / "lines.txt", "--pattern", "x 99.$")
    assert wanted.count(b"\n") > 400
    assert grist.ok("run", "grep", url("lines/lines.txt"), "--pattern", "x 99.$") == wanted


def test_python_reduces_what_netcdf4_reads(ceph, url, temperatures):
    ceph.put("nc/t.nc", (temperatures / "t.nc").read_bytes())
    with netCDF4.Dataset(temperatures / "t.nc") as file:
        values = file["t"][:].filled(np.nan)
    found = gm.open_dataset(url("nc/t.nc"))["t"]
    np.testing.assert_allclose(found.mean("t").values, values.mean(axis=0, dtype="f8"), rtol=1e-6)
    np.testing.assert_array_equal(found.max("t").values, values.max(axis=0))
    np.testing.assert_array_equal(found[3, 5:9, ::7].values, values[3, 5:9, ::7])


@pytest.mark.parametrize("version", [2, 3])
def test_python_reduces_what_zarr_reads(ceph, url, temperatures, version):
    ceph.put_folder(temperatures / f"t{version}.zarr", f"zarr{version}/t.zarr")
    values = zarr.open_group(temperatures / f"t{version}.zarr", mode="r")["t"][:]
    found = gm.open_dataset(url(f"zarr{version}/t.zarr"))["t"].data
    np.testing.assert_allclose(np.asarray(found.mean(axis=0)), values.mean(axis=0, dtype="f8"), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(found.min(axis=(0, 1, 2))), values.min())
    np.testing.assert_array_equal(np.asarray(found[3, 5:9, ::7]), values[3, 5:9, ::7])


def test_a_missing_chunk_of_zarr_is_the_fill_value_and_a_short_one_is_an_error(grist, ceph, url, temperatures):
    ceph.put_folder(temperatures / "t3.zarr", "holes/t.zarr")
    ceph.remove("holes/t.zarr/t/c/0/0/0")
    assert grist.ask("min", url("holes/t.zarr"), "--var", "t", "--axes", "0,1,2")["min"]["values"] == [0]
    ceph.put("holes/t.zarr/t/c/1/0/0", b"short")
    assert "chunk" in grist.refuses(1, "run", "min", url("holes/t.zarr"), "--var", "t", "--axes", "0,1,2")


def test_a_copy_is_the_object(grist, ceph, url, numbers, tmp_path):
    content = numbers.tobytes()
    ceph.put("copies/x.f64", content)
    grist.ok("get", url("copies/x.f64"), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    assert grist.ok("get", url("copies/x.f64"), "-") == content
    ceph.put("copies/empty", b"")
    assert grist.ok("get", url("copies/empty"), "-") == b""
    assert grist.ask("count", url("copies/empty"), "--type", "u8")["count"] == 0


def test_an_object_with_an_encoding_is_given_as_it_is_stored(grist, ceph, url):
    packed = gzip.compress(b"hello " * 1000)
    ceph.put("packed/x.gz", packed, ContentEncoding="gzip")
    assert grist.ok("get", url("packed/x.gz"), "-") == packed


def test_an_object_in_many_stripes(ceph, url):
    content = np.random.default_rng(1).bytes(3 * ceph_cluster.STRIPE + 12_345)
    ceph.remove("stripes/x.u8")
    before = ceph.stripes()
    ceph.put("stripes/x.u8", content)
    assert len(ceph.stripes() - before) == 4
    with gm.open(url("stripes/x.u8")) as file:
        for edge in (ceph_cluster.STRIPE, 2 * ceph_cluster.STRIPE, 3 * ceph_cluster.STRIPE, len(content)):
            file.seek(edge - 1000)
            assert file.read(2000) == content[edge - 1000 : edge + 1000]
    assert gm.run("sum", url("stripes/x.u8"), type="uint8")["sum"] == np.frombuffer(content, "u1").sum(dtype="u8")


def test_an_object_that_was_uploaded_in_parts(grist, ceph, url):
    parts = [np.random.default_rng(n).bytes(size) for n, size in enumerate((5 * MIB, 6 * MIB + 1, 777))]
    content = b"".join(parts)
    ceph.put_in_parts("parts/x.u8", *parts)
    assert ceph.tag("parts/x.u8").strip('"').endswith("-3")
    assert grist.ask("sum", url("parts/x.u8"), "--type", "u8")["sum"] == np.frombuffer(content, "u1").sum()
    assert grist.ok("get", url("parts/x.u8"), "-") == content
    # The same bytes in other parts are another version, and the answer is the same.
    with gm.open(url("parts/x.u8")) as file:
        assert file.read(10) == content[:10]
        ceph.put_in_parts("parts/x.u8", parts[0] + parts[1], parts[2])
        file.seek(len(content) - 10)
        with pytest.raises(gm.Stale, match="x.u8"):
            file.read(10)
    assert grist.ok("get", url("parts/x.u8"), "-") == content


def test_the_gateway_sends_a_version_only(ceph):
    ceph.put("version/x.u8", b"12345678")
    tag = ceph.tag("version/x.u8")
    for more, wanted in [({}, b"12345678"), ({"Range": "bytes=2-3"}, b"34")]:
        asked = {"Bucket": ceph.bucket, "Key": "version/x.u8", **more}
        assert ceph.client.get_object(**asked, IfMatch=tag)["Body"].read() == wanted
        with pytest.raises(ClientError, match="PreconditionFailed"):
            ceph.client.get_object(**asked, IfMatch='"another"')


@pytest.mark.parametrize("change", ["replace", "grow", "cut", "remove"])
def test_an_open_file_that_changes_is_stale(ceph, url, change):
    size = 9 * MIB
    ceph.put("stale/x.u8", b"\x01" * size)
    with gm.open(url("stale/x.u8")) as file:
        assert file.read(10) == b"\x01" * 10
        if change == "remove":
            ceph.remove("stale/x.u8")
        else:
            ceph.put("stale/x.u8", b"\x02" * {"replace": size, "grow": size + 1, "cut": size - MIB}[change])
        file.seek(size - 2 * MIB)
        with pytest.raises(gm.Stale, match="x.u8"):
            file.read(10)


def test_an_answer_is_of_one_version(grist, ceph, url):
    contents = [bytes([value]) * (9 * MIB) for value in (1, 2)]
    sums = [sum(content) for content in contents]
    ceph.put("changing/x.u8", contents[1])

    def replace():
        for n in range(20):
            ceph.put("changing/x.u8", contents[n % 2])

    with ThreadPoolExecutor(1) as writers:
        writer = writers.submit(replace)
        while not writer.done():
            done = grist("run", "sum", url("changing/x.u8"), "--type", "u8", "--json")
            if done.returncode == 0:
                assert json.loads(done.stdout)["result"]["sum"] in sums
            else:
                assert b"x.u8" in done.stderr and b"changed" in done.stderr, done.stderr
        writer.result()
    assert grist.ask("sum", url("changing/x.u8"), "--type", "u8")["sum"] == sums[1]


def test_statistics_of_chunks_are_not_used_for_another_version(up, ceph, temperatures, tmp_path):
    ceph.put("known/t.nc", (temperatures / "t.nc").read_bytes())
    asked = ("run", "max", up.url("/t/known/t.nc"), "--var", "t", "--axes", "t,y,x", "--place", "storage")
    first, second = up.grist(*asked), up.grist(*asked)
    assert first.stdout == second.stdout and b"known from their statistics" in second.stderr
    with netCDF4.Dataset(temperatures / "t.nc") as source, netCDF4.Dataset(tmp_path / "new.nc", "w") as file:
        values = source["t"][:]
        values[0, 0, 0] = 9999
        for name, length in zip("tyx", values.shape, strict=True):
            file.createDimension(name, length)
        file.createVariable("t", "f4", tuple("tyx"), chunksizes=(5, 170, 400))[:] = values
    ceph.put("known/t.nc", (tmp_path / "new.nc").read_bytes())
    assert up.grist.ask("max", up.url("/t/known/t.nc"), "--var", "t", "--axes", "t,y,x")["max"]["values"] == [9999]


@pytest.fixture(scope="module")
def many(started):
    """A folder of more names than three pages of the gateway have. Each third is a folder, so the first page ends with one."""
    names = [f"{n:05}/x.u8" if n % 3 == 0 else f"{n:05}.u8" for n in range(3_200)]
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda name: started.put(f"many/{name}", b"x"), names))
    return names


def test_lists_of_several_pages(up, ceph, many):
    listed = json.loads(up.grist.ok("ls", up.url("/t/many"), "--json"))["entries"]
    wanted = {name.split("/")[0]: "directory" if "/" in name else "file" for name in many}
    assert len(listed) == len(wanted)
    assert {entry["name"]: entry["kind"] for entry in listed} == wanted
    shown = up.grist.ok("ls", up.url("/t/many")).decode().split()
    assert sorted(shown) == sorted(name + "/" * (kind == "directory") for name, kind in wanted.items())


def test_the_size_of_a_folder_with_many_folders(up, ceph):
    folders = range(200)
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda n: ceph.put(f"folders/{n}/x.u8", b"xx"), folders))
    size = json.loads(up.grist.ok("du", up.url("/t/folders"), "--json"))
    assert (size["files"], size["bytes"]) == (len(folders), 2 * len(folders))


def test_the_size_of_a_folder(up, ceph):
    for n, name in enumerate(("size/a.u8", "size/b/c.u8", "size/b/d/e.u8")):
        ceph.put(name, b"x" * 10**n)
    size = json.loads(up.grist.ok("du", up.url("/t/size"), "--json"))
    assert (size["files"], size["bytes"]) == (3, 111)
    assert "a directory with 3 files" in up.grist.ok("stat", up.url("/t/size")).decode()


def test_an_empty_folder_has_a_marker(up, ceph):
    ceph.put("marked/x.u8", b"12345678")
    # The page of a cloud's console makes such an object.
    ceph.put("marked/empty/", b"")
    assert up.grist.ok("ls", up.url("/t/marked")).decode() == "empty/\nx.u8\n"
    assert up.grist.ok("ls", up.url("/t/marked/empty")) == b""
    assert "there is no" in up.grist.refuses(2, "ls", up.url("/t/marked/nothing"))


@pytest.mark.parametrize("name", NAMES)
def test_names(grist, ceph, url, name, tmp_path):
    ceph.put(f"names/in {name}/{name}", name.encode())
    found = url(f"names/in {name}/{name}")
    assert grist.ask("sum", found, "--type", "u8")["sum"] == sum(name.encode())
    assert gm.run("count", found, type="uint8")["count"] == len(name.encode())
    grist.ok("get", found, f"{tmp_path}/")
    assert (tmp_path / name).read_bytes() == name.encode()


def test_names_in_lists(up, ceph):
    for name in NAMES:
        ceph.put(f"listed/{name}", b"1")
        ceph.put(f"listed/in {name}/x.u8", b"1")
    listed = json.loads(up.grist.ok("ls", up.url("/t/listed"), "--json"))["entries"]
    wanted = {name: "file" for name in NAMES} | {f"in {name}": "directory" for name in NAMES}
    assert {entry["name"]: entry["kind"] for entry in listed} == wanted
    for name in NAMES:
        assert up.grist.ok("ls", up.url(f"/t/listed/in {name}")).decode() == "x.u8\n"


@pytest.mark.parametrize("name", ["a//b.u8", "a/../b.u8", "/b.u8", "line\nb.u8"])
def test_names_that_are_no_paths_are_refused(grist, ceph, url, name):
    ceph.put(f"odd/{name}", b"1")
    text = grist.refuses(2, "run", "sum", url(f"odd/{name}"), "--type", "u8")
    assert "not allowed" in text and "b.u8" in text


@pytest.mark.parametrize(("name", "folder", "other"), [("a//b.u8", "a", "x.u8"), ("line\nb.u8", "", "a/")])
def test_names_that_are_no_paths_do_not_hide_others(up, ceph, name, folder, other):
    ceph.put("mixed/a/x.u8", b"12345678")
    ceph.put(f"mixed/{name}", b"1")
    try:
        shown = up.grist.ok("ls", "-l", up.url(f"/t/mixed/{folder}")).decode()
        assert other in shown and "cannot be a path here; rename it" in shown, shown
        amount = json.loads(up.grist.ok("du", up.url("/t/mixed"), "--json"))
        assert amount["files"] == 1 and amount["unread"] == 1, amount
        assert up.grist.ask("count", up.url("/t/mixed/a/x.u8"), "--type", "u8")["count"] == 8
    finally:
        ceph.remove(f"mixed/{name}")


def test_what_is_not_there(grist, ceph, url):
    ceph.put("there/x.u8", b"1")
    for key in ("there/nothing.u8", "nothing", "there", "there/x.u8/more"):
        text = grist.refuses(2, "run", "sum", url(key), "--type", "u8")
        assert key.split("/")[-1] in text and ("there is no" in text or "directory" in text), text
    text = grist.refuses(2, "run", "mean", url("there/nothing.zarr"), "--var", "t")
    assert "nothing.zarr" in text and "there is no" in text
    with pytest.raises(gm.NotFound, match="nothing.u8"):
        gm.run("sum", url("there/nothing.u8"), type="uint8")


def test_a_bucket_that_is_not_there(grist, ceph, up):
    for words in (("run", "sum", "s3://nothing/x.u8", "--type", "u8"), ("run", "mean", "s3://nothing/x.zarr", "--var", "t")):
        text = grist.refuses(2, *words)
        assert "there is no s3://nothing/x." in text
    done = up.grist("attach", "s3://nothing/era5", up.url("/n"), "--endpoint", ceph.endpoint, "--allow-local")
    assert done.returncode in (1, 2) and b"s3://nothing/era5" in done.stderr
    assert b"NoSuchBucket" in done.stderr or b"there is no" in done.stderr, done.stderr


WRONG = {
    "a secret that is wrong": {"AWS_SECRET_ACCESS_KEY": "hidden-secret"},
    "a key that nobody has": {"AWS_ACCESS_KEY_ID": "NOBODY", "AWS_SECRET_ACCESS_KEY": "hidden-secret"},
    "a user who may not read": {
        "AWS_ACCESS_KEY_ID": ceph_cluster.OTHER_KEY,
        "AWS_SECRET_ACCESS_KEY": ceph_cluster.OTHER_SECRET,
    },
    "nobody": {"AWS_SKIP_SIGNATURE": "true"},
}


@pytest.mark.parametrize("who", WRONG)
def test_who_may_not_read_is_told_so(grist, ceph, nodes_of_test, who):
    env = {**ceph.env, **WRONG[who]}
    ceph.put("private/x.u8", b"12345678")
    for key in ("private/x.u8", "private/nothing.u8"):
        text = grist.refuses(1, "run", "sum", ceph.url(key), "--type", "u8", env=env)
        assert f"{ceph.url(key)} may not be read" in text and "credentials" in text
        assert env["AWS_SECRET_ACCESS_KEY"] not in text
    nodes = nodes_of_test(Up, nodes=1, args=("--admin", "anonymous"), env=env)
    text = nodes.grist.refuses(1, "attach", ceph.url("private"), nodes.url("/p"))
    assert ceph.url("private") in text and ("403" in text or "may not be read" in text)
    assert env["AWS_SECRET_ACCESS_KEY"] not in text + nodes.errors()


def test_a_bucket_for_everybody_needs_no_key(grist, ceph, nodes_of_test, monkeypatch):
    ceph.client.create_bucket(Bucket="open", ACL="public-read")
    ceph.client.put_object(Bucket="open", Key="in/x.u8", Body=b"12345678", ACL="public-read")
    nobody = {"AWS_ENDPOINT_URL": ceph.endpoint, "AWS_SKIP_SIGNATURE": "true"}
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        grist.env.pop(name)
        monkeypatch.delenv(name)
    assert grist.ok("get", "s3://open/in/x.u8", "-", env=nobody) == b"12345678"
    nodes = nodes_of_test(Up, nodes=2, args=("--admin", "anonymous"))
    options = ("--endpoint", ceph.endpoint, "--allow-local", "--anonymous")
    nodes.grist.ok("attach", "s3://open", nodes.url("/o"), *options)
    assert nodes.grist.ok("ls", nodes.url("/o/in")) == b"x.u8\n"
    assert nodes.get("/o/in/x.u8") == b"12345678"


def test_the_nodes_find_the_gateway_in_their_environment(up, ceph):
    ceph.put("environment/x.u8", b"12345678")
    up.grist.ok("attach", ceph.url("environment"), up.url("/e"))
    assert up.get("/e/x.u8") == b"12345678"
    up.grist.ok("detach", up.url("/e"))


def test_a_gateway_that_ends_and_comes_back(grist, ceph, url):
    ceph.put("restart/x.u8", b"12345678")
    assert grist.ok("get", url("restart/x.u8"), "-") == b"12345678"
    ceph.stop_gateway()
    try:
        text = grist.refuses(1, "run", "sum", url("restart/x.u8"), "--type", "u8")
        assert "restart/x.u8" in text and "refused" in text
    finally:
        ceph.start_gateway()
    assert grist.ok("get", url("restart/x.u8"), "-") == b"12345678"


def test_a_gateway_that_hangs_is_named(up, ceph):
    ceph.put("hanging/x.u8", b"12345678")
    ceph.gateway.send_signal(signal.SIGSTOP)
    try:
        text = up.grist.refuses(1, "run", "sum", up.url("/t/hanging/x.u8"), "--type", "u8", timeout=150)
    finally:
        ceph.gateway.send_signal(signal.SIGCONT)
    assert "s3://bucket/hanging/x.u8" in text and "entry node" not in text


def test_each_user_reads_with_credentials_of_his_own(clusters, ceph, numbers):
    # The environment of these nodes has no credentials.
    nodes = clusters(Up, nodes=2, args=("--admin", "anonymous"))
    options = ("--user-credentials", "--endpoint", ceph.endpoint, "--region", "us-east-1", "--allow-local")
    nodes.grist.ok("attach", f"s3://{ceph.bucket}", nodes.url("/u"), *options)
    ceph.put("users/x.f64", numbers.tobytes())
    run = ("sum", nodes.url("/u/users/x.f64"), "--type", "f64", "--place", "storage")
    own = {"GRISTMILL_SOURCE_ID": ceph_cluster.KEY, "GRISTMILL_SOURCE_SECRET": ceph_cluster.SECRET}
    assert nodes.grist.answer(*run, env=own)["result"]["sum"] == math.fsum(numbers)
    for others in (
        {"GRISTMILL_SOURCE_ID": ceph_cluster.OTHER_KEY, "GRISTMILL_SOURCE_SECRET": ceph_cluster.OTHER_SECRET},
        {**own, "GRISTMILL_SOURCE_SECRET": "hidden-secret"},
    ):
        text = nodes.grist.refuses(1, "run", *run, env=others)
        assert "may not be read" in text and "secret" not in text, text
    assert "GRISTMILL_SOURCE_ID" in nodes.grist.refuses(1, "run", *run)
    for path in nodes.folder.rglob("*"):
        assert not path.is_file() or ceph_cluster.SECRET.encode() not in path.read_bytes(), path


def post(up, operation, asked, credentials):
    """An answer of the HTTP API of Reductionist, and its status."""
    cbor2 = pytest.importorskip("cbor2", reason="cbor2 is not installed")
    login = b64encode(":".join(credentials).encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {login}"}
    request = urllib.request.Request(f"http://{up.entry}/v2/{operation}/", json.dumps(asked).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return cbor2.loads(answer.read()), answer.status
    except urllib.error.HTTPError as error:
        return json.loads(error.read())["error"]["message"], error.code


@pytest.mark.parametrize("slash", ["/", "//"])
def test_the_api_of_reductionist(up, ceph, slash):
    values = np.random.default_rng(3).normal(size=(60, 70, 200))
    whole = b"head" + values.tobytes() + b"tail"
    assert len(whole) > ceph_cluster.STRIPE
    ceph.put("chunks/some chunk", whole)
    # PyActiveStorage puts two slashes between bucket and key.
    asked = {
        "interface_type": "s3", "url": f"{ceph.endpoint}/{ceph.bucket}{slash}chunks/some%20chunk", "dtype": "float64",
        "offset": 4, "size": values.nbytes, "shape": values.shape, "selection": [[1, 60, 2], [0, 70, 1], [3, 9, 1]],
    }  # fmt: skip
    part = values[1:60:2, :, 3:9]
    user = (ceph_cluster.KEY, ceph_cluster.SECRET)
    for operation, wanted in [("sum", math.fsum(part.flat)), ("min", part.min()), ("max", part.max())]:
        answer, status = post(up, operation, asked, user)
        assert status == 200, answer
        assert np.frombuffer(answer["bytes"], answer["dtype"]) == wanted and answer["count"] == [part.size]
    answer, status = post(up, "sum", {**asked, "axis": [0, 2]}, user)
    assert status == 200, answer
    got = np.frombuffer(answer["bytes"], answer["dtype"]).reshape(answer["shape"])
    np.testing.assert_allclose(got, part.sum(axis=(0, 2)), rtol=1e-12, atol=1e-12)


def test_the_api_of_reductionist_says_what_is_wrong(up, ceph):
    ceph.put("chunks/x", b"12345678")
    asked = {"interface_type": "s3", "url": f"{ceph.endpoint}/{ceph.bucket}/chunks/x", "dtype": "int32"}
    user = (ceph_cluster.KEY, ceph_cluster.SECRET)
    for more, who, status, why in [
        ({"url": asked["url"] + "-none"}, user, 400, "there is no"),
        ({"url": f"{ceph.endpoint}/nothing/chunks/x"}, user, 400, "there is no"),
        ({"size": 100}, user, 400, "has 8 bytes, not 100"),
        ({}, (ceph_cluster.KEY, "hidden-secret"), 401, "may not be read"),
        ({}, (ceph_cluster.OTHER_KEY, ceph_cluster.OTHER_SECRET), 401, "may not be read"),
    ]:
        message, code = post(up, "sum", {**asked, **more}, who)
        assert code == status and why in message and "chunks/x" in message, (message, code)
        assert who[1] not in message + up.errors()
