"""Where folds over files of a cluster run, how many bytes that moves, and what the report says."""

import json

import numpy as np
import pytest
from plain_and_stored import KIB, pair, params, up  # noqa: F401


def test_the_answer_to_a_person(up, pair):
    values = np.arange(1000.0)
    plain, url = pair.store(values.tobytes(), "--stripe", "1KiB")
    for kernel, *given in (("sum",), ("minmax",), ("lookup", "where=> 990"), ("histogram", "bins=30")):
        args = ("--type", "f64", *params(given))
        assert up.grist.ok("run", kernel, url, *args) == up.grist.ok("run", kernel, plain, *args)


def test_the_report_of_an_aligned_sum(pair):
    length = 8 * 500_000
    _, url = pair.store(np.ones(500_000).tobytes(), "--stripe", "64KiB")
    storage = pair.report(url, "sum", "--type", "f64", "--place", "storage")
    assert storage["bytes_read"] == length
    assert storage["bytes_moved"] == 0
    assert 0 < storage["bytes_to_client"] < 64 * KIB
    assert storage["bytes_not_moved"] == length - storage["bytes_to_client"]
    assert [place["place"] for place in storage["places"]] == ["storage"] * 4
    assert sum(place["records"] for place in storage["places"]) == 500_000
    assert sum(place["bytes"] for place in storage["places"]) == length
    client = pair.report(url, "sum", "--type", "f64", "--place", "client")
    assert client["bytes_read"] == length
    assert client["bytes_to_client"] >= length
    assert client["bytes_moved"] == 0
    assert client["bytes_not_moved"] == 0
    assert {place["place"] for place in client["places"]} == {"client"}
    # Each node has its own lanes. The report gives only the lanes of this process.
    assert storage["lanes"] is None
    assert pair.report(url, "sum", "--type", "f64", "--place", "client", "--lanes", "2")["lanes"] == 2
    # The file is so small that the load of the machine does not change the decision.
    _, little = pair.store(np.ones(100_000).tobytes(), "--stripe", "64KiB")
    chosen = pair.report(little, "sum", "--type", "f64")
    assert {place["place"] for place in chosen["places"]} == {"storage"}


def test_bytes_between_nodes_are_counted(pair):
    # Every record extends into a stripe of the next node.
    values = np.random.default_rng(7).normal(size=64 * 1024)
    plain, url = pair.store(values.tobytes(), "--stripe", "4092B")
    report = pair.report(url, "sum", "--type", "f64", "--place", "storage")
    stripes = -(-values.nbytes // 4092)
    assert stripes // 2 * 4 <= report["bytes_moved"] <= stripes * 8
    assert report["messages"] > 0
    assert report["bytes_to_client"] < 64 * KIB
    text = pair.store(b"some words in a line\n" * 50_000, "--stripe", "64KiB")
    for kernel, *given in (("wc",), ("grep", "pattern=words", "count_only=true")):
        # Lines are joined where stripes meet. The ends of lines are in the partial results.
        report = pair.report(text[1], kernel, "--place", "storage", *params(given))
        assert report["bytes_moved"] == 0 and report["bytes_to_client"] < 64 * KIB
    rows = pair.report(text[1], "grep", "--place", "storage", *params(["pattern=words"]))
    assert rows["bytes_to_client"] >= 50_000 * len("some words in a line")
    assert rows["bytes_moved"] > 0  # the ends of lines, which the node that owns the line needs to show it


def test_explanations_name_the_place_and_what_the_other_would_move(up, pair):
    _, url = pair.store(np.ones(500_000).tobytes(), "--stripe", "64KiB")
    for place, words in (
        ("storage", ("place: storage", "storage would move", "a plain read would move 3.81 MiB to the client")),
        ("client", ("place: client", "a plain read would move 3.81 MiB", "storage would move 0 B between nodes")),
        # The place depends on the load of the machine.
        ("auto", ("place: ", "0 B between nodes", "3.81 MiB")),
    ):
        done = up.grist("run", "sum", url, "--type", "f64", "--place", place, "--explain", "--json")
        assert done.returncode == 0
        text = done.stderr.decode()
        # There is one line for the request, and one for each node that decided.
        assert text.count("\n") == (5 if place == "auto" else 1), text
        for word in words:
            assert word in text, text


def test_records_far_longer_than_the_stripes(pair):
    values = np.random.default_rng(8).normal(size=4 << 17)
    for stripe in ("4KiB", "5000B"):
        files = pair.store(values.tobytes(), "--stripe", stripe)
        args = ("--type", "f64", "--record", "1MiB")
        for kernel, *given in (("sum",), ("max",), ("lookup", "where=> 4")):
            pair.same(files, kernel, *args, *params(given))
        # The node that owns a record pulls the rest of it. That is still less than a plain read.
        report = pair.report(files[1], "sum", *args, "--place", "storage")
        assert values.nbytes // 2 < report["bytes_moved"] < values.nbytes


def test_stripes_too_small_for_storage_are_read_by_the_client(up, pair):
    # Every stripe sends the ends of a line or a word. Together they are larger than the text.
    files = plain, url = pair.store(b"some words in a line\n" * 1000, "--stripe", "13B")
    for kernel, *given in (("wc",), ("grep", "pattern=words")):
        message = up.grist.refuses(2, "run", kernel, url, *params(given), "--place", "storage")
        assert "--stripe" in message and "--place" in message, message
        pair.same(files, kernel, *params(given), places=("client", "auto"))
    done = up.grist("run", "wc", url, "--explain", "--json")
    assert b"place: client" in done.stderr, done.stderr
    report = json.loads(done.stdout)["report"]
    assert {place["place"] for place in report["places"]} == {"client"}


@pytest.mark.parametrize("stripe", ["13B", "20B", "1000B", "64KiB"])
@pytest.mark.parametrize("kernel", ["sum", "minmax", "last"])
def test_auto_never_moves_much_more_than_a_plain_read(pair, stripe, kernel):
    values = np.random.default_rng(9).normal(size=40_000)
    _, url = pair.store(values.tobytes(), "--stripe", stripe)
    report = pair.report(url, kernel, "--type", "f64")
    moved = report["bytes_moved"] + report["bytes_to_client"]
    assert moved <= values.nbytes + 64 * KIB, report


def test_a_checkpoint_goes_on_where_folds_run_at_the_client(up, pair, tmp_path):
    files = pair.store(np.ones(1000).tobytes(), "--stripe", "64B")
    args = ("--type", "f64", "--checkpoint", tmp_path / "state")
    pair.same(files, "sum", *args, places=("client", "auto"))
    message = up.grist.refuses(2, "run", "sum", files[1], *args, "--place", "storage")
    assert "--checkpoint" in message


def test_the_report_to_a_person_tells_of_lanes_or_targets(up, pair):
    for content, args, targets in (
        (bytes(80_000), ("--stripe", "1KiB"), "4 targets, 0 B between targets"),
        (bytes(80_000), ("--on", "2"), "1 target, "),
        (bytes(80_000), ("--stripe", "64KiB"), "2 targets, 0 B between targets"),
        (b"", (), "1 target"),
    ):
        _, url = pair.store(content, *args)
        for place in ("storage", "client"):
            done = up.grist("run", "count", url, "--type", "u8", "--place", place, "--lanes", "3")
            told = done.stderr.decode()
            assert done.returncode == 0 and told.count("\n") == 1, told
            assert ("3 lanes" in told) == (place == "client"), told
            assert place == "client" or targets in told, told
