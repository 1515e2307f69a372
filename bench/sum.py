"""The exact sum compared with reading alone, plain addition and NumPy, for plain and striped files, with easy and hard data."""

import math
import tempfile
from pathlib import Path

import numpy as np

import data
import pairs
from probe import Probe, stripe

TARGETS = 4
UNITS = {"64 KiB": 64 << 10, "1 MiB": 1 << 20}
HARD = {"binades": "200 binades", "fill": "fill values 1e36", "lognormal": "lognormal"}

# The rounding error of NumPy for a sum of values whose magnitudes add up to m, as a multiple of m times 2^-53. NumPy adds pairwise
# above blocks of 128. The depth of plain addition grows with the number of values.
PAIRWISE_DEPTH = 200


def exact(path):
    """The correctly rounded sum and the sum of the magnitudes, computed in bounded memory."""
    array = np.memmap(path, dtype="<f8", mode="r")
    chunks = range(0, len(array), 1 << 20)
    values = math.fsum(x for at in chunks for x in array[at : at + (1 << 20)].tolist())
    return values, math.fsum(float(np.abs(array[at : at + (1 << 20)]).sum()) for at in chunks)


def main():
    options = pairs.arguments(__doc__, size=pairs.SIZE, lanes=pairs.LANES, probe=pairs.PROBE)
    size = options.size or (64 * data.MIB if options.quick else data.GIB)
    lanes = options.lanes
    files = {kind: data.make(options.data, kind, size) for kind in ("normal", *HARD)}
    with Probe(options.probe) as probe, tempfile.TemporaryDirectory(dir=options.data) as scratch:
        easy = files["normal"]
        striped = {
            name: stripe(probe, easy, Path(scratch) / name.replace(" ", ""), TARGETS, unit)
            for name, unit in UNITS.items()
        }
        pairs.warm(*files.values(), Path(scratch))

        truths = {kind: exact(path) for kind, path in files.items()}

        def run(path, kind, lanes=lanes):
            def side():
                answer = probe.run("sum", path, type="f64", lanes=lanes)
                result = answer["result"]
                pairs.require(
                    result == {"sum": truths[kind][0], "count": size // 8} and answer["bytes_read"] == size,
                    f"{path}: {answer} instead of {truths[kind][0]!r}",
                )
                return answer["seconds"]

            return side

        def plain(path, kind):
            def side():
                answer = probe.ask("plain", path=path, lanes=lanes)
                near(answer["result"]["sum"], kind, size // 8)
                return answer["seconds"]

            return side

        def near(value, kind, depth):
            truth, magnitude = truths[kind]
            pairs.require(abs(value - truth) <= depth * 2.0**-53 * magnitude, f"{kind}: {value!r}, {truth!r}")

        for kind, path in files.items():
            near(float(np.fromfile(path).sum()), kind, PAIRWISE_DEPTH)

        sides = {
            "gristmill": run(easy, "normal"),
            "gristmill, 1 lane": run(easy, "normal", 1),
            **{f"gristmill, {TARGETS} targets x {n}": run(p, "normal") for n, p in striped.items()},
            "read only": lambda: probe.ask("floor", path=easy, lanes=lanes)["seconds"],
            "read only, 1 lane": lambda: probe.ask("floor", path=easy, lanes=1)["seconds"],
            "plain addition": plain(easy, "normal"),
            "numpy.fromfile": pairs.timed(lambda: np.fromfile(easy).sum()),
            "numpy.memmap": pairs.timed(lambda: np.memmap(easy, "<f8", "r").sum()),
        }
        for kind, name in HARD.items():
            path = files[kind]
            sides[f"gristmill, {name}"] = run(path, kind)
            sides[f"read only, {name}"] = lambda path=path: probe.ask("floor", path=path, lanes=lanes)["seconds"]
            sides[f"plain addition, {name}"] = plain(path, kind)
            sides[f"numpy.fromfile, {name}"] = pairs.timed(lambda path=path: np.fromfile(path).sum())
            sides[f"numpy.memmap, {name}"] = pairs.timed(lambda path=path: np.memmap(path, "<f8", "r").sum())
        times = pairs.rounds(sides, options.rounds)

    ratios = [
        pairs.ratio(times, "gristmill", "read only", 1.5),
        pairs.ratio(times, "gristmill", "plain addition", 1.5),
        pairs.ratio(times, "gristmill", "numpy.fromfile", 1.0),
        pairs.ratio(times, "gristmill", "numpy.memmap", 1.0, "aim"),
        pairs.ratio(times, "gristmill, 1 lane", "read only, 1 lane"),
        pairs.ratio(times, "gristmill, 1 lane", "numpy.fromfile"),
        *(pairs.ratio(times, f"gristmill, {TARGETS} targets x {n}", "read only", 1.7) for n in UNITS),
    ]
    for name in HARD.values():
        for base, goal, word in (
            ("read only", 1.5, "goal"),
            ("plain addition", 1.5, "goal"),
            ("numpy.fromfile", 1.0, "goal"),
            ("numpy.memmap", 1.0, "aim"),
        ):
            ratios.append(pairs.ratio(times, f"gristmill, {name}", f"{base}, {name}", goal, word))
    title = f"Sum of {data.size_name(size)} of f64, {lanes} lanes"
    note = f"NumPy {np.__version__}, one thread"
    pairs.report("sum", title, options, times, dict.fromkeys(times, size), ratios, note)


if __name__ == "__main__":
    main()
