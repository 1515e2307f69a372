"""The exact sum on storage nodes, compared with reading their objects with as many threads and doing nothing with them."""

import contextlib

import data
import pairs
from cluster import GRISTMILL, Nodes
from probe import Probe

NODES = 4
GOAL = 1.7
HARD = {"fill": "fill values 1e36", "binades": "200 binades"}


def main():
    options = pairs.arguments(__doc__, size=pairs.SIZE, lanes=pairs.LANES, probe=pairs.PROBE, gristmill=GRISTMILL)
    size = options.size or (64 * data.MIB if options.quick else data.GIB)
    files = {kind: data.make(options.data, kind, size) for kind in ("normal", *HARD)}
    easy = files["normal"]
    with contextlib.ExitStack() as stack:
        probe = stack.enter_context(Probe(options.probe))
        four, one = (stack.enter_context(Nodes(options.gristmill, options.data, n)) for n in (NODES, 1))
        for kind, path in files.items():
            four.put(probe, path, f"/{kind}.f64")
        one.put(probe, easy, "/normal.f64")
        pairs.warm(*files.values(), four.directory, one.directory)
        truths = {kind: probe.run("sum", path, type="f64")["result"] for kind, path in files.items()}

        def side(nodes, kind="normal", place="storage"):
            def run():
                answer = nodes.ask(probe, "sum", f"/{kind}.f64", place=place)
                agreed = answer["result"] == truths[kind] and answer["bytes_read"] == size
                pairs.require(agreed, f"{kind} on {nodes.count} nodes: {answer} instead of {truths[kind]}")
                return answer["seconds"]

            return run

        def read(kind):
            return lambda: four.floor(probe, f"/{kind}.f64", size, options.lanes)

        def local():
            answer = probe.run("sum", easy, type="f64", lanes=options.lanes)
            return answer["seconds"]

        sides = {
            f"{NODES} nodes": side(four),
            "1 node": side(one),
            "without nodes": local,
            f"{NODES} nodes, folded at the client": side(four, place="client"),
            "read only": read("normal"),
            "read only, the plain file": lambda: probe.ask("floor", path=easy, lanes=options.lanes)["seconds"],
        }
        for kind, name in HARD.items():
            sides[f"{NODES} nodes, {name}"] = side(four, kind)
            sides[f"read only, {name}"] = read(kind)
        times = pairs.rounds(sides, options.rounds)
    ours = f"{NODES} nodes"
    ratios = [
        pairs.ratio(times, ours, "read only", GOAL),
        pairs.ratio(times, "1 node", "read only"),
        pairs.ratio(times, ours, "without nodes"),
        pairs.ratio(times, "read only", "read only, the plain file"),
        pairs.ratio(times, ours, f"{NODES} nodes, folded at the client"),
        *(pairs.ratio(times, f"{NODES} nodes, {name}", f"read only, {name}") for name in HARD.values()),
    ]
    title = f"Sum of {data.size_name(size)} of f64 on storage nodes"
    pairs.report("nodes", title, options, times, dict.fromkeys(times, size), ratios, "loopback, stripes of 1 MiB")


if __name__ == "__main__":
    main()
