"""Attached trees that each user reads with credentials of his own."""

import json
import math
import os
import urllib.error
import urllib.request
from base64 import b64encode, urlsafe_b64encode

import attached
import numpy as np
import pytest
import web_servers
from cluster import Up

import gristmill as gm

cbor2 = pytest.importorskip("cbor2", reason="cbor2 is not installed")

RIGHT = {"GRISTMILL_SOURCE_ID": web_servers.KEY, "GRISTMILL_SOURCE_SECRET": web_servers.SECRET}


@pytest.fixture(scope="module")
def tree(clusters, tmp_path_factory):
    """The folder of an nginx that wants a login, attached as /p. The nodes have no login."""
    tree = attached.made("nginx", tmp_path_factory)
    try:
        tree.up = clusters(Up, nodes=2, args=("--admin", "anonymous", "--outside-cache", "64MiB"))
        options = ("--user-credentials", "--allow-local")
        tree.said = tree.up.grist.ok("attach", tree.url("private"), tree.up.url("/p"), *options).decode()
        tree.numbers = np.random.default_rng(1).normal(size=2_500_000)
        tree.put("private/x.f64", tree.numbers.tobytes())
        folder = tmp_path_factory.mktemp("made")
        tree.values = attached.made_temperatures(folder)
        tree.put("private/t.nc", (folder / "t.nc").read_bytes())
        tree.put_folder(folder / "t3.zarr", "private/t3.zarr")
        yield tree
    finally:
        tree.end()


def test_what_attach_says(tree):
    shown = tree.up.grist.ok("attach", "--list", tree.up.url()).decode()
    assert "with credentials of users" in shown
    listed = json.loads(tree.up.grist.ok("attach", "--list", tree.up.url(), "--json"))["trees"][0]
    assert listed["user_credentials"] and not listed["anonymous"]


def test_everything_works_with_the_credentials_of_the_user(tree):
    grist, url = tree.up.grist, tree.up.url
    run = ("sum", url("/p/x.f64"), "--type", "f64")
    for place in ("storage", "client", "auto"):
        answer = grist.answer(*run, "--place", place, env=RIGHT)
        assert answer["result"]["sum"] == pytest.approx(tree.numbers.sum(), rel=1e-12)
    assert len(json.loads(grist.ok("stat", url("/p/x.f64"), "--json", env=RIGHT))["targets"]) == 2
    for name in ("t.nc", "t3.zarr"):
        answer = grist.answer("mean", url(f"/p/{name}"), "--var", "t", "--axes", "t", "--place", "storage", env=RIGHT)
        np.testing.assert_allclose(answer["result"]["mean"]["values"], tree.values.mean(0).ravel(), rtol=1e-5)
    assert grist.ok("ls", url("/p"), env=RIGHT).decode().split() == ["t.nc", "t3.zarr/", "x.f64"]
    assert json.loads(grist.ok("du", url("/p"), "--json", env=RIGHT))["files"] > 3
    assert grist.ok("get", url("/p/x.f64"), "-", env=RIGHT) == tree.numbers.tobytes()


def test_python_takes_them_from_the_environment(tree, monkeypatch):
    with pytest.raises(gm.Denied, match="GRISTMILL_SOURCE_ID"):
        gm.run("count", tree.up.url("/p/x.f64"), type="f64")
    for name, value in RIGHT.items():
        monkeypatch.setenv(name, value)
    assert gm.run("count", tree.up.url("/p/x.f64"), type="f64")["count"] == tree.numbers.size
    data = gm.open_dataset(tree.up.url("/p/t.nc"))
    np.testing.assert_allclose(data["t"].mean("t").values, tree.values.mean(0), rtol=1e-5)
    monkeypatch.setenv("GRISTMILL_SOURCE_SECRET", "wrong")
    with pytest.raises(gm.Denied) as caught:
        gm.run("count", tree.up.url("/p/x.f64"), type="f64")
    assert "401" in str(caught.value) and "wrong" not in str(caught.value)


