"""Statistics of chunks on storage nodes: known chunks are not read again, and no bit of an answer changes."""

import os

import netCDF4
import numpy as np
import pytest

from cluster import until

SHAPE, CHUNK = (48, 40, 60), (1, 40, 60)
BYTES = 4 * 48 * 40 * 60


@pytest.fixture(scope="module")
def nodes(clusters):
    from cluster import Up

    return clusters(Up, nodes=3)


def values(shift=0):
    """Values grow by 10 with each time and vary a little within one time. Some are missing in the last eight times."""
    data = np.random.default_rng(5).random(SHAPE, "f4") * 4 + np.arange(48, dtype="f4")[:, None, None] * 10
    data[40:, ::7, 3] = np.nan
    return data + np.float32(shift)


def stored(path, data, **how):
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip("tyx", SHAPE):
            file.createDimension(name, length)
        for name, part in (("a", data), ("b", data[::-1])):
            file.createVariable(name, "f4", ("t", "y", "x"), chunksizes=CHUNK, **how)[:] = part
    return path.read_bytes()


def put(nodes, folder, name, data, **how):
    # A stripe has three chunks.
    nodes.put(name, stored(folder / name[1:], data, **how), "--stripe", 3 * 4 * 40 * 60)
    return nodes.url(name)


def ask(grist, url, op, *args, var="a"):
    answer = grist.answer(op, url, "--var", var, "--place", "storage", *args)
    return answer["result"], int(answer["report"]["bytes_read"]), int(answer["report"]["chunks_settled"])


def kept(nodes):
    """The files of statistics of all nodes. A file that is still being written has another name."""
    folders = [nodes.node_dir(number) / "statistics" for number in range(3)]
    names = [(folder, name) for folder in folders if folder.exists() for name in os.listdir(folder)]
    return [folder / name for folder, name in names if not name.startswith(".")]


def test_a_second_request_reads_nothing(grist, nodes, tmp_path):
    data = values()
    url = put(nodes, tmp_path, "/second.nc", data)
    first, read, settled = ask(grist, url, "sum")
    assert (read, settled) == (BYTES, 0)
    for op in ("sum", "mean", "count", "min", "max"):
        with_them, read, settled = ask(grist, url, op)
        without, all_read, none = ask(grist, url, op, "--no-statistics")
        assert with_them == without
        assert (read, settled, all_read, none) == (0, 48, BYTES, 0)
    assert ask(grist, url, "sum")[0] == first
    largest = ask(grist, url, "max")[0]["max"]
    assert np.float32(largest["values"][0]) == np.nanmax(data)
    # Nothing is known of the other variable, which has the same shape and type.
    other, read, settled = ask(grist, url, "sum", var="b")
    assert (read, settled) == (BYTES, 0)
    assert other == first


def test_ranges_say_where_to_look(grist, nodes, tmp_path):
    data = values()
    url = put(nodes, tmp_path, "/look.nc", data)
    ask(grist, url, "max")
    for expr, expected, unread in (
        ("x > 202", data > 202, 39),
        ("x > 202 & x < 500", (data > 202) & (data < 500), 39),
        ("isnan(x)", np.isnan(data), 40),
        ("x >= 0", data >= 0, 40),
    ):
        found, _, settled = ask(grist, url, "sum", "--expr", expr)
        assert found["sum"]["values"] == [int(expected.sum())], expr
        assert settled == unread, expr
    # The mean for each time needs one chunk each. The second request reads nothing.
    args = ("--axes", "y,x")
    means = ask(grist, url, "mean", *args)
    again = ask(grist, url, "mean", *args)
    assert means[0] == again[0] == ask(grist, url, "mean", *args, "--no-statistics")[0]
    assert (means[2], again[2], again[1]) == (0, 48, 0)


def test_what_is_slow_to_decompress_is_known_thoroughly(grist, nodes, tmp_path):
    for name, kind, known in (("/deflate.nc", {"zlib": True, "shuffle": True}, 48), ("/sums.nc", {"fletcher32": True}, 0)):
        url = put(nodes, tmp_path, name, values(), **kind)
        ask(grist, url, "max")
        found, _, settled = ask(grist, url, "sum")
        assert settled == known, name
        assert found == ask(grist, url, "sum", "--no-statistics")[0]


def test_another_state_of_a_file_has_none(grist, nodes, tmp_path):
    url = put(nodes, tmp_path, "/state.nc", values())
    ask(grist, url, "max")
    assert ask(grist, url, "max")[2] == 48
    put(nodes, tmp_path, "/state.nc", values(shift=1000))
    largest, read, settled = ask(grist, url, "max")
    assert (read, settled) == (BYTES, 0)
    assert np.float32(largest["max"]["values"][0]) == np.nanmax(values(shift=1000))
    name = nodes.stat("/state.nc")["id"]
    of_file = lambda: [path for path in kept(nodes) if name in path.name]
    until(lambda: len(of_file()) == 3, "every node wrote what it knows")
    grist.ok("rm", url)
    until(lambda: not of_file(), "the statistics of the file that was removed go too")


def test_they_outlive_a_start_and_no_damage(grist, clusters, tmp_path):
    from cluster import Up

    nodes = clusters(Up, nodes=3)
    url = put(nodes, tmp_path, "/start.nc", values())
    expected = ask(grist, url, "mean")[0]
    until(lambda: len(kept(nodes)) == 3, "every node wrote what it knows")
    written = kept(nodes)
    nodes.restart()
    assert ask(grist, nodes.url("/start.nc"), "mean") == (expected, 0, 48)
    nodes.listen = nodes.entry
    nodes.stop()
    for path in written:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 4
        path.write_bytes(content)
    nodes.start()
    assert ask(grist, nodes.url("/start.nc"), "mean") == (expected, BYTES, 0)
    assert ask(grist, nodes.url("/start.nc"), "mean") == (expected, 0, 48)


def test_a_node_that_keeps_none(grist, clusters, tmp_path):
    from cluster import Up

    nodes = clusters(Up, nodes=3, args=("--no-statistics",))
    url = put(nodes, tmp_path, "/none.nc", values())
    for _ in range(2):
        assert ask(grist, url, "max")[1:] == (BYTES, 0)
    assert kept(nodes) == []
