"""`gristmill stat grist://...`: the variables of scientific files on storage nodes, and the nodes that hold their chunks."""

import json

import netCDF4
import numpy as np
import pytest
from cluster import Up


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=3)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("stat") / "x.nc"
    with netCDF4.Dataset(path, "w") as out:
        for name, length in (("time", 40), ("x", 500)):
            out.createDimension(name, length)
        one = out.createVariable("one", "f8", ("time", "x"), chunksizes=(4, 500))
        one[:] = np.random.default_rng(0).normal(size=(40, 500))
        one.units = "m"
        out.createVariable("two", "i2", ("x",))[:] = np.arange(500)
    return path


def test_what_is_shown_of_a_file_here_is_shown_of_one_there(up, file):
    up.put("/s/x.nc", file.read_bytes(), "--stripe", "16KiB")
    here = json.loads(up.grist.ok("stat", file, "--json"))
    there = json.loads(up.grist.ok("stat", up.url("/s/x.nc"), "--json"))
    for what in ("format", "dimensions", "attributes", "variables"):
        assert here[what] == there[what]
    assert there["stripe_unit"] == 16384 and len(there["targets"]) == 3
    here = up.grist.ok("stat", file).decode().splitlines()
    there = up.grist.ok("stat", up.url("/s/x.nc")).decode().splitlines()
    assert here[1:] == there[-len(here[1:]) :]


def test_which_targets_hold_the_chunks(up, file):
    up.put("/s/on.nc", file.read_bytes(), "--stripe", "16KiB", "--on", "2,0")
    about = json.loads(up.grist.ok("stat", up.url("/s/on.nc"), "--json"))
    said = json.loads(up.grist.ok("stat", up.url("/s/on.nc"), "--var", "one", "--chunks", "--json"))["variables"]
    [one] = said
    numbers = [target["target"] for target in about["targets"]]
    expected, chunks, whole = {}, {}, {}
    for chunk in one["table"]:
        stripes = range(chunk["offset"] // 16384, (chunk["offset"] + chunk["bytes"] - 1) // 16384 + 1)
        on = {}
        for stripe in stripes:
            target = numbers[(about["first"] + stripe) % 2]
            low, high = max(chunk["offset"], stripe * 16384), min(chunk["offset"] + chunk["bytes"], (stripe + 1) * 16384)
            on[target] = on.get(target, 0) + high - low
        assert chunk["targets"] == list(on)
        for target, count in on.items():
            expected[target] = expected.get(target, 0) + count
            chunks[target] = chunks.get(target, 0) + 1
            whole[target] = whole.get(target, 0) + (len(on) == 1)
    assert {target["target"]: target["bytes"] for target in one["targets"]} == expected
    assert {target["target"]: target["chunks"] for target in one["targets"]} == chunks
    assert {target["target"]: target["whole_chunks"] for target in one["targets"]} == whole
    assert sum(expected.values()) == one["stored_bytes"] == 40 * 500 * 8
    text = up.grist.ok("stat", up.url("/s/on.nc"), "--var", "one", "--chunks").decode()
    assert "units: m" in text and "on target 2 (" in text and "on target 0 (" in text
    assert text.count("\n    chunk ") == 10 and " on target" in text.split("chunk 0 at")[1]


def test_files_that_are_no_such_files(up):
    up.put("/s/plain.f64", bytes(80))
    assert "format" not in json.loads(up.grist.ok("stat", up.url("/s/plain.f64"), "--json"))
    assert "nothing.nc" in up.grist.refuses(2, "stat", up.url("/s/nothing.nc"), "--var", "x")
    up.put("/s/cut.nc", b"\x89HDF\r\n\x1a\n" + bytes(90))
    assert "cannot be shown" in up.grist.ok("stat", up.url("/s/cut.nc")).decode()
    up.put("/s/text.nc", b"nothing to see")
    assert up.grist.ok("stat", up.url("/s/text.nc"))
    assert "/s/text.nc" in up.grist.refuses(2, "stat", up.url("/s/text.nc"), "--var", "x")
    up.put("/s/rows.csv", b"a,b\n1,2\n3,4\n")
    said = json.loads(up.grist.ok("stat", up.url("/s/rows.csv"), "--var", "b", "--json"))["variables"]
    assert said[0]["shape"] == [2]
