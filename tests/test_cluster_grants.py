"""Grants that are replayed, changed, too old, from another cluster or for something else."""

import http.client
import json
import time

import pytest
from cluster import Nodes, until
from raw import (
    HEADER, UNIT, action, ask, extents, flight, np, object_bytes, opened, parts, refused, seal, text64, unsealed,
)  # fmt: skip

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


@pytest.fixture(scope="module")
def stranger(clusters):
    """Another cluster, with its own key."""
    stranger = clusters(Nodes, nodes=1)
    stranger.put("/file", b"12345678")
    return stranger


@pytest.fixture(autouse=True)
def answers_as_before(nodes, content):
    """After the requests of the test, the nodes still answer, and the requests have changed nothing."""
    pids = nodes.pids()
    yield
    assert nodes.pids() == pids and all(process.running() for process in nodes.running.values())
    assert nodes.get("/file") == content
    answer = nodes.grist.answer("count", nodes.url("/file"), "--type", "f64", "--place", "storage")
    assert answer["result"] == {"count": 30_000}


def test_a_grant_reads_the_object_it_is_for(nodes, content):
    found = opened(nodes)
    name, targets = parts(found)
    for place, target in enumerate(targets):
        held = object_bytes(content, found, place)
        for _ in range(2):  # a grant may be used again
            assert ask(target["address"], "GET", f"/objects/{name}", found["grant"]) == (200, held)
        for asked, part in (("0-9", held[:10]), ("-7", held[-7:]), ("100-", held[100:])):
            answer = ask(
                target["address"], "GET", f"/objects/{name}", found["grant"],
                headers={"Range": f"bytes={asked}"},
            )  # fmt: skip
            assert answer == (206, part)


@pytest.mark.parametrize("asked", ["bytes=999999999-", "bytes=-0", "bytes=18446744073709551615-"])
def test_ranges_that_hold_nothing(nodes, asked):
    found = opened(nodes)
    name, targets = parts(found)
    status, _ = ask(
        targets[0]["address"], "GET", f"/objects/{name}", found["grant"], headers={"Range": asked}
    )
    assert status == 416
    assert ask(nodes.entry, "GET", "/files/file", headers={"Range": asked})[0] == 416


@pytest.mark.parametrize("asked", ["bytes=9-1", "bytes=a-b", "rows=1-2", "bytes=", "bytes=1-2,5-6", "bytes=--1"])
def test_ranges_that_are_none_count_for_nothing(nodes, content, asked):
    assert ask(nodes.entry, "GET", "/files/file", headers={"Range": asked}) == (200, content)


def test_extents(nodes, content):
    found = opened(nodes)
    name, targets = parts(found)
    held = object_bytes(content, found, 1)
    at = targets[1]["address"], "POST", f"/objects/{name}/extents", found["grant"]
    assert ask(*at, extents((0, 5), (100, 7), (3, 0))) == (200, held[:5] + held[100:107])
    top = 2**64 - 1
    for wrong in (
        b"", b"x", b"x" * 15, b"x" * 17, extents((0, 1)) + b"x", extents((len(held), 1)),
        extents((len(held) - 1, 2)), extents((top, 1)), extents((top, top)), extents((1, top)),
        extents((0, 1 << 62)), extents((0, top), (0, 2)), extents(*[(0, 1)] * 4097), b"\0" * (1 << 20),
    ):  # fmt: skip
        answer = ask(*at, wrong)
        assert 400 <= answer[0] < 500, (wrong[:40], answer[0], answer[1][:300])
        assert json.loads(answer[1])["message"]
    assert ask(*at, extents(*[(0, 1)] * 4096)) == (200, held[:1] * 4096)


def test_without_a_grant(nodes, content):
    name, targets = parts(opened(nodes))
    for address in (targets[0]["address"], targets[1]["address"]):
        for method, target, body in (
            ("GET", f"/objects/{name}", None), ("PUT", f"/objects/{name}", b"x"), ("PUT", "/objects/new", b"x"),
            ("DELETE", f"/objects/{name}", None), ("POST", f"/objects/{name}/extents", extents((0, 1))),
        ):  # fmt: skip
            message = refused(403, ask(address, method, target, body=body))
            assert HEADER in message
            for wrong in ("", ".", "x", "x.y", "é", "a" * 1000):
                refused(None, ask(address, method, target, wrong.encode("latin-1").decode("latin-1"), body))


