"""Clients without any code of Gristmill: curl."""

import json
import os
import shutil
import subprocess

import pytest
from foreign import TOKEN, socket, tls, up, values  # noqa: F401


@pytest.fixture
def curl(tmp_path):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")

    def call(*args):
        """Status, headers (of the last answer) and body."""
        heads = tmp_path / "heads"
        body = tmp_path / "body"
        body.unlink(missing_ok=True)
        done = subprocess.run(
            ["curl", "-sS", "--max-time", "30", "-D", heads, "-o", body, "-w", "%{http_code}", *map(str, args)],
            capture_output=True, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, (args, done.stderr)
        headers = {}
        for line in heads.read_text().replace("\r", "").rstrip("\n").split("\n\n")[-1].splitlines()[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return int(done.stdout), headers, body.read_bytes() if body.exists() else b""

    return call


def test_curl_reads_a_file_and_parts_of_it(curl, up, values):
    content = values.tobytes()
    status, headers, body = curl(up.http("/data.f64"))
    assert (status, body) == (200, content)
    assert headers["content-length"] == str(len(content)) and headers["accept-ranges"] == "bytes"
    total = len(content)
    for asked, part in (
        ("0-0", slice(0, 1)), ("100-20000", slice(100, 20_001)), ("319999-", slice(319_999, None)),
        ("-5", slice(-5, None)), ("-999999999", slice(0, None)), ("319990-999999", slice(319_990, None)),
    ):  # fmt: skip
        status, headers, body = curl("-r", asked, up.http("/data.f64"))
        assert (status, body) == (206, content[part]), asked
        first = part.indices(total)[0]
        assert headers["content-range"] == f"bytes {first}-{first + len(body) - 1}/{total}"
        assert headers["content-length"] == str(len(body))
    for asked in ("320000-", "999999-1000000"):
        status, headers, body = curl("-r", asked, up.http("/data.f64"))
        assert status == 416 and headers["content-range"] == f"bytes */{total}"
        assert f"{total} bytes" in json.loads(body)["message"]
        assert not body.startswith(content[:8])


def test_curl_heads(curl, up):
    status, headers, body = curl("-I", up.http("/data.f64"))
    assert (status, headers["content-length"], body[:4]) == (200, "320000", b"HTTP")
    status, headers, _ = curl("-I", up.http("/absent"))
    assert status == 404


def test_curl_writes_and_removes(curl, up, tmp_path):
    for size in (0, 1, 3 << 20):
        source = tmp_path / "upload"
        source.write_bytes(os.urandom(size))
        status, _, _ = curl("-T", source, up.http("/uploaded/file"))
        assert status == 201
        assert up.get("/uploaded/file") == source.read_bytes()
        assert curl(up.http("/uploaded/file"))[2] == source.read_bytes()
    status, _, body = curl("-T", source, up.http("/uploaded"))
    assert status == 400 and "directory" in json.loads(body)["message"]
    assert curl("-X", "DELETE", up.http("/uploaded/file"))[0] == 204
    status, _, body = curl("-X", "DELETE", up.http("/uploaded/file"))
    assert status == 404 and "/uploaded/file" in json.loads(body)["message"]
    assert curl(up.http("/uploaded/file"))[0] == 404
    # The length is not given in advance.
    status, _, _ = curl("-T", source, "-H", "Transfer-Encoding: chunked", up.http("/chunked"))
    assert status == 201 and up.get("/chunked") == source.read_bytes()


def test_curl_lists(curl, up):
    status, headers, body = curl(up.http("/"))
    assert status == 200 and headers["content-type"] == "application/json"
    entries = {entry["name"]: entry["info"] for entry in json.loads(body)["entries"]}
    assert entries["dir"] is None and entries["data.f64"]["file"]["length"] == 320_000
    assert entries["data.f64"]["mode"] == "644"
    status, _, body = curl(up.http("/dir/"))
    assert [entry["name"] for entry in json.loads(body)["entries"]] == ["inner"]
    assert curl(up.http("/absent/"))[0] == 404
    status, _, body = curl(f"http://{up.entry}/health")
    assert (status, body) == (200, b"ok\n")


def test_curl_asks_for_what_no_route_takes(curl, up):
    for path in ("/nothing-here", "/files", "/objects/a/b/c"):
        for node in up.addresses().values():
            status, headers, body = curl(f"http://{node}{path}")
            assert (status, headers["content-type"]) == (404, "application/json"), path
            error = json.loads(body)
            assert error["kind"] == "not-found" and f"at {path};" in error["message"]
            assert "/files/PATH" in error["message"], "what to do"
    status, headers, body = curl(up.http("/%ff%fe"))
    assert (status, headers["content-type"]) == (400, "application/json")
    assert "UTF-8" in json.loads(body)["message"]
    for method, path in (("POST", "/files/data.f64"), ("PATCH", "/files/"), ("PUT", "/health"), ("BREW", "/health")):
        status, headers, body = curl("-X", method, f"http://{up.entry}{path}")
        assert (status, headers["content-type"]) == (405, "application/json"), (method, path)
        error = json.loads(body)
        assert error["kind"] == "usage" and method in error["message"] and path in error["message"]
        assert "Allow" in error["message"] and "GET" in headers["allow"].split(",")


def test_curl_and_names_that_need_escapes(curl, up):
    up.put("/grüße und mehr", b"escaped")
    status, _, body = curl(up.http("/gr%C3%BC%C3%9Fe%20und%20mehr"))
    assert (status, body) == (200, b"escaped")


def test_curl_asks_a_node_that_is_no_entry(curl, up):
    other = up.addresses()[1]
    status, _, body = curl(f"http://{other}/files/data.f64")
    assert status in (400, 404) and b"entry" in body, body


def test_curl_over_a_unix_socket(curl, socket, up, tmp_path):
    source = tmp_path / "upload"
    source.write_bytes(b"by way of the socket")
    at = ("--unix-socket", socket)
    assert curl(*at, "-T", source, "http://localhost/files/by-socket")[0] == 201
    assert curl(*at, "http://localhost/files/by-socket")[2] == source.read_bytes()
    assert f"uid:{os.getuid()}" in up.grist.ok("stat", up.url("/by-socket")).decode()


def test_curl_over_tls_with_a_token_from_a_file(curl, tls, tmp_path):
    header = tmp_path / "header"
    header.write_text(f"Authorization: Bearer {TOKEN}\n")
    header.chmod(0o600)
    source = tmp_path / "upload"
    source.write_bytes(b"for alice only")
    url = f"https://{tls.entry}/files/by-curl"
    ca = ("--cacert", tls.ca)
    assert curl(*ca, "-H", f"@{header}", "-T", source, url)[0] == 201
    assert curl(*ca, "-H", f"@{header}", url)[2] == source.read_bytes()
    assert tls.grist.ok("chmod", "600", tls.url("/by-curl"), env=tls.settings) == b""
    status, _, body = curl(*ca, "-H", "Authorization: Bearer a-wrong-one-of-nobody", url)
    assert status in (401, 403) and "token" in json.loads(body)["message"]
    assert "for alice" not in body.decode()
    unknown = subprocess.run(["curl", "-sS", url], capture_output=True)
    assert unknown.returncode == 60, unknown.stderr  # curl does not know the certificate authority