def test_nobody_reads_with_the_credentials_of_others(tree):
    grist, url = tree.up.grist, tree.up.url
    run = ("run", "count", url("/p/x.f64"), "--type", "f64")
    grist.ok(*run, env=RIGHT)
    for env in ({}, {**RIGHT, "GRISTMILL_SOURCE_SECRET": "not-the-one"}, {**RIGHT, "GRISTMILL_SOURCE_ID": "nobody"}):
        for place in ("storage", "client"):
            text = grist.refuses(1, *run, "--place", place, env=env)
            assert "GRISTMILL_SOURCE_ID" in text or "401" in text, text
            assert "not-the-one" not in text and "nobody" not in text
    # The nodes keep nothing for others.
    assert not [path for path in tree.up.folder.glob("store/node*/outside-cache/??/*") if path.is_file()]
    text = grist.refuses(2, *run, env={"GRISTMILL_SOURCE_ID": "alice"})
    assert "belong together" in text


def test_secrets_are_nowhere_on_disk(tree):
    tree.up.grist.ok("run", "count", tree.up.url("/p/x.f64"), "--type", "f64", env=RIGHT)
    tree.up.grist.refuses(2, "run", "count", tree.up.url("/p/nothing"), "--type", "f64", env=RIGHT)
    for path in tree.up.folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert web_servers.SECRET.encode() not in content, path
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) in tree.up.pids().values():
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                assert web_servers.SECRET.encode() not in file.read()


def test_what_is_refused(tree, tmp_path):
    grist, url = tree.up.grist, tree.up.url
    for source, text in [
        ("gs://bucket", "s3:// and https:// only"),
        ("az://container", "s3:// and https:// only"),
        ("http://example.org/data", "over https only"),
        ("http://127.0.0.1.example.org/data", "over https only"),
        (tmp_path, "a mount has no"),
    ]:
        assert text in grist.refuses(2, "attach", source, url("/q"), "--user-credentials")
    assert "--anonymous" in grist.refuses(2, "attach", "s3://bucket", url("/q"), "--user-credentials", "--anonymous")


def test_buckets_are_those_of_the_server_that_the_nodes_know(clusters, tmp_path_factory):
    bucket = attached.made("s3", tmp_path_factory)
    try:
        up = clusters(Up, nodes=2, args=("--admin", "anonymous"), env=bucket.env)
        options = ("--user-credentials", "--allow-local")
        # With credentials a name that is wrong is noticed.
        assert "there is no" in up.grist.refuses(2, "attach", "s3://nothing", up.url("/n"), *options, env=RIGHT)
        up.grist.ok("attach", bucket.source, up.url("/b"), *options)
        tree = json.loads(up.grist.ok("attach", "--list", up.url(), "--json"))["trees"][0]
        assert (tree["endpoint"], tree["region"]) == (bucket.endpoint, web_servers.REGION)
        bucket.put("x.f64", np.arange(10.0).tobytes())
        run = ("sum", up.url("/b/x.f64"), "--type", "f64", "--place", "storage")
        assert up.grist.answer(*run, env=RIGHT)["result"]["sum"] == 45
        # No header has such letters.
        for wrong in ({"GRISTMILL_SOURCE_ID": "m\u00fcller"}, {"GRISTMILL_SOURCE_TOKEN": "two\nlines"}):
            text = up.grist.refuses(1, "run", *run, env={**RIGHT, **wrong})
            assert "letters that keys do not have" in text and "panicked" not in text, text
        assert "panicked" not in up.errors()
    finally:
        bucket.end()


def reduction(entry, url, headers, size=80):
    """The answer of a request for a sum in the API of Reductionist, and its status."""
    asked = {"interface_type": "http", "url": url, "dtype": "float64", "byte_order": "little", "offset": 0, "size": size}
    request = urllib.request.Request(f"http://{entry}/v2/sum/", json.dumps(asked).encode(), headers)
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return np.frombuffer(cbor2.loads(answer.read())["bytes"]).item(), answer.status
    except urllib.error.HTTPError as error:
        return json.loads(error.read())["error"]["message"], error.code


def source_header(secret=web_servers.SECRET):
    content = json.dumps({"id": web_servers.KEY, "secret": secret, "token": None}).encode()
    return {"x-gristmill-source": urlsafe_b64encode(content).decode().rstrip("=")}


