"""Results that stay as files of the cluster on the nodes that made them."""

import json
import signal
import urllib.request

import numpy as np
import pytest
from cluster import Nodes, until
from faults import Background, identity, loses_a_node, only_objects_of, visible
from scipy import ndimage

IMAGE = np.random.default_rng(6).integers(0, 255, (301, 257), dtype="u1")
BLUR = ("--type", "u8", "--param", "shape=301,257", "--param", "sigma=1.5")
POINTS = np.random.default_rng(4).normal(0, 100, (9_000, 3))
LABELS = ("--type", "f64", "--param", "dims=3", "--param", "k=4", "--param", "labels=true")


@pytest.fixture
def nodes(nodes_of_test):
    return nodes_of_test(Nodes, nodes=4)


def locally(nodes, content, kernel, args):
    (nodes.folder / "plain").write_bytes(content)
    nodes.grist.ok("run", kernel, "plain", *args, "--output", "expected")
    return (nodes.folder / "expected").read_bytes()


@pytest.mark.parametrize(
    "content, kernel, args",
    [
        (IMAGE, "gaussian", (*BLUR, "--param", "mode=reflect")),
        (IMAGE, "gaussian", (*BLUR, "--param", "mode=wrap")),
        (POINTS, "kmeans", LABELS),
    ],
)
@pytest.mark.parametrize("on, stripe", [("0", "1MiB"), ("2,0", "5000"), ("3,1,0,2", "9999"), ("0,1,2,3", "64KiB")])
def test_what_is_kept_is_what_one_process_makes(nodes, content, kernel, args, on, stripe):
    expected = locally(nodes, content.tobytes(), kernel, args)
    stored = nodes.put("/in/data", content.tobytes(), "--stripe", stripe, "--on", on)
    made = ("--json", "--explain", "--output", nodes.url("/out/made"))
    done = nodes.grist("run", kernel, stored, *args, *made)
    assert "what the kernel gives stays there" in done.stderr.decode()
    kept = json.loads(done.stdout)
    plain = json.loads(nodes.grist.ok("run", kernel, "plain", *args, "--json", "--output", "again"))
    assert kept["result"] == plain["result"]
    assert kept["report"]["bytes_to_client"] < 5_000
    # Every way to read the file gives one whole file.
    assert nodes.get("/out/made") == expected
    nodes.grist.ok("get", nodes.url("/out/made"), "copy")
    assert (nodes.folder / "copy").read_bytes() == expected
    for start, end in [(0, 1), (4_999, 5_002), (700, 9_000), (len(expected) - 3, len(expected))]:
        asked = urllib.request.Request(nodes.http("/out/made"), headers={"Range": f"bytes={start}-{end - 1}"})
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 206 and answer.read() == expected[start:end], (start, end)
    for kernel in ("wc", "sum"):
        given = ("--type", "u8") if kernel == "sum" else ()
        want = json.loads(nodes.grist.ok("run", kernel, "expected", *given, "--json"))["result"]
        for place in ("storage", "client"):
            found = nodes.grist.ok("run", kernel, nodes.url("/out/made"), *given, "--json", "--place", place)
            assert json.loads(found)["result"] == want
    # The pieces lie on the nodes that made them.
    told = nodes.stat("/out/made")
    assert told["length"] == len(expected) and told["pieces"] >= 1 and told["stripe_unit"] is None
    # A source with fewer stripes than targets lies on some of them, and so does what is made of it.
    targets = [t["target"] for t in told["targets"]]
    assert set(targets) <= {int(n) for n in on.split(",")} and len(set(targets)) == len(targets) >= 1
    assert sum(t["bytes"] for t in told["targets"]) == len(expected)
    assert b"pieces on the nodes that made them" in nodes.grist.ok("stat", nodes.url("/out/made"))


def test_a_result_is_filtered_again(nodes):
    """A stored result can be the input of another request. A node also reads rows of it from its neighbours."""
    nodes.put("/image", IMAGE.tobytes(), "--stripe", "1000")
    nodes.grist.ok("run", "gaussian", nodes.url("/image"), *BLUR, "--output", nodes.url("/once"))
    nodes.grist.ok("run", "gaussian", nodes.url("/once"), *BLUR, "--output", nodes.url("/twice"))
    once = np.rint(ndimage.gaussian_filter(IMAGE.astype("f8"), 1.5)).astype("u1")
    twice = np.rint(ndimage.gaussian_filter(once.astype("f8"), 1.5)).astype("u1")
    assert nodes.get("/twice") == twice.tobytes()


def test_a_result_replaces_a_file_at_once(nodes):
    nodes.put("/image", IMAGE.tobytes(), "--stripe", "1000")
    nodes.put("/made", b"before", "--mode", "640")
    nodes.grist.ok("run", "gaussian", nodes.url("/image"), *BLUR, "--output", nodes.url("/made"))
    first = nodes.get("/made")
    assert first == locally(nodes, IMAGE.tobytes(), "gaussian", BLUR)
    assert nodes.stat("/made")["mode"] == "640"
    # The output replaces the input, which is read to its end first.
    nodes.grist.ok("run", "gaussian", nodes.url("/image"), *BLUR, "--output", nodes.url("/image"))
    assert nodes.get("/image") == first
    only_objects_of(nodes, "/made", "/image")
    nodes.grist.ok("rm", nodes.url("/made"))
    only_objects_of(nodes, "/image")