def test_a_changed_grant(nodes):
    found = opened(nodes)
    name, targets = parts(found)
    grant = found["grant"]
    for at in (0, 10, len(grant) // 2, len(grant) - 2):
        changed = grant[:at] + ("A" if grant[at] != "A" else "B") + grant[at + 1 :]
        for target in targets:
            message = refused(403, ask(target["address"], "GET", f"/objects/{name}", changed))
            assert "open the file again" in message
    # The seal is that of another body.
    more = unsealed(grant) | {"rights": "manage"}
    forged = text64(json.dumps(more).encode()) + "." + grant.split(".")[1]
    refused(403, ask(targets[0]["address"], "DELETE", f"/objects/{name}", forged))


def test_a_grant_of_another_cluster(nodes, stranger):
    foreign = opened(stranger)
    name, targets = parts(opened(nodes))
    grant = seal(stranger, unsealed(opened(nodes)["grant"]))  # only the key is wrong
    for wrong in (foreign["grant"], grant):
        message = refused(403, ask(targets[0]["address"], "GET", f"/objects/{name}", wrong))
        assert "not given by this cluster" in message


def test_a_grant_that_has_run_out(nodes):
    found = opened(nodes)
    name, targets = parts(found)
    old = seal(nodes, unsealed(found["grant"]) | {"expires": int(time.time()) - 5})
    for target in targets:
        message = refused(409, ask(target["address"], "GET", f"/objects/{name}", old))
        assert "has expired" in message
    good = seal(nodes, unsealed(found["grant"]))  # a new grant with a good seal, so only the age was wrong
    assert ask(targets[0]["address"], "GET", f"/objects/{name}", good)[0] == 200


def test_a_grant_for_another_object_or_right(nodes):
    found, other = opened(nodes), opened(nodes, "/other")
    (name, targets), (another, _) = parts(found), parts(other)
    at = targets[1]["address"]
    refused(403, ask(at, "GET", f"/objects/{another}", found["grant"]))
    for method, body in (("PUT", b"x"), ("DELETE", None)):
        refused(403, ask(at, method, f"/objects/{name}", found["grant"], body))
    written = action(nodes, "create", {"path": "/never", "unit": UNIT})
    fresh, places = parts(written)
    refused(403, ask(places[0]["address"], "GET", f"/objects/{fresh}", written["grant"]))
    refused(403, ask(places[0]["address"], "DELETE", f"/objects/{fresh}", written["grant"]))
    action(nodes, "abandon", {"id": written["file"]["id"]})


@pytest.mark.parametrize(
    "change",
    [
        {"id": "../../../etc/passwd"}, {"id": "0" * 31}, {"unit": 0}, {"unit": 2**64 - 1}, {"length": 2**63},
        {"first": 99}, {"targets": []}, {"targets": [{"number": 0, "address": "x", "version": 1}] * 5000},
    ],
)  # fmt: skip
def test_a_grant_that_makes_no_sense(nodes, change):
    """The seal is good. Even the holder of the key cannot crash a node."""
    found = opened(nodes)
    name, targets = parts(found)
    grant = unsealed(found["grant"])
    grant["file"].update(change)
    sealed = seal(nodes, grant)
    target = f"/objects/file-{grant['file']['id']}".replace("..", "%2e%2e")
    answer = ask(targets[0]["address"], "GET", target, sealed)
    assert 400 <= answer[0] < 500, answer
    fold = {"fold": {"gristmill": 1, "grant": sealed, "kernel": "count", "params": [], "max_record": 1 << 20,
                     "input": {"type": "u8"}, "targets": [0], "round": 0, "select": [0, 10]}}  # fmt: skip
    with flight.connect(f"grpc://{targets[0]['address']}") as client, pytest.raises(Exception) as error:
        client.do_get(flight.Ticket(json.dumps(fold).encode())).read_all()
    assert not isinstance(error.value, flight.FlightUnavailableError), error.value


def write(nodes, path, data=b"x" * 100):
    """Begins a put on one target and sends its object. Returns the put and the receipt."""
    created = action(nodes, "create", {"path": path, "unit": UNIT, "on": [1]})
    name, [place] = parts(created)
    status, answer = ask(place["address"], "PUT", f"/objects/{name}", created["grant"], data)
    assert status == 201, answer
    return created, json.loads(answer), (place["address"], "PUT", f"/objects/{name}", created["grant"])


def repeated(nodes, commit, content):
    try:
        action(nodes, "commit", commit)
    except (pyarrow.ArrowException, KeyError):
        pass
    assert nodes.get("/written") == content


def test_a_write_grant_is_good_for_one_object_once(nodes):
    created, receipt, at = write(nodes, "/written")
    for other in (b"y" * 100, b"x" * 99, b"x" * 101, b""):
        refused(409, ask(*at, other))  # before the file is visible
    # The same object is sent again, as after a connection that broke before the receipt came.
    status, again = ask(*at, b"x" * 100)
    assert (status, json.loads(again)) == (201, receipt)
    commit = {"id": created["file"]["id"], "length": 100, "receipts": [receipt]}
    action(nodes, "commit", commit)
    assert nodes.get("/written") == b"x" * 100
    refused(409, ask(*at, b"y" * 100))  # and after that
    assert nodes.get("/written") == b"x" * 100
    # A second commit, as after a broken connection, has the same effect ...
    repeated(nodes, commit, b"x" * 100)
    # ... and does not undo a later replacement or removal.
    nodes.put("/written", b"z")
    repeated(nodes, commit, b"z")
    nodes.grist.ok("rm", nodes.url("/written"))
    with pytest.raises((pyarrow.ArrowException, KeyError)):
        action(nodes, "commit", commit)
    with pytest.raises(KeyError):
        action(nodes, "stat", {"path": "/written"})


def test_a_commit_needs_the_word_of_the_nodes(nodes):
    for change in (
        {"length": 99}, {"length": 101}, {"length": 10 * UNIT}, {"receipts": []}, {"receipts": [None]},
        {"receipts": [{"length": 100, "version": 1, "seal": "x"}]}, {"id": "0" * 32}, {"id": "x"},
    ):  # fmt: skip
        created, receipt, _ = write(nodes, "/unsaid")
        commit = {"id": created["file"]["id"], "length": 100, "receipts": [receipt]} | change
        with pytest.raises(pyarrow.ArrowException):
            action(nodes, "commit", commit)
        for forged in ({"version": receipt["version"] + 1}, {"length": 99}, {"seal": receipt["seal"][:-2]}):
            with pytest.raises(pyarrow.ArrowException):
                wrong = {"receipts": [receipt | forged], "length": forged.get("length", 100)}
                action(nodes, "commit", commit | {"id": created["file"]["id"]} | wrong)
        action(nodes, "abandon", {"id": created["file"]["id"]})
        with pytest.raises(KeyError):
            action(nodes, "stat", {"path": "/unsaid"})
    # The receipt belongs to another put.
    first, receipt, _ = write(nodes, "/unsaid")
    second, _, _ = write(nodes, "/unsaid")
    with pytest.raises(pyarrow.ArrowException):
        action(nodes, "commit", {"id": second["file"]["id"], "length": 100, "receipts": [receipt]})
    for created in (first, second):
        action(nodes, "abandon", {"id": created["file"]["id"]})


def test_a_put_that_was_given_up(nodes):
    created, receipt, at = write(nodes, "/given-up")
    action(nodes, "abandon", {"id": created["file"]["id"]})
    with pytest.raises(pyarrow.ArrowException):
        action(nodes, "commit", {"id": created["file"]["id"], "length": 100, "receipts": [receipt]})
    with pytest.raises(KeyError):
        action(nodes, "stat", {"path": "/given-up"})


def test_a_grant_of_a_file_that_was_replaced(nodes):
    nodes.put("/swap", b"old content", "--on", "1")
    old = opened(nodes, "/swap")
    name, [place] = parts(old)
    get = place["address"], "GET", f"/objects/{name}", old["grant"]
    assert ask(*get) == (200, b"old content")
    nodes.put("/swap", b"new content", "--on", "1")

    def gone():
        try:
            answer = ask(*get)
        except http.client.IncompleteRead:
            return False  # removed between the headers and the body: the answer is cut, but not wrong
        assert answer == (200, b"old content") or answer[0] == 409, answer
        return answer[0] == 409

    until(gone, "the grant becomes stale")
    message = refused(409, ask(*get))
    assert "/swap" in message and "again" in message
    refused(409, ask(place["address"], "POST", f"/objects/{name}/extents", old["grant"], extents((0, 1))))
    nodes.grist.ok("rm", nodes.url("/swap"))
