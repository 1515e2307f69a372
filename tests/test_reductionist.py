"""The HTTP API of Reductionist: reductions of single chunks, as PyActiveStorage asks for them."""

import hashlib
import json
import math
import struct
import urllib.error
import urllib.request
import zlib
from base64 import b64encode

import attached
import numpy as np
import pytest
import web_servers
from cluster import Up, until

cbor2 = pytest.importorskip("cbor2", reason="cbor2 is not installed")

SHAPE = (6, 7, 8)
TYPES = ["int32", "int64", "uint32", "uint64", "float32", "float64"]


@pytest.fixture(scope="module")
def s3():
    pytest.importorskip("moto", reason="moto is not installed")
    server = web_servers.S3()
    yield server
    server.end()


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=2, args=("--outside-sources", "all", "--admin", "anonymous"))


def post(up, operation, asked, credentials=None, entry=None):
    """The answer and its status."""
    headers = {"Content-Type": "application/json"}
    if credentials:
        headers["Authorization"] = "Basic " + b64encode(":".join(credentials).encode()).decode()
    url = f"http://{entry or up.entry}/v2/{operation}/"
    request = urllib.request.Request(url, json.dumps(asked).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return cbor2.loads(answer.read()), answer.status
    except urllib.error.HTTPError as error:
        return json.loads(error.read())["error"]["message"], error.code


def reduced(up, operation, asked, credentials=None):
    """The array of an answer, decoded as PyActiveStorage does it, and the counts."""
    answer, status = post(up, operation, asked, credentials)
    assert status == 200, answer
    assert answer["byte_order"] == "little"
    return np.frombuffer(answer["bytes"], answer["dtype"]).reshape(answer["shape"]), answer["count"]


@pytest.fixture(scope="module", params=["s3", "http", "own", "attached"])
def place(request, up, s3, tmp_path_factory):
    """A function that stores bytes, and gives the fields of a request that name them, and credentials."""
    if request.param == "s3":

        def store(name, content):
            s3.put(f"chunks/{name}", content)
            # PyActiveStorage puts two slashes between bucket and key.
            fields = {"interface_type": "s3", "url": f"{s3.endpoint}/{s3.bucket}//chunks/{name}"}
            return fields, (web_servers.KEY, web_servers.SECRET)

        yield store
    elif request.param == "http":
        server = attached.made("nginx", tmp_path_factory)
        yield lambda name, content: ({"interface_type": "http", "url": server.put(name, content)}, None)
        server.end()
    elif request.param == "own":

        def store(name, content):
            up.put(f"/chunks/{name}", content, "--stripe", "64")
            return {"interface_type": "http", "url": f"http://{up.entry}/files/chunks/{name}"}, None

        yield store
    else:
        tree = attached.Mounted(tmp_path_factory.mktemp("mount"))
        up.grist.ok("attach", tree.source, up.url("/tree"))

        def store(name, content):
            tree.put(name, content)
            return {"interface_type": "https", "url": f"https://{up.entry}/files/tree/{name}"}, None

        yield store


@pytest.mark.parametrize("dtype", TYPES)
def test_all_operations_are_those_of_masked_arrays(up, place, dtype):
    random = np.random.default_rng(3)
    low = 0 if dtype.startswith("u") else -40
    values = random.integers(low, 40, SHAPE).astype(dtype)
    if dtype.startswith("f"):
        values += random.random(SHAPE).astype(dtype)
    for order in "CF":
        for byte_order in ("little", "big"):
            stored = values.astype(np.dtype(dtype).newbyteorder(byte_order[0].replace("l", "<").replace("b", ">")))
            name = f"{dtype}-{order}-{byte_order}"
            fields, credentials = place(name, b"head" + stored.tobytes(order=order) + b"tail")
            asked = {
                **fields, "dtype": dtype, "byte_order": byte_order, "order": order, "shape": SHAPE,
                "offset": 4, "size": values.nbytes, "selection": [[1, 6, 2], [0, 7, 1], [7, 0, -3]],
            }  # fmt: skip
            part = values[1:6:2, 0:7, 7:0:-3]
            for missing, masked in [
                (None, np.ma.array(part, mask=np.zeros(part.shape, bool))),
                ({"missing_value": part.flat[3].item()}, np.ma.masked_equal(part, part.flat[3])),
                ({"missing_values": [part.flat[0].item(), part.flat[5].item()]}, np.ma.masked_where(np.isin(part, part.flat[[0, 5]]), part)),
                ({"valid_range": [5, 30]}, np.ma.masked_outside(part, 5, 30)),
                ({"valid_min": 3}, np.ma.masked_less(part, 3)),
                ({"valid_max": 3}, np.ma.masked_greater(part, 3)),
            ]:
                ask = asked if missing is None else {**asked, "missing": missing}
                for axis in (None, 1, [0, 2], [0, 1, 2]):
                    given = ask if axis is None else {**ask, "axis": axis}
                    axes = tuple(axis) if isinstance(axis, list) else axis
                    counts = np.ma.count(masked, axis=axes)
                    for operation in ("sum", "min", "max", "count"):
                        got, count = reduced(up, operation, given, credentials)
                        assert np.array_equal(np.reshape(count, counts.shape), counts), (operation, axis)
                        if operation == "count":
                            want = counts
                        elif operation == "sum" and dtype.startswith("f"):
                            want = np.ma.sum(masked.astype("f8"), axis=axes).astype(dtype)
                        elif operation == "sum":
                            want = np.ma.sum(masked, axis=axes, dtype=dtype)
                        else:
                            want = getattr(np.ma, operation)(masked, axis=axes)
                        assert got.shape == np.shape(want) and got.dtype == ("int64" if operation == "count" else dtype)
                        known = counts > 0
                        want = np.ma.filled(np.ma.asarray(want), 0)
                        close = np.isclose(got, want, rtol=1e-6, atol=0) if dtype == "float32" else got == want
                        if operation == "sum" and dtype == "float64":
                            close = np.isclose(got, want, rtol=1e-15, atol=1e-14)
                        assert np.all(close | ~known), (operation, axis, missing, got, want)
                if order == "C":
                    got, count = reduced(up, "select", ask, credentials)
                    assert np.array_equal(got, part) and count == [np.ma.count(masked)]


def test_compressed_and_shuffled_chunks(up, place):
    values = np.random.default_rng(4).normal(size=(50, 40))
    whole = values.tobytes()
    shuffled = np.frombuffer(whole, "u1").reshape(-1, 8).T.tobytes()
    import gzip

    for compression, content in [("zlib", zlib.compress(shuffled)), ("gzip", gzip.compress(shuffled))]:
        fields, credentials = place(f"packed.{compression}", content)
        asked = {
            **fields, "dtype": "float64", "shape": [50, 40], "compression": {"id": compression},
            "filters": [{"id": "shuffle", "element_size": 8}], "size": len(content), "offset": 0,
        }  # fmt: skip
        got, count = reduced(up, "sum", asked, credentials)
        assert got == math.fsum(values.flat) and count == [2000]
        message, status = post(up, "sum", {**asked, "size": len(content) - 5}, credentials)
        assert status == 400 and "decoded" in message
    fields, credentials = place("plain", whole)
    assert reduced(up, "max", {**fields, "dtype": "float64"}, credentials)[0] == values.max()
    message, status = post(up, "max", {**fields, "dtype": "float64", "offset": 16, "size": len(whole)}, credentials)
    assert status == 400 and "has 16000 bytes, not 16016" in message


def blosc2_chunks():
    """Chunks that the library of Blosc 2 made, with their elements."""
    blosc2 = pytest.importorskip("blosc2", reason="blosc2 is not installed")
    none, shuffle, bits = blosc2.Filter.NOFILTER, blosc2.Filter.SHUFFLE, blosc2.Filter.BITSHUFFLE
    delta, cut = blosc2.Filter.DELTA, blosc2.Filter.TRUNC_PREC
    random = np.random.default_rng(11)
    sparse = np.where(random.random(5003) < 0.02, random.normal(size=5003), 0)
    values = {
        "f8": random.normal(size=5003), "f4": np.cumsum(random.normal(size=4001)).astype("f4"), "sparse": sparse,
        "i8": np.arange(3000) ** 2, "i4": np.repeat(np.arange(40, dtype="i4"), 101), "u4": random.integers(0, 9, 777, "u4"),
        "ones": np.full(2000, 0x01010101, "i4"), "one": np.array([7.5]),
    }  # fmt: skip
    codecs = [codec for codec in blosc2.Codec if codec.name in ("BLOSCLZ", "LZ4", "LZ4HC", "ZLIB", "ZSTD")]
    assert len(codecs) == 5
    for name, array in values.items():
        for codec in codecs:
            for filters, meta in (([none], [0]), ([shuffle], [0]), ([bits], [0]), ([shuffle], [2]), ([delta, shuffle], [0, 0]), ([cut, bits], [11, 0])):  # fmt: skip
                if cut in filters and array.dtype.kind != "f":
                    continue
                for block in (0, 1024):
                    how = {"codec": codec, "filters": filters, "filters_meta": meta, "typesize": array.itemsize, "clevel": 5}
                    chunk = blosc2.compress2(array, blocksize=block, splitmode=blosc2.SplitMode.ALWAYS_SPLIT if block else blosc2.SplitMode.AUTO_SPLIT, **how)  # fmt: skip
                    yield f"{name} {codec.name} {filters} {block}", chunk, np.frombuffer(blosc2.decompress2(chunk), array.dtype)
    yield "stored", blosc2.compress2(array := random.normal(size=99), clevel=0, typesize=8), array
    # Chunks whose elements are all alike have no blocks.
    for dtype in ("f4", "f8"):
        size, value = np.dtype(dtype).itemsize, np.array([2.5], dtype)
        for special, alike, after in ((1, 0, b""), (2, np.nan, b""), (3, 2.5, value.tobytes())):
            chunk = struct.pack("<4B3I15xB", 5, 1, 5, size, 500 * size, 500 * size, 32 + len(after), special << 4) + after
            elements = np.full(500, alike, dtype)
            assert blosc2.decompress2(chunk) == elements.tobytes()
            yield f"alike {alike} {dtype}", chunk, elements



def test_chunks_of_blosc2(up):
    names = {"f8": "float64", "f4": "float32", "i8": "int64", "i4": "int32", "u4": "uint32"}
    chunks = list(blosc2_chunks())
    whole, at = b"".join(chunk for _, chunk, _ in chunks), 0
    up.put("/chunks/blosc2", whole)
    for name, chunk, elements in chunks:
        asked = {
            "interface_type": "http", "url": f"http://{up.entry}/files/chunks/blosc2", "offset": at, "size": len(chunk),
            "dtype": names[elements.dtype.str[1:]], "shape": [elements.size], "compression": {"id": "blosc2"},
        }  # fmt: skip
        got = reduced(up, "select", asked)[0]
        assert got.tobytes() == elements.tobytes(), name
        at += len(chunk)
    chunk, elements = next((chunk, elements) for name, chunk, elements in chunks if name.startswith("i8 ZSTD"))
    # It is cut, or has another version, a dictionary, or an unknown filter.
    for change in (chunk[:-1], chunk[:31], b"\7" + chunk[1:], chunk[:31] + b"\1" + chunk[32:], chunk[:16] + b"\x20" + chunk[17:]):
        url = up.put("/chunks/wrong", change)
        asked.update(url=f"http://{up.entry}/files/chunks/wrong", offset=0, size=len(change), dtype=names[elements.dtype.str[1:]], shape=[elements.size])  # fmt: skip
        message, status = post(up, "select", asked)
        assert status == 400 and "blosc2" in message, (url, message)
        up.grist.ok("rm", url)


def test_infinities_alone_are_their_own_extremes(up, place):
    fields, credentials = place("infinite", np.full(6, -np.inf, "f4").tobytes())
    asked = {**fields, "dtype": "float32", "shape": [2, 3], "axis": 1}
    got, count = reduced(up, "max", asked, credentials)
    assert np.all(got == -np.inf) and count == [3, 3]


def test_shapes_and_counts_as_bytes(up, place):
    fields, credentials = place("counted", np.arange(6, dtype="i4").tobytes())
    asked = {**fields, "dtype": "int32", "shape": [2, 3], "axis": 0}
    answer, _ = post(up, "sum", {**asked, "option_shape_as_bytes": True, "option_count_as_bytes": True}, credentials)
    assert np.frombuffer(answer["shape_as_bytes"], "u8").tolist() == [3] and answer["shape"] == []
    assert np.frombuffer(answer["count_as_bytes"], "i8").tolist() == [2, 2, 2] and answer["count"] == []


def test_errors_have_the_form_of_reductionist(up, place, s3):
    fields, credentials = place("error", b"12345678")
    asked = {**fields, "dtype": "int32"}
    for operation, more, status, why in [
        ("mean", {}, 404, "no operation 'mean'"),
        ("sum", {"extra": 1}, 400, "extra"),
        ("sum", {"dtype": "int16"}, 400, "int16"),
        ("sum", {"size": 100}, 400, "has 8 bytes, not 100"),
        ("sum", {"offset": 100, "size": 4}, 400, "has 8 bytes, not 104"),
        ("sum", {"url": fields["url"] + "-none"}, 400, "no"),
    ]:
        message, code = post(up, operation, {**asked, **more}, credentials)
        assert code == status and why in message, (message, code)


def test_credentials_go_to_the_source_and_nowhere_else(up, s3):
    s3.put("private", b"12345678")
    asked = {"interface_type": "s3", "url": f"{s3.endpoint}/{s3.bucket}/private", "dtype": "int32"}
    assert post(up, "count", asked, ("wrong:name", "hidden-secret"))[1] in (200, 400, 401)
    message, status = post(up, "count", {**asked, "url": "http://127.0.0.1:1/b/k"}, ("name", "hidden-secret"))
    assert status == 500 and "hidden-secret" not in message
    asked = {"interface_type": "http", "url": f"http://{up.entry}/files/none", "dtype": "int32"}
    assert post(up, "count", asked, ("name", "hidden-secret"))[1] == 400
    assert "hidden-secret" not in up.errors()


def test_a_login_goes_to_its_web_server_only(up, tmp_path_factory):
    server = attached.made("nginx", tmp_path_factory)
    try:
        server.put("private/x.u4", np.arange(6, dtype="u4").tobytes())
        server.put("private/elsewhere/x.u4", np.arange(6, dtype="u4").tobytes())
        login = (web_servers.KEY, web_servers.SECRET)
        for more in ({}, {"size": 24}):
            def asked(path, more=more):
                return {"interface_type": "http", "url": server.url(path), "dtype": "uint32", **more}

            assert reduced(up, "sum", asked("private/x.u4"), login)[0] == 15
            for given in (None, ("me", "wrong")):
                message, status = post(up, "sum", asked("private/x.u4"), given)
                assert status == 401 and "wants a login" in message and "wrong" not in message
            # The same server under another name is another server.
            message, status = post(up, "sum", asked("elsewhere/x.u4"), login)
            assert status == 401 and web_servers.SECRET not in message
        assert web_servers.SECRET not in up.process.err.read_text()
    finally:
        server.end()


def test_errors_name_the_field(up):
    asked = {"interface_type": "s3", "url": "http://127.0.0.1:9/bucket/x", "dtype": "int32"}
    for more, field in [
        ({"offset": -1}, "offset"),
        ({"byte_order": "middle"}, "byte_order"),
        ({"shape": [1, "x"]}, "shape[1]"),
        ({"missing": {"missing_value": 2**40}}, "missing"),
        ({"missing": {"valid_range": [2, 1]}}, "missing"),
        ({"unknown": 1}, "unknown"),
    ]:
        message, status = post(up, "sum", {**asked, **more})
        assert status == 400 and field in message, message


def test_addresses_of_the_node_are_refused(clusters, s3):
    up = clusters(Up, nodes=1)
    s3.put("local", b"12345678")
    for interface, url in [("s3", f"{s3.endpoint}/{s3.bucket}/local"), ("http", f"{s3.endpoint}/local")]:
        message, status = post(up, "sum", {"interface_type": interface, "url": url, "dtype": "int32"})
        assert status == 401 and "address of this machine" in message
    # The files of the cluster are at its own address.
    url = up.put("/x.i4", np.arange(4, dtype="i4").tobytes())
    assert url
    asked = {"interface_type": "http", "url": f"http://{up.entry}/files/x.i4", "dtype": "int32"}
    assert reduced(up, "sum", asked)[0] == 6


def test_a_node_that_reads_no_other_servers(nodes_of_test, s3):
    up = nodes_of_test(Up, nodes=1, args=("--outside-sources", "none"))
    asked = {"interface_type": "s3", "url": "https://host.example/bucket/key", "dtype": "int32"}
    message, status = post(up, "sum", asked)
    assert status == 400 and "files of the cluster only" in message
    up.put("/x.i4", np.arange(4, dtype="i4").tobytes())
    asked = {"interface_type": "http", "url": f"http://{up.entry}/files/x.i4", "dtype": "int32"}
    assert reduced(up, "sum", asked)[0] == 6


def test_files_that_a_user_may_not_read(nodes_of_test):
    up = nodes_of_test(Up, nodes=1)
    up.put("/closed.i4", b"12345678", "--mode", "000")
    asked = {"interface_type": "http", "url": f"http://{up.entry}/files/closed.i4", "dtype": "int32"}
    message, status = post(up, "sum", asked)
    assert status == 401 and "may not read" in message


def test_credentials_of_storage_can_be_an_identity(nodes_of_test, s3, tmp_path):
    alice, bob = ("ALICEKEY", "alices-secret-key-of-storage"), ("BOBKEY", "too-short")
    token = "a-token-of-alice-for-tests"
    tokens, users = tmp_path / "tokens", tmp_path / "users"

    def write(path, lines):
        new = path.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_text("".join(f"{line}\n" for line in lines))
        new.rename(path)

    def line(name, pair):
        return f"{name} {hashlib.sha256(':'.join(pair).encode()).hexdigest()}"

    write(tokens, [f"alice {token}"])
    write(users, ["# keys of storage", line("alice", alice), line("bob", bob)])
    options = ("--tokens", tokens, "--source-users", users, "--require-identity", "--outside-sources", "all")
    up = nodes_of_test(Up, nodes=2, args=options, env={"GRISTMILL_TOKEN": token})
    up.put("/closed.i4", np.arange(4, dtype="i4").tobytes(), "--mode", "600", env={"GRISTMILL_TOKEN": token})
    asked = {"interface_type": "http", "url": f"http://{up.entry}/files/closed.i4", "dtype": "int32"}
    assert reduced(up, "sum", asked, alice)[0] == 6
    for credentials in (None, bob, ("ALICEKEY", "not-the-secret-of-alice"), ("", "")):
        message, status = post(up, "sum", asked, credentials)
        assert status == 401 and "who you are" in message, message
        assert ("list your credentials" in message) == (credentials is not None)
    # They go to the source as well, and identify nobody in other requests.
    s3.put("identity", b"1234")
    outside = {"interface_type": "s3", "url": f"{s3.endpoint}/{s3.bucket}/identity", "dtype": "int32"}
    assert post(up, "count", outside)[1] == 401
    # The server of S3 here takes all credentials.
    assert reduced(up, "count", outside, alice)[0] == 1
    for interface in ("http", "https"):
        message, status = post(up, "count", {**outside, "interface_type": interface}, alice)
        assert status == 400 and "not sent without encryption" in message and alice[1] not in message
    basic = {"Authorization": "Basic " + b64encode(":".join(alice).encode()).decode()}
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(asked["url"], headers=basic), timeout=60)
    assert caught.value.code in (401, 403)
    # A user who is taken out of the file is nobody after a moment. A file that cannot be used changes nothing.
    write(users, [line("alice", (alice[0], alice[1] + "2"))])
    until(lambda: post(up, "sum", asked, alice)[1] == 401, "the credentials are not known any more")
    write(users, ["alice 1234"])
    assert reduced(up, "sum", asked, (alice[0], alice[1] + "2"))[0] == 6


