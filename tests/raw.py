"""Requests that our clients never send: actions, plain HTTP, and grants that are sealed with the key of the cluster."""

import base64
import hashlib
import hmac
import http.client
import json
import socket
import struct

import numpy as np
import pytest

flight = pytest.importorskip("pyarrow.flight", reason="pyarrow is not installed")

UNIT = 4096
NOISE = np.random.default_rng(9).bytes(5000)
HEADER = "x-gristmill-grant"


def action(nodes, name, body, address=None):
    with flight.connect(f"grpc://{address or nodes.entry}") as client:
        [result] = list(client.do_action(flight.Action(name, json.dumps(body).encode())))
        content = result.body.to_pybytes()
        return json.loads(content) if content else None


def opened(nodes, path="/file"):
    return action(nodes, "open", {"path": path})


def ask(address, method, target, grant=None, body=None, headers=None):
    """Status and body of a plain HTTP request."""
    connection = http.client.HTTPConnection(address, timeout=30)
    given = dict(headers or {})
    if grant is not None:
        given[HEADER] = grant
    try:
        connection.request(method, target, body=body, headers=given)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def refused(status, answer, *wanted):
    assert answer[0] in wanted or (not wanted and 400 <= answer[0] < 500), answer
    assert status is None or answer[0] == status, answer
    return json.loads(answer[1])["message"]


def parts(found):
    """The name of the object, and the address and place of every target."""
    file = found["info"]["file"] if "info" in found else found["file"]
    return "file-" + file["id"], file["targets"]


def unsealed(grant):
    body = grant.split(".")[0]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def text64(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def seal(nodes, grant):
    """A grant that is sealed with the key of the cluster. Otherwise only a node can make one."""
    key = bytes.fromhex((nodes.node_dir(0) / "cluster.key").read_text().strip())
    sign = lambda message: text64(hmac.digest(key, message.encode(), hashlib.sha256))
    body = text64(json.dumps(grant).encode())
    # The pass of the grant's principal follows.
    who = text64(json.dumps({name: grant.get(name) for name in ("principal", "expires")}).encode())
    return f"{body}.{sign(body)}.{who}.{sign('pass ' + who)}"


def object_bytes(content, found, place):
    file = found["info"]["file"]
    count, first = len(file["targets"]), file["first"]
    start = (place - first) % count
    return b"".join(content[at : at + UNIT] for at in range(start * UNIT, len(content), count * UNIT))


def raw(address, request: bytes, end=True) -> bytes:
    """The answer to some bytes. With `end` the sending side is closed after them."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=40) as connection:
        try:
            connection.sendall(request)
            if end:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the node stopped reading
        out = b""
        try:
            while chunk := connection.recv(65_536):
                out += chunk
        except ConnectionResetError:
            pass
        return out


def extents(*pairs):
    return b"".join(struct.pack("<QQ", *pair) for pair in pairs)
