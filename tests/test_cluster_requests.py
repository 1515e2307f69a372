"""Tickets and HTTP requests that make no sense: the nodes refuse each of them and still answer others."""

import hashlib
import hmac
import json
import resource
import socket
import time

import pytest
from cluster import Nodes
from raw import NOISE, UNIT, action, ask, flight, np, opened, parts, raw, text64

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(scope="module")
def content():
    return np.random.default_rng(1).normal(size=30_000).tobytes()


@pytest.fixture(scope="module")
def nodes(clusters, content):
    nodes = clusters(Nodes, nodes=2)
    nodes.put("/file", content, "--stripe", UNIT)
    nodes.put("/other", b"12345678" * 1000, "--stripe", UNIT)
    return nodes


@pytest.fixture(autouse=True)
def answers_as_before(nodes, content):
    """After the requests of the test, the nodes still answer, and the requests have changed nothing."""
    pids = nodes.pids()
    yield
    assert nodes.pids() == pids and all(process.running() for process in nodes.running.values())
    assert nodes.get("/file") == content
    answer = nodes.grist.answer("count", nodes.url("/file"), "--type", "f64", "--place", "storage")
    assert answer["result"] == {"count": 30_000}


def do_get(nodes, ticket, address=None):
    with flight.connect(f"grpc://{address or nodes.entry}") as client:
        return client.do_get(flight.Ticket(ticket)).read_all().to_pylist()


RUN = {"gristmill": 1, "kernel": "sum", "path": "/file", "type": "f64"}


@pytest.mark.parametrize(
    "ticket",
    [
        b"", b"{", b"null", b"[]", b"1", b'"x"', b"\0", b"\xff" * 100, b"{}", b'{"gristmill":1}', b'{"fold":{}}',
        b'{"fold":null}', b'{"fold":1}', b"[" * 100_000, b'{"a":' * 100_000, b" " * (1 << 20),
        json.dumps(RUN | {"gristmill": -1}).encode(), json.dumps(RUN | {"skip": -1}).encode(),
        json.dumps(RUN | {"range": [1]}).encode(), json.dumps(RUN | {"range": [2**64, 1]}).encode(),
        json.dumps(RUN | {"record": 0}).encode(), json.dumps(RUN | {"record": 2**63}).encode(),
        json.dumps(RUN | {"skip": 2**64 - 1, "record": 2**64 - 8}).encode(),
        json.dumps(RUN | {"params": {str(n): 1 for n in range(65)}}).encode(),
        json.dumps(RUN | {"path": "file"}).encode(), json.dumps(RUN | {"path": "/../file"}).encode(),
        json.dumps(RUN | {"path": "/" + "x" * (1 << 20)}).encode(), json.dumps(RUN | {"place": "moon"}).encode(),
        json.dumps(RUN | {"kernel": "x" * (1 << 20)}).encode(),
    ],
    ids=lambda ticket: f"{len(ticket)}-{hashlib.sha256(ticket).hexdigest()[:8]}",
)  # fmt: skip
def test_tickets_that_are_none(nodes, ticket):
    with pytest.raises(pyarrow.ArrowInvalid) as error:
        do_get(nodes, ticket)
    assert len(str(error.value)) < 4000, "a message does not repeat what was sent"


def test_tickets_of_another_version_say_so(nodes):
    for ticket in (RUN | {"gristmill": 2}, RUN | {"gristmill": 2, "news": []}, {"fold": {"gristmill": 7}}):
        with pytest.raises(pyarrow.ArrowInvalid, match="version"):
            do_get(nodes, json.dumps(ticket).encode())


def test_a_ticket_that_is_too_long(nodes):
    with pytest.raises(pyarrow.ArrowException):
        do_get(nodes, json.dumps(RUN | {"path": "/" + "x" * (20 << 20)}).encode())


def test_folds_that_ask_for_too_much(nodes):
    found = opened(nodes)
    _, targets = parts(found)
    fold = {"gristmill": 1, "grant": found["grant"], "kernel": "count", "params": [], "max_record": 1 << 20,
            "input": {"type": "f64"}, "targets": [0], "round": 0, "select": [0, 30_000]}  # fmt: skip
    address = targets[0]["address"]
    assert do_get(nodes, json.dumps({"fold": fold}).encode(), address)
    far = {"address": "192.0.2.1:1", "targets": [1]}
    for change in (
        {"targets": []}, {"targets": [1]}, {"targets": [7]}, {"targets": [0, 0]}, {"depth": 99}, {"rest": [far]},
        {"rest": [{"address": address, "targets": [0]}]}, {"rest": [{"address": "nonsense", "targets": [1]}]},
        {"select": [5, 1]}, {"select": [0, 2**64 - 1]}, {"max_record": 2**64 - 1}, {"max_record": 0},
        {"shared": "AAAA"}, {"shared": "!"}, {"kernel": "nosuch"}, {"grant": found["grant"][:-3]}, {"grant": ""},
        {"input": {"type": "f64", "record": 2**60}}, {"round": 5}, {"kernel": "histogram", "round": 1},
        {"unheard": 1}, {"params": [["a", "b"]] * 70},
    ):  # fmt: skip
        try:
            answer = do_get(nodes, json.dumps({"fold": fold | change}).encode(), address)
        except flight.FlightUnavailableError as error:
            assert "rest" in change, (change, error)
        except (pyarrow.ArrowException, KeyError) as error:
            assert str(error), change
        else:
            # Some changes may get an answer: more records than there are, an empty selection, other bounds.
            assert set(change) & {"select", "max_record", "shared", "round", "targets"}, (change, answer)


