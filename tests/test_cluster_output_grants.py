"""Results that stay in storage, requested by a client that lies or repeats itself."""

import json

import pytest
from cluster import Nodes
from faults import visible
from raw import action, ask, flight, np, opened, seal, unsealed

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
REFUSED = (pyarrow.ArrowException, KeyError)

IMAGE = np.random.default_rng(2).integers(0, 255, (40, 100), dtype="u1")
PARAMS = [["shape", "40,100"], ["sigma", "1"]]


@pytest.fixture
def nodes(clusters):
    nodes = clusters(Nodes, nodes=2)
    nodes.put("/file", IMAGE.tobytes(), "--stripe", "2000")
    return nodes


def create(nodes, path="/made", **more):
    found = opened(nodes)
    on = [target["number"] for target in found["info"]["file"]["targets"]]
    return action(nodes, "create", {"path": path, "unit": 2000, "on": on, "segments": True, **more})


def fold(nodes, target, output, **change):
    """Asks a node to store the result of its part. Raises an error if the node refuses."""
    found = opened(nodes)
    request = {
        "gristmill": 1, "grant": found["grant"], "kernel": "gaussian", "params": PARAMS, "max_record": 1 << 20,
        "input": {"type": "u8"}, "targets": [target],
        "round": 0, "select": [0, 40], "output": output, **change,
    }  # fmt: skip
    address = found["info"]["file"]["targets"][target]["address"]
    with flight.connect(f"grpc://{address}") as client:
        ticket = flight.Ticket(json.dumps({"fold": request}).encode())
        [frames] = client.do_get(ticket).read_all().to_pydict().values()
        return frames


WRITTEN = 9


def receipt(frames):
    """The receipt among the frames: length, bytes of the file, version and seal."""
    [frame] = [frame for frame in frames if frame[0] == WRITTEN]
    words = np.frombuffer(frame[1:41], "<u8")
    return {"length": int(words[1]), "data": int(words[2]), "version": int(words[3]), "seal": frame[41:].decode()}


def test_a_file_is_made_piece_by_piece(nodes):
    begun = create(nodes)
    receipts = [receipt(fold(nodes, place, begun["grant"])) for place in (1, 0)][::-1]
    assert sum(r["data"] for r in receipts) == IMAGE.size and all(r["length"] > r["data"] for r in receipts)
    assert visible(nodes) == {"file"}
    done = {"id": begun["file"]["id"], "length": IMAGE.size, "receipts": receipts}
    for wrong in (
        done | {"length": IMAGE.size - 1},
        done | {"length": IMAGE.size + 1},
        done | {"receipts": receipts[::-1]},
        done | {"receipts": receipts[:1]},
        done | {"receipts": [receipts[0], None]},
        done | {"receipts": [receipts[0] | {"data": 0}, receipts[1]]},
        done | {"receipts": [receipts[0] | {"data": None}, receipts[1]]},
    ):
        with pytest.raises(REFUSED):
            action(nodes, "commit", wrong)
        assert visible(nodes) == {"file"}
    assert action(nodes, "commit", done)["file"]["segments"] is True
    assert action(nodes, "commit", done)["file"]["length"] == IMAGE.size
    nodes.grist.ok("run", "gaussian", nodes.url("/file"), "--type", "u8", "--param", "shape=40,100", "--param",
                   "sigma=1", "--output", "here")  # fmt: skip
    assert nodes.get("/made") == (nodes.folder / "here").read_bytes()


def test_what_was_made_is_not_made_again(nodes):
    """A replayed write grant changes nothing, also after the file is visible."""
    begun = create(nodes)
    receipts = [receipt(fold(nodes, place, begun["grant"])) for place in (0, 1)]
    for _ in range(2):
        with pytest.raises(REFUSED, match="written already"):
            fold(nodes, 0, begun["grant"])
        action(nodes, "commit", {"id": begun["file"]["id"], "length": IMAGE.size, "receipts": receipts})
    before = nodes.get("/made")
    with pytest.raises(REFUSED, match="written already"):
        fold(nodes, 1, begun["grant"], params=[["shape", "40,100"], ["sigma", "3"]])
    assert nodes.get("/made") == before


def test_grants_that_do_not_fit(nodes):
    begun = create(nodes)
    grant = unsealed(begun["grant"])
    striped = action(nodes, "create", {"path": "/striped", "unit": 2000})
    elsewhere = grant | {"file": grant["file"] | {"targets": [dict(t, number=77) for t in grant["file"]["targets"]]}}
    for output, said in (
        ("", "grant"),
        ("x.y", "grant"),
        (opened(nodes)["grant"], "grant"),
        (striped["grant"], "segments"),
        (seal(nodes, grant | {"principal": "mallory"}), "different principals"),
        (seal(nodes, grant | {"rights": "read"}), "grant"),
        (seal(nodes, grant | {"expires": 1}), "grant"),
        (seal(nodes, elsewhere), "no part"),
    ):
        with pytest.raises(REFUSED, match=said):
            fold(nodes, 0, output)
    # The result of this kernel cannot be stored as a file.
    with pytest.raises(REFUSED, match="cannot be kept"):
        fold(nodes, 0, begun["grant"], kernel="count", params=[], select=[0, 4000])
    assert len(nodes.objects()) == 2


def test_an_object_whose_table_is_damaged(nodes):
    """A changed table would put bytes in another order. The file is refused, and the message says what to do."""
    where = nodes.url("/made")
    given = ("--type", "u8", "--param", "shape=40,100", "--param", "sigma=1")
    nodes.grist.ok("run", "gaussian", nodes.url("/file"), *given, "--output", where)
    name = "file-" + nodes.stat("/made")["id"]
    [path] = [path for path in nodes.objects(1) if path.name == name]
    good = path.read_bytes()
    for at in (len(good) - 1, len(good) - 30, len(good) - 40, len(good) - 50):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        # This is a new process, which has nothing in memory.
        said = nodes.grist.refuses(1, "get", where, "-")
        assert "damaged" in said and "make the file again" in said, said
    path.write_bytes(good)
    assert len(nodes.get("/made")) == IMAGE.size


def test_a_path_that_another_may_not_write(nodes):
    status, answer = ask(nodes.entry, "GET", "/files/made")
    assert status == 404, answer
    with pytest.raises(REFUSED):
        create(nodes, path="/file/below")
    with pytest.raises(REFUSED):
        create(nodes, on=[0, 0])
    assert visible(nodes) == {"file"}
