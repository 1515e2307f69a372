"""The cache of attached buckets and web servers on the disks of nodes."""

import math
import urllib.request

import attached
import numpy as np
import pytest
from cluster import Up
from prometheus_client.openmetrics.parser import text_string_to_metric_families


@pytest.fixture(scope="module", params=["s3", "nginx"])
def tree(request, clusters, tmp_path_factory):
    """A tree that is attached as /t of a cluster with a cache."""
    tree = attached.made(request.param, tmp_path_factory)
    try:
        # Statistics of chunks would answer without a read.
        args = ("--admin", "anonymous", "--outside-cache", "64MiB", "--no-statistics")
        tree.up = clusters(Up, nodes=2, args=args, env=tree.env)
        tree.up.grist.ok("attach", tree.source, tree.up.url("/t"), *tree.options)
        yield tree
    finally:
        tree.end()


@pytest.fixture(scope="module")
def temperatures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    return folder, attached.made_temperatures(folder)


def reads(up):
    """Ranges that the nodes found in their caches, and those that they did not."""
    both = dict.fromkeys(("found", "missed"), 0)
    for node in up.addresses().values():
        with urllib.request.urlopen(f"http://{node}/metrics") as answer:
            for family in text_string_to_metric_families(answer.read().decode()):
                for sample in family.samples:
                    if sample.name == "gristmill_outside_cache_reads_total":
                        both[sample.labels["result"]] += int(sample.value)
    return both


def cached_files(up):
    return [path for path in up.folder.glob("store/node*/outside-cache/??/*") if path.is_file()]


def run_until_cached(tree, *run):
    """Runs until a run misses nothing, because the cache is written after the answer. Returns the answers of the first and the last run."""
    first = tree.up.grist.answer(*run)["result"]
    for _ in range(20):
        before = reads(tree.up)
        last = tree.up.grist.answer(*run)["result"]
        after = reads(tree.up)
        if after["missed"] == before["missed"]:
            assert after["found"] > before["found"]
            return first, last
    raise AssertionError(f"each run misses ranges: {before}, {after}")


def test_what_was_read_once_is_read_from_the_disk(tree, temperatures):
    folder, values = temperatures
    tree.put("t.nc", (folder / "t.nc").read_bytes())
    tree.put_folder(folder / "t3.zarr", "t3.zarr")
    numbers = np.random.default_rng(3).normal(size=300_000)
    tree.put("x.f64", numbers.tobytes())
    for name, run in [
        ("t.nc", ("mean", "--var", "t", "--axes", "t")),
        ("t3.zarr", ("mean", "--var", "t", "--axes", "t")),
        ("x.f64", ("sum", "--type", "f64")),
    ]:
        local = folder / name
        if name == "x.f64":
            local.write_bytes(numbers.tobytes())
        op, *rest = run
        first, last = run_until_cached(tree, op, tree.up.url(f"/t/{name}"), *rest, "--place", "storage")
        assert first == last == tree.up.grist.answer(op, local, *rest)["result"], name
    assert last["sum"] == math.fsum(numbers)
    if hasattr(tree, "root"):
        # nginx writes a line for each request. Only lists and states are asked for.
        log = tree.root / "access.log"
        before = len(log.read_text().splitlines())
        tree.up.grist.ok("run", "sum", tree.up.url("/t/x.f64"), "--type", "f64", "--place", "storage")
        lines = log.read_text().splitlines()[before:]
        assert lines and not any("GET /x.f64" in line for line in lines), lines


def test_a_file_that_is_replaced_is_read_again(tree):
    run = ("sum", tree.up.url("/t/replaced.f64"), "--type", "f64", "--place", "storage")
    for value in (1.0, 2.0, 3.0):
        tree.put("replaced.f64", np.full(2_000, value).tobytes())
        first, last = run_until_cached(tree, *run)
        assert first == last and first["sum"] == 2_000 * value


def test_the_cache_is_there_after_a_restart_and_damage_is_noticed(tree):
    numbers = np.random.default_rng(4).normal(size=100_000)
    tree.put("again.f64", numbers.tobytes())
    run = ("sum", tree.up.url("/t/again.f64"), "--type", "f64", "--place", "storage")
    run_until_cached(tree, *run)
    tree.up.restart()
    answer = tree.up.grist.answer(*run)["result"]
    assert answer["sum"] == math.fsum(numbers)
    again = reads(tree.up)
    assert again["found"] > 0 and again["missed"] == 0
    for path in cached_files(tree.up):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 16
        path.write_bytes(content)
    assert tree.up.grist.answer(*run)["result"] == answer
    assert reads(tree.up)["missed"] > 0


def test_a_cache_has_its_bytes_at_most(clusters, tmp_path_factory):
    tree = attached.made("s3", tmp_path_factory)
    try:
        args = ("--admin", "anonymous", "--outside-cache", "256KiB")
        up = clusters(Up, nodes=1, args=args, env=tree.env)
        up.grist.ok("attach", tree.source, up.url("/t"))
        for n in range(12):
            numbers = np.random.default_rng(n).normal(size=8_000)
            tree.put(f"{n}.f64", numbers.tobytes())
            assert up.grist.ask("sum", up.url(f"/t/{n}.f64"), "--type", "f64")["sum"] == math.fsum(numbers)
        up.stop()
        sizes = [-(-path.stat().st_size // 4096) * 4096 for path in cached_files(up)]
        assert 128 << 10 < sum(sizes) <= 256 << 10
        assert all(path.stat().st_mode & 0o077 == 0 for path in cached_files(up))
    finally:
        tree.end()


def test_there_is_no_cache_without_the_option(clusters, tmp_path_factory):
    tree = attached.made("s3", tmp_path_factory)
    try:
        up = clusters(Up, nodes=1, args=("--admin", "anonymous"), env=tree.env)
        up.grist.ok("attach", tree.source, up.url("/t"))
        tree.put("x.u8", b"12345678")
        assert up.grist.ask("count", up.url("/t/x.u8"), "--type", "u8")["count"] == 8
        assert reads(up) == {"found": 0, "missed": 0} and not cached_files(up)
        assert not (up.folder / "store/node0/outside-cache").exists()
    finally:
        tree.end()
