"""Many small files that are put and folded on storage nodes, compared with durable copies in the file system."""

import shutil
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import data
import pairs
from cluster import GRISTMILL, Nodes
from probe import Probe

NODES = 4
FILES, QUICK_FILES = 1000, 40
BYTES = 4096
THREADS = 32
GOAL = 1000
ROUNDS = 10

PUT, FOLD, BOTH, COPIES = "put", "fold", "put and fold", "local copies"


def make(folder, count):
    """Makes files of f64. Returns the sum of each, in the order of names."""
    values = np.random.default_rng(7).integers(-1000, 1000, (count, BYTES // 8)).astype("<f8")
    for number, row in enumerate(values):
        row.tofile(folder / f"{number:05}.f64")
    return values.sum(axis=1).tolist()


def draw(path, speeds, foot):
    figure, axes = plt.subplots(figsize=(9, 3.8), layout="constrained")
    axes.set_title(f"Files of {data.size_name(BYTES)}: how many a second")
    for y, (name, each) in enumerate(speeds.items()):
        axes.barh(y, np.median(each), color=pairs.FAINT, height=0.62)
        axes.plot(each, np.full(len(each), y), "o", color=pairs.DOT, ms=4, alpha=0.6)
        axes.annotate(f"{np.median(each):,.0f}", (1.01, y), xycoords=("axes fraction", "data"), va="center")
    y = list(speeds).index(BOTH)
    axes.plot([GOAL] * 2, [y - 0.4, y + 0.4], color=pairs.GOAL, lw=2)
    axes.set_yticks(range(len(speeds)), list(speeds))
    axes.set_ylim(len(speeds) - 0.4, -0.6)
    axes.set_xlim(0)
    axes.set_xlabel("files a second: bar is the median, dots are rounds, red mark is the goal")
    axes.grid(axis="x", color="#e3e3e3", lw=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(textwrap.fill(foot, 120), fontsize=8, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    options = pairs.arguments(__doc__, min_rounds=ROUNDS, quick_rounds=2, probe=pairs.PROBE, gristmill=GRISTMILL)
    count = QUICK_FILES if options.quick else FILES
    options.data.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=options.data, prefix="small-") as scratch,
        Probe(options.probe) as probe,
        Nodes(options.gristmill, options.data, NODES) as nodes,
    ):
        source, copied = Path(scratch) / "source", Path(scratch) / "copied"
        source.mkdir()
        sums = make(source, count)
        what = {"kernel": "sum", "type": "f64", "place": "storage"}
        parts = {PUT: [], FOLD: []}

        def both():
            folder = f"/small{len(parts[PUT])}"
            put = probe.ask("putmany", cluster=nodes.entry, source=source, folder=folder)
            fold = probe.ask("foldmany", cluster=nodes.entry, folder=folder, what=what, threads=THREADS)
            found = [result["sum"] for result in fold["result"]]
            pairs.require(found == sums and put["bytes_read"] == count * BYTES, f"{folder}: {put}, {found}")
            parts[PUT].append(put["seconds"])
            parts[FOLD].append(fold["seconds"])
            return put["seconds"] + fold["seconds"]

        def copies():
            shutil.rmtree(copied, ignore_errors=True)
            return probe.ask("copies", source=source, folder=copied, threads=THREADS)["seconds"]

        times = pairs.rounds({BOTH: both, COPIES: copies}, options.rounds)
    # The first round does not count.
    times |= {name: seconds[1:] for name, seconds in parts.items()}
    speeds = {name: count / np.array(times[name]) for name in (PUT, FOLD, BOTH, COPIES)}
    print(f"# {count} files of {BYTES} bytes ({pairs.described(options)})")
    for name, each in speeds.items():
        low, high = pairs.interval(each)
        print(f"{name}: {np.median(each):,.0f} files a second [{low:,.0f}, {high:,.0f}]")
    print(pairs.ratio(times, PUT, COPIES).line())
    reached = "reached" if np.median(speeds[BOTH]) >= GOAL else "NOT reached"
    print(f"{BOTH}: {np.median(speeds[BOTH]):,.0f} files a second  goal >= {GOAL:,}: {reached}", flush=True)
    pairs.times_to_csv(options.results / "small.csv", times, dict.fromkeys(times, count * BYTES))
    note = f"{NODES} nodes, loopback; everything durable; folds from {THREADS} threads"
    draw(options.results / "small.png", speeds, pairs.footer(options, note))


if __name__ == "__main__":
    main()
