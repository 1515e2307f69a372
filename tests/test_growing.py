"""Files to which programs append while requests run."""

import subprocess
import sys

import attached
import numpy as np
import pytest
from cluster import Up, until

import gristmill as gm

# Appends the numbers from 0 on, seven bytes at a time, until it is ended. It begins with 24 MB, which lie on all nodes.
WRITER = """
import sys
import numpy as np
first = 3_000_000
with open(sys.argv[1], "ab", buffering=0) as file:
    file.write(np.arange(first, dtype="f8").tobytes())
    while True:
        numbers = np.arange(first, first + 700, dtype="f8").tobytes()
        for at in range(0, len(numbers), 7):
            file.write(numbers[at : at + 7])
        first += 700
"""


@pytest.fixture(scope="module")
def mount(clusters, tmp_path_factory):
    tree = attached.made("mount", tmp_path_factory)
    tree.up = clusters(Up, nodes=3, args=("--admin", "anonymous"))
    tree.up.grist.ok("attach", tree.source, tree.up.url("/t"))
    return tree


@pytest.fixture
def written(mount):
    """A file that a program writes as long as the test runs."""
    path = mount.folder / "growing.f64"
    with subprocess.Popen([sys.executable, "-c", WRITER, path]) as writer:
        try:
            until(lambda: path.exists() and path.stat().st_size > 24_000_000, "the writer writes")
            yield path
        finally:
            writer.kill()
    path.unlink()


def is_sum_of_first(result):
    """Whether the sum is that of as many numbers as were counted."""
    count = int(result["count"])
    return float(result["sum"]) == count * (count - 1) // 2 and count >= 3_000_000


def test_the_records_that_were_there_are_folded(mount, written):
    counts = []
    for place in ("storage", "client", "auto") * 3:
        result = mount.up.grist.ask("sum", mount.up.url("/t/growing.f64"), "--type", "f64", "--growing", "--place", place)
        assert is_sum_of_first(result), result
        counts.append(result["count"])
    local = mount.up.grist.ask("sum", written, "--type", "f64", "--growing")
    assert is_sum_of_first(local)
    counts.append(local["count"])
    assert counts == sorted(counts) and counts[0] < counts[-1]
    # Records of several elements, after a header.
    means = mount.up.grist.ask("count", mount.up.url("/t/growing.f64"), "--type", "f64", "--record", "80", "--skip", "3", "--growing")
    assert means["count"] >= 300_000
    answer = gm.run("sum", mount.up.url("/t/growing.f64"), type="f64", growing=True)
    assert is_sum_of_first(answer)
    assert is_sum_of_first(gm.run("sum", str(written), type="f64", growing=True))


def test_without_the_option_a_file_that_grows_is_an_error(mount, written):
    for path in (mount.up.url("/t/growing.f64"), written):
        for _ in range(100):
            done = mount.up.grist("run", "count", path, "--record", "1")
            if done.returncode:
                break
        assert done.returncode == 1 and b"was changed while it was read" in done.stderr, done


def test_the_last_line_counts_when_it_is_whole(mount):
    path = mount.folder / "log.txt"
    try:
        for text, wanted in [("one\ntwo\nthr", b"4:two\n"), ("one\ntwo\nthree\n", b"4:two\n8:three\n"), ("t", b"")]:
            path.write_text(text)
            for place in (mount.up.url("/t/log.txt"), path):
                assert mount.up.grist("run", "grep", place, "--pattern", "t", "--growing").stdout == wanted
    finally:
        path.unlink()


def test_what_cannot_grow(mount, tmp_path, clusters, tmp_path_factory):
    grist = mount.up.grist
    np.arange(10.0).tofile(tmp_path / "x.f64")
    mount.up.put("/own.f64", (tmp_path / "x.f64").read_bytes())
    # A file of the cluster is never changed.
    assert grist.ask("sum", mount.up.url("/own.f64"), "--type", "f64", "--growing")["sum"] == 45
    text = grist.refuses(2, "run", "sum", "s3://bucket/x.f64", "--type", "f64", "--growing")
    assert "only plain files and files of attached mounts grow" in text
    text = grist.refuses(2, "run", "mean", tmp_path / "x.nc", "--var", "t", "--growing")
    assert "omit --growing" in text
    text = grist.refuses(2, "run", "sum", tmp_path / "x.f64", "--type", "f64", "--growing", "--checkpoint", tmp_path / "c")
    assert "--checkpoint" in text
    with pytest.raises(gm.Usage, match="only plain files"):
        gm.run("sum", "https://host/x.f64", type="f64", growing=True)


@pytest.mark.parametrize("kind", ["s3", "nginx"])
def test_other_trees(kind, clusters, tmp_path_factory):
    tree = attached.made(kind, tmp_path_factory)
    try:
        up = clusters(Up, nodes=1, args=("--admin", "anonymous"), env=tree.env)
        up.grist.ok("attach", tree.source, up.url("/t"), *tree.options)
        tree.put("x.f64", np.arange(10.0).tobytes())
        run = ("sum", up.url("/t/x.f64"), "--type", "f64", "--growing")
        if kind == "s3":
            # An object is written whole.
            assert up.grist.ask(*run)["sum"] == 45
        else:
            assert "cannot be read while they grow" in up.grist.refuses(1, "run", *run)
    finally:
        tree.end()