@pytest.mark.parametrize("lines, mode, text", [
    ("alice 1234\n", 0o600, "line 1: a hash has 64 hexadecimal digits"),
    ("\nalice\n", 0o600, "line 2: a hash has 64"),
    (f"alice {'+f' * 32}\n", 0o600, "line 1: a hash"),
    (f"alice/x {'0f' * 32}\n", 0o600, "line 1: the name is not valid; write NAME HASH"),
    (f"alice {'0f' * 32}\n", 0o644, "chmod 600"),
    (f"alice {'0f' * 32}\n\nbob {'0F' * 32}\n", 0o600, "line 3: another user has the same one"),
])  # fmt: skip
def test_a_file_of_users_of_storage_that_is_wrong(grist, tmp_path, lines, mode, text):
    users = tmp_path / "users"
    users.touch(mode=mode)
    users.write_text(lines)
    given = ("serve", "--target", tmp_path / "t", "--listen", "127.0.0.1:0", "--source-users", users)
    assert text in grist.refuses(2, *given)


def test_the_client_of_pyactivestorage(up, s3):
    reductionist = pytest.importorskip("activestorage.reductionist", reason="PyActiveStorage is not installed")
    values = np.random.default_rng(9).normal(size=(20, 30)).astype("f4")
    s3.put("client", b"1234" + values.tobytes())
    session = reductionist.get_session(web_servers.KEY, web_servers.SECRET, None)
    for operation in ("sum", "min", "max", "count", "mean", None):
        for axis in ((0, 1), (0,)):
            got, count = reductionist.reduce_chunk(
                session, f"http://{up.entry}", f"{s3.endpoint}/{s3.bucket}/client", 4, values.nbytes, None, None,
                (None, None, None, None), values.dtype, values.shape, "C", (slice(2, 18, 1), slice(0, 30, 2)), axis, operation,
            )  # fmt: skip
            part = values[2:18, 0:30:2]
            want = {"sum": part.astype("f8").sum(axis), "mean": part.astype("f8").sum(axis), "min": part.min(axis), "max": part.max(axis), "count": np.ma.count(part, axis), None: part}[operation]
            np.testing.assert_allclose(got, want, rtol=1e-6)