@pytest.mark.parametrize("place", ["client", "storage"])
def test_bytes_made_elsewhere_are_sent_there(nodes, place):
    """The input is a plain file, or the client folds. The rows of the result are put as soon as they are made."""
    expected = locally(nodes, IMAGE.tobytes(), "gaussian", BLUR)
    source = "plain"
    if place == "client":
        source = nodes.put("/image", IMAGE.tobytes(), "--stripe", "1000")
        args = (*BLUR, "--place", "client")
    else:
        args = BLUR
    nodes.grist.ok("run", "gaussian", source, *args, "--output", nodes.url("/made"))
    assert nodes.get("/made") == expected
    assert nodes.stat("/made")["pieces"] is None


def test_what_cannot_be_is_refused_and_leaves_nothing(nodes):
    stored = nodes.put("/image", IMAGE.tobytes(), "--stripe", "1000")
    wrong = ("--type", "u8", "--param", "shape=300,257")
    said = nodes.grist.refuses(1, "run", "gaussian", stored, *wrong, "--output", nodes.url("/made"))
    assert "whole image" in said
    said = nodes.grist.refuses(2, "run", "gaussian", "plain", *BLUR, "--output", nodes.url("/made"))
    assert "no such file" in said
    said = nodes.grist.refuses(2, "run", "sum", stored, "--type", "u8", "--output", nodes.url("/made"))
    assert "gives no bytes" in said
    said = nodes.grist.refuses(2, "run", "gaussian", stored, *BLUR, "--output", nodes.url("/image/made"))
    assert "/image" in said
    assert visible(nodes) == {"image"}
    only_objects_of(nodes, "/image")


LONG = ("--type", "f64", "--param", "dims=3", "--param", "k=400", "--param", "tol=0", "--param", "max_iter=10000")


def writing(nodes, number):
    """Whether a node has begun an object that does not belong to the input."""
    own = identity(nodes, "/image")
    return any(path.name != own for path in nodes.objects(number))


# A filter with a large sigma is slow, so the test can act before it ends. Each node has a quarter of the rows.
LARGE = np.random.default_rng(3).integers(0, 255, (4000, 4001), dtype="u1")
SLOW = ("--type", "u8", "--param", "shape=4000,4001", "--param", "sigma=25", "--place", "storage")
QUARTER = ("--stripe", 1000 * 4001)


@pytest.mark.parametrize("lost", [0, 2])
def test_a_node_that_dies_in_the_middle(nodes_of_test, nodes, lost):
    stored = nodes.put("/image", LARGE.tobytes(), *QUARTER)
    nodes.put("/made", b"before")
    args = ("run", "gaussian", stored, *SLOW, "--output", nodes.url("/made"))
    loses_a_node(nodes_of_test, nodes, lost, lambda: writing(nodes, lost), *args)
    assert nodes.get("/made") == b"before"
    only_objects_of(nodes, "/image", "/made")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_client_that_goes_away_leaves_nothing(nodes_of_test, nodes, how):
    stored = nodes.put("/image", LARGE.tobytes(), *QUARTER)
    request = Background(nodes_of_test, nodes, "run", "gaussian", stored, *SLOW, "--output", nodes.url("/made"))
    until(lambda: writing(nodes, 1), "a node writes")
    request.signal(how)
    request.child.wait(20)
    assert visible(nodes) == {"image"}
    only_objects_of(nodes, "/image")


def test_an_input_that_is_replaced_meanwhile(nodes_of_test, nodes):
    """A result never mixes two states of a file."""
    stored = nodes.put("/image", LARGE.tobytes(), *QUARTER)
    request = Background(nodes_of_test, nodes, "run", "gaussian", stored, *SLOW, "--output", nodes.url("/made"))
    until(lambda: writing(nodes, 1), "a node writes")
    nodes.put("/image", b"other")
    out, err = request.child.communicate(timeout=60)
    assert request.child.returncode == 1 and b"replaced" in err, err
    assert visible(nodes) == {"image"}


def test_points_that_are_replaced_between_passes(nodes_of_test, nodes):
    many = np.random.default_rng(5).normal(0, 100, (60_000, 3))
    stored = nodes.put("/image", many.tobytes(), "--stripe", "64KiB")
    request = Background(nodes_of_test, nodes, "run", "kmeans", stored, *LONG, "--param", "init=first")
    before = list(nodes.processor_time())
    until(lambda: all(b > a + 0.2 for a, b in zip(before, nodes.processor_time())), "the nodes fold")
    nodes.put("/image", b"other")
    out, err = request.child.communicate(timeout=60)
    assert request.child.returncode == 1 and b"replaced" in err, err