@pytest.mark.parametrize(
    "target",
    [
        "/objects/../cluster.key", "/objects/%2e%2e/cluster.key", "/objects/..%2f..%2fcluster.key",
        "/objects/%2e%2e%2fcluster.key", "/objects//etc/passwd", "/objects/", "/objects", "/files/../cluster.key",
        "/files/%2e%2e/cluster.key", "/files/..%2fnode0%2fcluster.key", "/files/%00", "/files/a%0ab", "/%2e%2e/x",
        "//", "/files//file", "/files/%ff%fe", "/../../etc/passwd", "/files/./file",
    ],
)  # fmt: skip
def test_paths_lead_nowhere_else(nodes, target):
    key = (nodes.node_dir(0) / "cluster.key").read_bytes().strip()
    for address in nodes.listen.values():
        for method in ("GET", "PUT", "DELETE"):
            head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            answer = raw(address, head.encode(), end=False)
            status = int(answer.split(b" ")[1])
            assert 400 <= status < 500, (address, method, answer[:300])
            assert key not in answer and b"root:" not in answer
    assert (nodes.node_dir(0) / "cluster.key").read_bytes().strip() == key


@pytest.mark.parametrize(
    "request_",
    [
        b"\r\n" * 10, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 1000, NOISE[:1000], b"PRI * HTTP/2.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + NOISE, b"\x16\x03\x01\x02\x00" + NOISE[:512],
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * (1 << 20) + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 100_000 + b"\r\n",
        b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PUT /files/x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
        b"PUT /files/x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\nabc",
        b"PUT /files/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"PUT /files/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
        b"PUT /files/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc",
        b"PUT /files/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"PUT /files/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc",
    ],
    ids=lambda request: f"{len(request)}-{hashlib.sha256(request).hexdigest()[:8]}",
)  # fmt: skip
def test_requests_that_are_none(nodes, request_):
    for address in nodes.listen.values():
        answer = raw(address, request_)
        if answer.startswith(b"HTTP/1.1 "):
            assert 400 <= int(answer.split(b" ")[1]) < 500, answer[:300]
    # An unfinished upload makes no file.
    with pytest.raises(KeyError):
        action(nodes, "stat", {"path": "/x"})


def test_a_grant_that_is_too_long(nodes):
    name, targets = parts(opened(nodes))
    answer = ask(targets[0]["address"], "GET", f"/objects/{name}", "A" * 300_000)
    assert 400 <= answer[0] < 500, answer


def test_other_methods(nodes):
    for method in ("POST", "PATCH", "TRACE", "OPTIONS", "BREW"):
        assert 400 <= ask(nodes.entry, method, "/files/file")[0] < 500


PLACES = 1024  # transport::MAX_CONNECTIONS


@pytest.fixture
def many_files():
    """Allows this process more connections than a node takes."""
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4 * PLACES), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))


def test_quiet_connections_leave_room_for_others_however_many(nodes, content, many_files):
    host, _, port = nodes.entry.rpartition(":")
    quiet = [socket.create_connection((host, int(port)), timeout=30) for _ in range(PLACES + 50)]
    try:
        for connection in quiet[: PLACES // 2]:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost")
        for _ in range(3):
            assert nodes.get("/file") == content
    finally:
        for connection in quiet:
            connection.close()


def test_an_action_that_is_none_is_told_what_there_is(nodes):
    with pytest.raises(pyarrow.ArrowInvalid) as error:
        action(nodes, "melt" * 1000, {})
    assert len(str(error.value)) < 2000
    known = str(error.value).split("there are ")[1]
    with flight.connect(f"grpc://{nodes.entry}") as client:
        listed = [kind.type for kind in client.list_actions()]
    assert known.startswith(", ".join(listed)) and {"create-many", "commit-many", "join", "ping"} <= set(listed)


def test_modes_are_octal_text(nodes):
    about = action(nodes, "stat", {"path": "/other"})
    assert about["mode"] == "644"
    action(nodes, "chmod", {"path": "/other", "mode": "600"})
    assert action(nodes, "stat", {"path": "/other"})["mode"] == "600"
    for wrong in (0o644, 644, "888", "rw-r--r--", "1777", None):
        with pytest.raises(pyarrow.ArrowInvalid, match="644"):
            action(nodes, "chmod", {"path": "/other", "mode": wrong})
    assert action(nodes, "stat", {"path": "/other"})["mode"] == "600"


def test_strangers_do_not_join(nodes):
    before = nodes.addresses()
    for join in (
        {"target": "0" * 32, "address": "127.0.0.1:1", "at": int(time.time()), "seal": "x"},
        {"target": "0" * 32, "address": "127.0.0.1:1", "at": int(time.time()), "seal": ""},
        {"target": "x", "address": "x", "at": 0, "seal": "x"},
    ):
        with pytest.raises(pyarrow.ArrowException):
            action(nodes, "join", join)
    # An old join message of a real node is replayed. It must not send clients to a wrong address.
    key = bytes.fromhex((nodes.node_dir(0) / "cluster.key").read_text().strip())
    target = (nodes.node_dir(1) / "target.id").read_text().strip()
    at = int(time.time()) - 3600
    word = f"join {target} 127.0.0.1:1 {at}"
    old = {"target": target, "address": "127.0.0.1:1", "at": at}
    with pytest.raises(pyarrow.ArrowException):
        action(nodes, "join", old | {"seal": text64(hmac.digest(key, word.encode(), hashlib.sha256))})
    assert nodes.addresses() == before
