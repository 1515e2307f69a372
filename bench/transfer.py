"""Copies to and from storage nodes, compared with the same bytes over plain TCP connections. All copies are durable.

The plain copy has one thread for each connection that reads the file and sends it, and another that receives, writes and flushes
it. With four targets it has four connections. The copies go to the disk of the data folder, and to memory (/dev/shm). In memory a
flush costs nothing, so the work of the processor shows.
"""

import contextlib
import shutil
import tempfile
from pathlib import Path

import data
import pairs
from cluster import GRISTMILL, Nodes
from probe import Probe

TARGETS = [1, 4]
MEMORY = Path("/dev/shm")

# The minimum speed, as a share of that of the plain copy.
GOAL = 0.6

# How many files a place must hold at once: those on the nodes, their predecessors, and copies.
FILES_HELD = 8


def places(options, size):
    """The places for copies: {name: directory}."""
    found = {"disk": options.data}
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > FILES_HELD * size:
        found["memory"] = MEMORY
    else:
        print(f"# without copies in memory: {MEMORY} has no {FILES_HELD} times {data.size_name(size)} free")
    return found


def same(one, other):
    """Whether two files have the same bytes."""
    with open(one, "rb") as a, open(other, "rb") as b:
        while block := a.read(1 << 20):
            if block != b.read(1 << 20):
                return False
        return not b.read(1)


def named(what, number, place):
    word = "stream" if what == "TCP" else "target"
    return f"{what}, {number} {word}{'' if number == 1 else 's'}, {place}"


def sides_of(probe, options, place, directory, source, size, stack):
    scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=directory, prefix="copies-")))
    nodes = stack.enter_context(Nodes(options.gristmill, directory, max(TARGETS)))
    folder, copy = scratch / "tcp", scratch / "copy"
    sides = {}

    def plain(streams):
        def run():
            # The old copy is removed before the time begins.
            shutil.rmtree(folder, ignore_errors=True)
            return checked(probe.ask("tcp", source=source, folder=folder, streams=streams))

        return run

    def put(targets):
        return lambda: checked(nodes.put(probe, source, f"/on{targets}", targets=targets))

    def get(targets):
        def run():
            copy.unlink(missing_ok=True)
            return checked(probe.ask("download", cluster=nodes.entry, file=f"/on{targets}", destination=copy))

        return run

    def checked(answer):
        pairs.require(answer["bytes_read"] == size, f"{answer} instead of {size} bytes")
        return answer["seconds"]

    for targets in TARGETS:
        for what, side in (("put", put), ("get", get), ("TCP", plain)):
            sides[named(what, targets, place)] = side(targets)
        put(targets)()
        get(targets)()
        pairs.require(same(source, copy), f"{copy} is not {source}")
    return sides


def main():
    options = pairs.arguments(
        __doc__.split("\n")[0], size=pairs.SIZE, probe=pairs.PROBE, gristmill=GRISTMILL, min_rounds=10
    )
    size = options.size or (32 * data.MIB if options.quick else data.GIB)
    source = data.make(options.data, "normal", size)
    pairs.warm(source)
    sides = {}
    with contextlib.ExitStack() as stack:
        probe = stack.enter_context(Probe(options.probe))
        found = places(options, size)
        for place, directory in found.items():
            sides |= sides_of(probe, options, place, directory, source, size, stack)
        times = pairs.rounds(sides, options.rounds)
    ratios = [
        pairs.ratio(times, named(what, n, place), named("TCP", n, place), 1 / GOAL)
        for place in found
        for n in TARGETS
        for what in ("put", "get")
    ]
    title = f"Copies of {data.size_name(size)} to and from storage nodes, durable"
    note = f"loopback; the goal is {GOAL:g} of the speed of TCP"
    pairs.report("transfer", title, options, times, dict.fromkeys(times, size), ratios, note)


if __name__ == "__main__":
    main()