def basic(secret=web_servers.SECRET):
    return {"Authorization": "Basic " + b64encode(f"{web_servers.KEY}:{secret}".encode()).decode()}


def test_a_token_and_credentials_of_a_source_in_one_request(tree, clusters, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("alice a-token-of-alice-0123456789abcdef\n")
    tokens.chmod(0o600)
    nodes = clusters(Up, nodes=1, args=("--outside-sources", "all", "--tokens", tokens, "--require-identity"))
    token = {"Authorization": "Bearer a-token-of-alice-0123456789abcdef"}
    url = tree.url("private/x.f64")
    wanted = math.fsum(tree.numbers[:10])
    assert reduction(nodes.entry, url, {**token, **source_header()}) == (wanted, 200)
    for headers, text in [
        (token, "may not be read"),
        ({**token, **source_header("not-the-one")}, "may not be read"),
        (source_header(), "needs to know who you are"),
        ({**token, "x-gristmill-source": "!"}, "credentials of a source"),
    ]:
        message, status = reduction(nodes.entry, url, headers)
        assert status in (400, 401, 403) and text in message and "not-the-one" not in message, (message, status)


def test_chunks_of_a_tree_that_is_read_with_credentials_of_users(tree):
    url = f"http://{tree.up.entry}/files/p/x.f64"
    wanted = math.fsum(tree.numbers[:10])
    for headers in (basic(), source_header()):
        assert reduction(tree.up.entry, url, headers) == (wanted, 200)
    for headers in ({}, basic("not-the-one")):
        message, status = reduction(tree.up.entry, url, headers)
        assert status == 401 and "not-the-one" not in message, (message, status)


def fetched(tree, path, headers):
    """The answer of `/files/`, and its status."""
    request = urllib.request.Request(f"http://{tree.up.entry}/files{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read(), answer.status
    except urllib.error.HTTPError as error:
        return error.read(), error.code


def test_files_over_http(tree):
    content = tree.numbers.tobytes()
    assert fetched(tree, "/p/x.f64", source_header()) == (content, 200)
    part = {**source_header(), "Range": "bytes=16777000-16778999"}
    assert fetched(tree, "/p/x.f64", part) == (content[16777000:16779000], 206)
    listed, status = fetched(tree, "/p/", source_header())
    assert status == 200 and {entry["name"] for entry in json.loads(listed)["entries"]} == {"t.nc", "t3.zarr", "x.f64"}
    for path in ("/p/x.f64", "/p/"):
        for headers in ({}, source_header("not-the-one")):
            said, status = fetched(tree, path, headers)
            assert status == 403 and b"not-the-one" not in said, (path, said)


def test_requests_by_path_over_flight(tree):
    flight = pytest.importorskip("pyarrow.flight", reason="pyarrow is not installed")
    asked = json.dumps({"gristmill": 1, "kernel": "sum", "path": "/p/x.f64", "type": "f64"})
    header = [(name.encode(), value.encode()) for name, value in source_header().items()]
    wrong = [(name.encode(), value.encode()) for name, value in source_header("not-the-one").items()]
    with flight.connect(f"grpc://{tree.up.entry}") as client:
        options = flight.FlightCallOptions(headers=header)
        table = client.do_get(flight.Ticket(asked), options).read_all()
        assert table.column("sum").to_pylist() == [pytest.approx(tree.numbers.sum(), rel=1e-12)]
        info = client.get_flight_info(flight.FlightDescriptor.for_path("p", "x.f64"), options)
        assert info.total_bytes == tree.numbers.nbytes
        names = {info.descriptor.path[-1].decode() for info in client.list_flights(b"/p", options)}
        assert names == {"t.nc", "x.f64"}
        for headers in ([], wrong):
            for call in (
                lambda options: client.do_get(flight.Ticket(asked), options).read_all(),
                lambda options: client.get_flight_info(flight.FlightDescriptor.for_command(asked), options),
                lambda options: list(client.list_flights(b"/p", options)),
            ):
                with pytest.raises((flight.FlightError, KeyError, OSError)) as caught:
                    call(flight.FlightCallOptions(headers=headers))
                assert "not-the-one" not in str(caught.value)
