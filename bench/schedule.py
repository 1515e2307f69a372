"""How long it takes to decide where requests run, by the length of the queue, and how long the requests then take in a simulation.

Both come from the example `scale` of the crate that decides. Decisions are timed on one core. The seconds of the simulated worlds
are those of simulated machines, and say nothing about this machine.
"""

import csv
import io
import subprocess
import textwrap

import matplotlib.pyplot as plt
import numpy as np

import pairs
from probe import ROOT

GOAL_WORKS, GOAL = 10_000, 5e-3
WHAT = {
    "paper": "paper: DOSAS, exact",
    "overlap": "overlap: least largest load",
    "place": "overlap, from shards to explained places",
}
POLICIES = {"storage": "all at storage", "client": "all at clients", "paper": "paper", "overlap": "overlap"}
STATIC = ("storage", "client")


def said(part, quick):
    """The rows of one part of the example's output."""
    command = ["cargo", "run", "--quiet", "--release", "-p", "gristmill-schedule", "--example", "scale", "--", part]
    command += ["--quick"] if quick else []
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(out)))


def keep(path, rows):
    pairs.write_csv(path, list(rows[0]), [list(row.values()) for row in rows])


def ratios(rows):
    """The makespan over that of the best static choice: {(world, intensity): {policy: [one for each seed]}}."""
    found = {}
    for row in rows:
        each = found.setdefault((row["world"], row["intensity"]), {name: [] for name in [*POLICIES, "bound"]})
        each[row["policy"]].append(float(row["makespan"]) / float(row["best_static"]))
        if row["policy"] == "overlap":
            each["bound"].append(float(row["bound"]) / float(row["best_static"]))
    return found


def draw_times(axes, queues):
    for (name, label), color in zip(WHAT.items(), pairs.LINES):
        rows = [row for row in queues if row["what"] == name]
        works = [int(row["works"]) for row in rows]
        axes.plot(works, [float(row["median_seconds"]) * 1e3 for row in rows], "o-", color=color, label=label)
    axes.plot(GOAL_WORKS, GOAL * 1e3, "_", color=pairs.GOAL, ms=26, mew=2.5, zorder=5, label="goal: 5 ms for 10,000")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("requests in the queue")
    axes.set_ylabel("milliseconds to decide (median)")
    axes.set_title("Deciding, one core")
    axes.legend(loc="upper left", fontsize=9)


def draw_worlds(axes, found):
    colors = dict(zip(POLICIES, [pairs.FAINT, pairs.RULE, pairs.LINES[1], pairs.DOT]))
    for x, each in enumerate(found.values()):
        for policy, color in colors.items():
            values = each[policy]
            first = POLICIES[policy] if x == 0 else None
            axes.plot([x] * 2, [min(values), max(values)], "-", color=color, lw=5, alpha=0.4)
            axes.plot(x, np.median(values), "o", color=color, ms=6, label=first)
        low = np.median(each["bound"])
        axes.plot(x, low, "_", color=pairs.GOAL, ms=12, mew=2, label="nothing can be below" if x == 0 else None)
    axes.axhline(1, color=pairs.RULE, lw=0.8, zorder=1)
    axes.set_yscale("log")
    ticks = [0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20]
    low, high = axes.get_ylim()
    axes.set_yticks([t for t in ticks if low <= t <= high], [f"{t:g}" for t in ticks if low <= t <= high])
    axes.yaxis.minorticks_off()
    axes.set_xticks(range(len(found)), [f"{world}, {intensity}" for world, intensity in found], rotation=60, ha="right")
    axes.set_xlabel("world, and requests that arrive over what storage nodes can fold")
    axes.set_ylabel("makespan / that of the best static choice")
    axes.set_title("All requests done, simulated: median and range over seeds")
    axes.legend(loc="upper left", fontsize=9)


def draw(path, queues, found, foot):
    figure, (left, right) = plt.subplots(1, 2, figsize=(15, 7), width_ratios=[1, 1.35], layout="constrained")
    draw_times(left, queues)
    draw_worlds(right, found)
    for axes in (left, right):
        axes.grid(color="#e3e3e3", lw=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(textwrap.fill(foot, 170), fontsize=8, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    options = pairs.arguments(__doc__, min_rounds=1, quick_rounds=1)
    queues, worlds = said("queue", options.quick), said("worlds", options.quick)
    keep(options.results / "schedule_queues.csv", queues)
    keep(options.results / "schedule_worlds.csv", worlds)
    print(f"# Deciding where requests run ({pairs.described(options)})")
    for row in queues:
        gap = f", at most {float(row['gap']):.3%} above the best" if row["what"] == "overlap" else ""
        verdict = ""
        if int(row["works"]) == GOAL_WORKS and row["what"] != "place":
            verdict = f"  goal <= 5 ms: {'reached' if float(row['median_seconds']) <= GOAL else 'NOT reached'}"
        median, least = (float(row[name]) * 1e3 for name in ("median_seconds", "least_seconds"))
        print(f"{row['works']} requests, {row['what']}: {median:.3f} ms (least {least:.3f}){gap}{verdict}")
    found = ratios(worlds)
    for (world, intensity), each in found.items():
        ranges = ", ".join(f"{policy} {pairs.short(np.median(each[policy]))}" for policy in [*POLICIES, "bound"])
        print(f"{world}, intensity {intensity}: makespan / best static: {ranges}")
    worst = max(max(each["overlap"]) for each in found.values())
    print(f"overlap / best static at worst: {worst:.4f}")
    longest = max(worlds, key=lambda row: int(row["requests"]) * int(row["nodes"]))
    took = sum(float(row["seconds"]) for row in worlds if row["world"] == longest["world"])
    print(f"{longest['world']}, {longest['requests']} requests: simulated in {took:.1f} s with all four policies")
    seeds = max(len(each["overlap"]) for each in found.values())
    foot = f"{pairs.described(options)}; decisions: median of many; worlds: simulated, {seeds} seeds each"
    draw(options.results / "schedule.png", queues, found, foot)


if __name__ == "__main__":
    main()
