"""How the speed of a sum depends on the size of the file, the targets, the stripe unit and the lanes; and how much memory it
takes."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import data
import pairs
from probe import Probe, stripe

SIZES = [64 * data.MIB, 256 * data.MIB, data.GIB, 4 * data.GIB]
QUICK_SIZES = [8 * data.MIB, 16 * data.MIB, 64 * data.MIB]
# The file size for the points that vary targets and units.
SIZE, QUICK_SIZE = data.GIB, 16 * data.MIB
TARGETS = [1, 2, 4, 8, 16]
UNITS = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
LANES = [1, 2]
# The striping for the points that vary the size.
USUAL_TARGETS, USUAL_UNIT = 4, 1 << 20
MEMORY_BOUND = 128 * data.MIB
ROUNDS, QUICK_ROUNDS = 5, 3


@dataclass(frozen=True)
class Point:
    """One file and a number of lanes. With `targets` 0 it is a plain file."""

    size: int
    targets: int
    unit: int
    lanes: int


@dataclass
class Found:
    """The measurements at a point. `floor` is the time to read the same bytes from a plain file in the same round."""

    seconds: list
    floor: list
    peak_rss: int

    def speed(self, size):
        return size / np.median(self.seconds) / 1e9

    def floor_speed(self, size):
        return size / np.median(self.floor) / 1e9


def measure(options, plain, path, point, truth):
    """Measures a point with a new process, so that its peak memory is that of this point alone."""
    answers = []

    def run():
        answer = probe.run("sum", path, type="f64", lanes=point.lanes)
        pairs.require(answer["result"] == truth and answer["bytes_read"] == point.size, f"{point}: {answer}")
        answers.append(answer)
        return answer["seconds"]

    with Probe(options.probe) as probe, Probe(options.probe) as beside:
        sides = {
            "sum": run,
            "floor": lambda: beside.ask("floor", path=plain, lanes=point.lanes)["seconds"],
        }
        times = pairs.rounds(sides, options.rounds)
    return Found(times["sum"], times["floor"], max(answer["peak_rss_bytes"] for answer in answers))


def measure_all(options, sizes, varied):
    found = {}
    with tempfile.TemporaryDirectory(dir=options.data) as scratch, Probe(options.probe) as putter:
        for size in sorted({*sizes, varied}):
            plain = data.make(options.data, "normal", size)
            pairs.warm(plain)
            truth = putter.run("sum", plain, type="f64", lanes=1)["result"]
            pairs.require(truth["count"] == size // 8, f"{plain}: {truth}")
            stripings = {(0, 0)}
            if size in sizes:
                stripings.add((USUAL_TARGETS, USUAL_UNIT))
            if size == varied:
                stripings |= {(targets, unit) for targets in TARGETS for unit in UNITS}
            for targets, unit in sorted(stripings):
                folder = Path(scratch) / "striped"
                path = stripe(putter, plain, folder, targets, unit) if targets else plain
                for lanes in LANES:
                    point = Point(size, targets, unit, lanes)
                    found[point] = measure(options, plain, path, point, truth)
                    print(line(point, found[point]), flush=True)
                if targets:
                    shutil.rmtree(folder)
    return found


def plural(number, word):
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def line(point, found):
    how = f"{plural(point.targets, 'target')} x {data.size_name(point.unit)}" if point.targets else "plain"
    ratio = np.median(np.array(found.seconds) / np.array(found.floor))
    return (
        f"{data.size_name(point.size)}, {how}, {plural(point.lanes, 'lane')}: {found.speed(point.size):.2f} GB/s, "
        f"{ratio:.2f} x the time to read; peak memory {found.peak_rss / data.MIB:.1f} MiB"
    )


def draw(path, found, sizes, varied, foot):
    figure, grid = plt.subplots(2, 4, figsize=(18, 8.5), layout="constrained")
    panels = list(grid.flat)
    figure.suptitle("Exact sum of f64: speed by size, targets, stripe unit and lanes; peak memory", fontsize=14)
    # This leaves room for a legend above the curves.
    top = 1.4 * max(max(f.speed(p.size), f.floor_speed(p.size)) for p, f in found.items())

    def speeds(axes, points, color, name, floor):
        x = range(len(points))
        axes.plot(x, [found[p].speed(p.size) for p in points], "o-", color=color, ms=5, label=name)
        for i, p in enumerate(points):
            each = p.size / np.array(found[p].seconds) / 1e9
            axes.plot([i, i], [each.min(), each.max()], color=color, lw=1, alpha=0.6)
        if floor:
            read = [found[p].floor_speed(p.size) for p in points]
            axes.plot(x, read, ":", color=color, lw=1.5, label=floor)

    def finish(axes, title, labels, xlabel, ylabel):
        axes.set_title(title, fontsize=11)
        axes.set_xticks(range(len(labels)), [label.replace("iB", "") for label in labels], fontsize=9)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.set_ylim(0)
        axes.grid(color="#e3e3e3", lw=0.7)
        axes.spines[["top", "right"]].set_visible(False)

    usual = f"{USUAL_TARGETS} targets x {data.size_name(USUAL_UNIT)}"
    kinds = [("plain", 0, 0), (usual, USUAL_TARGETS, USUAL_UNIT)]
    size_names = [data.size_name(size) for size in sizes]
    colors = iter(pairs.LINES)
    for name, targets, unit in kinds:
        for lanes in LANES:
            points = [Point(size, targets, unit, lanes) for size in sizes]
            color = next(colors)
            named = f"{name}, {plural(lanes, 'lane')}"
            floor = "" if targets else f"only read, {plural(lanes, 'lane')}"
            speeds(panels[0], points, color, named, floor)
            rss = [found[p].peak_rss / data.MIB for p in points]
            panels[1].plot(range(len(points)), rss, "o-", color=color, ms=5, label=named)
    finish(panels[0], "By size of the file", size_names, "file size (bytes)", "GB/s")
    panels[0].set_ylim(0, top)
    panels[0].legend(fontsize=7.5, loc="upper left", ncols=2)
    finish(panels[1], "Peak memory by size of the file", size_names, "file size (bytes)", "peak resident MiB")
    bound = MEMORY_BOUND / data.MIB
    panels[1].axhline(bound, color=pairs.GOAL, lw=1.5)
    panels[1].annotate(f"bound: {bound:g} MiB", (0, bound), xytext=(0, 4), textcoords="offset points", fontsize=9)
    panels[1].set_ylim(0, 1.15 * max(bound, *(f.peak_rss / data.MIB for f in found.values())))
    panels[1].legend(fontsize=8)
    unit_names = [data.size_name(unit) for unit in UNITS]
    for axes, targets in zip(panels[2:], TARGETS):
        for lanes, color in zip(LANES, pairs.LINES):
            points = [Point(varied, targets, unit, lanes) for unit in UNITS]
            threads = plural(lanes, "lane")
            speeds(axes, points, color, f"sum, {threads}", f"only read, {threads}")
        title = f"{plural(targets, 'target')}, {data.size_name(varied)}"
        finish(axes, title, unit_names, "stripe unit (bytes)", "GB/s")
        axes.set_ylim(0, top)
    panels[2].legend(fontsize=7.5, loc="upper left", ncols=2)
    # The memory of all stripings, beside the panels with the same points.
    last = panels[7]
    for targets, color in zip(TARGETS, pairs.LINES):
        points = [Point(varied, targets, unit, max(LANES)) for unit in UNITS]
        rss = [found[p].peak_rss / data.MIB for p in points]
        last.plot(range(len(points)), rss, "o-", color=color, ms=5, label=plural(targets, "target"))
    title = f"Peak memory, {data.size_name(varied)}, {plural(max(LANES), 'lane')}"
    finish(last, title, unit_names, "stripe unit (bytes)", "peak resident MiB")
    last.set_ylim(0, 1.4 * max(found[p].peak_rss / data.MIB for p in found if p.size == varied))
    last.legend(fontsize=7.5, loc="upper left", ncols=2)
    figure.supxlabel(foot, fontsize=9, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    options = pairs.arguments(__doc__, min_rounds=ROUNDS, quick_rounds=QUICK_ROUNDS, probe=pairs.PROBE)
    sizes, varied = (QUICK_SIZES, QUICK_SIZE) if options.quick else (SIZES, SIZE)
    print(f"# Growth of the sum ({pairs.described(options)})")
    print(f"# medians of {options.rounds} rounds", flush=True)
    found = measure_all(options, sizes, varied)
    rows = [
        (p.size, p.targets, p.unit, p.lanes, number, f"{seconds:.9f}", f"{floor:.9f}", f.peak_rss)
        for p, f in found.items()
        for number, (seconds, floor) in enumerate(zip(f.seconds, f.floor))
    ]
    header = ["bytes", "targets", "unit", "lanes", "round", "seconds", "floor_seconds", "peak_rss_bytes"]
    pairs.write_csv(options.results / "growth.csv", header, rows)
    note = "line: median, bar: fastest to slowest round; dotted: only reading the plain file"
    draw(options.results / "growth.png", found, sizes, varied, pairs.footer(options, note))
    peak = max(f.peak_rss for f in found.values())
    verdict = "reached" if peak <= MEMORY_BOUND else "NOT reached"
    print(f"peak memory anywhere: {peak / data.MIB:.1f} MiB  goal <= {MEMORY_BOUND // data.MIB} MiB: {verdict}")


if __name__ == "__main__":
    main()
