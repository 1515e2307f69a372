"""Measures several sides in turns, compares their ratios with goals, and draws them.

All sides of a comparison run once in each round, in a random order. So other work of the machine affects all of them alike. A
ratio is the median over the rounds of (time of one side / time of the other in the same round); its 95 % interval is the
percentile bootstrap over rounds.
"""

import argparse
import csv
import os
import platform
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import data
from probe import ROOT, release_binary

MIN_ROUNDS = 15
QUICK_ROUNDS = 5

# Options that several programs take, for `arguments`.
PROBE = {
    "type": Path,
    "default": release_binary("gristmill-probe"),
    "help": "the gristmill-probe to ask (default: %(default)s)",
}
LANES = {"type": int, "default": len(os.sched_getaffinity(0)), "help": "threads (default: all cores)"}
SIZE = {"type": data.parse_size, "help": "bytes of the file (default: 1GiB; --quick: 64MiB)"}
RESAMPLES = 10_000

# The possible numbers on a logarithmic axis of ratios.
TICKS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]
FINE_TICKS = [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7, 10]

DOT, FAINT, GOAL, RULE = "#1f5fa8", "#9db8d6", "#c0392b", "#888888"
LINES = ["#1f5fa8", "#d1730b", "#3a8a3a", "#8a4fa3", "#7a5a48", "#c43e6a", "#4c4c4c"]


@dataclass(frozen=True)
class Ratio:
    """Time of `over` / time of `base`. `goal` is the maximum, and `word` says how binding it is."""

    over: str
    base: str
    each: tuple
    median: float
    low: float
    high: float
    goal: float | None = None
    word: str = "goal"

    def line(self):
        low, high = short(self.low), short(self.high)
        text = f"{self.over} / {self.base}: {short(self.median)} [{low}, {high}]"
        if self.goal is None:
            return f"{text}  (reported, no goal)"
        verdict = "reached" if self.median <= self.goal else "NOT reached"
        if self.low <= self.goal < self.high:
            verdict += ", the interval crosses it"
        return f"{text}  {self.word} <= {self.goal:.3g}: {verdict}"


def short(ratio):
    """The ratio with two digits after the point. A small ratio has two significant digits."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def arguments(about, min_rounds=MIN_ROUNDS, quick_rounds=QUICK_ROUNDS, **more):
    """Parses the options that all programs take, and `more`: {name: settings of add_argument}."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="small data and few rounds: does it all work?")
    parser.add_argument("--rounds", type=int, help=f"at least {min_rounds}, which is the default; --quick: any")
    parser.add_argument("--data", type=Path, default=data.DEFAULT_DIR, help="data folder (default: %(default)s)")
    parser.add_argument(
        "--results", type=Path, help="for CSV and PNG (default: bench/results; --quick: target/bench-quick)"
    )
    for name, settings in more.items():
        parser.add_argument(f"--{name}", **settings)
    options = parser.parse_args()
    least = 1 if options.quick else min_rounds
    if options.rounds is None:
        options.rounds = quick_rounds if options.quick else min_rounds
    if options.rounds < least:
        parser.error(f"{options.rounds} rounds are too few; take {least} or more")
    if options.results is None:
        options.results = ROOT / ("target/bench-quick" if options.quick else "bench/results")
    options.results.mkdir(parents=True, exist_ok=True)
    options.load = load()
    # A program that gets a signal to stop still removes its files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))
    return options


def load():
    """The load average of the last minute. It shows whether other programs were running."""
    return os.getloadavg()[0]


def warm(*paths):
    """Reads files, and all files below folders, into the page cache."""
    buffer = bytearray(1 << 20)
    for path in paths:
        for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
            with open(file, "rb", buffering=0) as f:
                while f.readinto(buffer):
                    pass


def timed(function):
    """A side that measures the wall-clock time of a function. It includes freeing what the function returns."""

    def run():
        begun = time.perf_counter()
        kept = function()
        seconds = time.perf_counter() - begun
        del kept
        return seconds

    return run


def rounds(sides, count, seed=0):
    """The seconds of every side in every round: {name: [seconds, ...]}. One more round comes first and does not count."""
    order = np.random.default_rng(seed)
    names = list(sides)
    times = {name: [] for name in names}
    for number in range(count + 1):
        for i in order.permutation(len(names)):
            seconds = sides[names[i]]()
            if number > 0:
                times[names[i]].append(seconds)
    return times


def ratio(times, over, base, goal=None, word="goal"):
    each = np.array(times[over]) / np.array(times[base])
    low, high = interval(each)
    return Ratio(over, base, tuple(each.tolist()), float(np.median(each)), low, high, goal, word)


def interval(values, seed=0):
    """95 % percentile bootstrap of the median."""
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.percentile(np.median(np.asarray(values)[picks], axis=1), [2.5, 97.5])
    return float(low), float(high)


def require(holds, what):
    """Ends the program if two sides do not agree."""
    if not holds:
        raise SystemExit(f"the answers do not agree: {what}")


def host():
    """A description of the machine in one line."""
    with open("/proc/cpuinfo") as cpuinfo:
        models = {line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")}
    cores = len(os.sched_getaffinity(0))
    model = ", ".join(sorted(models)) or platform.machine()
    return f"one machine, {cores} cores, {model}, Linux {platform.release()}, files in page cache"


def write_csv(path, header, rows):
    with open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(header)
        writer.writerows(rows)


def times_to_csv(path, times, sizes):
    """Writes one line for each measurement. `sizes` has the bytes that each side processes."""
    rows = [
        (number, name, f"{seconds:.9f}", sizes[name])
        for name, all_seconds in times.items()
        for number, seconds in enumerate(all_seconds)
    ]
    write_csv(path, ["round", "side", "seconds", "bytes"], sorted(rows, key=lambda row: row[0]))


def report(name, title, options, times, sizes, ratios, note=""):
    """Prints the ratios, writes the raw times and draws both."""
    print(f"# {title} ({described(options)})")
    print(f"# median of {options.rounds} paired ratios of times [95 % bootstrap interval]; below 1: gristmill is faster")
    for found in ratios:
        print(found.line(), flush=True)
    times_to_csv(options.results / f"{name}.csv", times, sizes)
    draw(options.results / f"{name}.png", title, times, sizes, ratios, footer(options, note))


def described(options):
    """A description of the machine and of the run."""
    quick = "; QUICK: no figures to keep" if options.quick else ""
    return f"{host()}; load {options.load:.1f} before{quick}"


def footer(options, note=""):
    quick = "QUICK RUN: no figures to keep" if options.quick else ""
    parts = [host(), f"load {options.load:.1f} before", f"{options.rounds} interleaved rounds", note, quick]
    return "; ".join(part for part in parts if part)


def draw(path, title, times, sizes, ratios, foot):
    """Left: the ratios with interval and goal. Right: the speed of each side."""
    rows = max(len(ratios), len(times))
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(17, 1.9 + 0.36 * rows), width_ratios=[1.15, 1], layout="constrained"
    )
    figure.suptitle(title, fontsize=14)
    for y, found in enumerate(ratios):
        left.plot(found.each, np.full(len(found.each), y), "o", color=FAINT, ms=4, zorder=5, mec=DOT, mew=0.5)
        left.plot([found.low, found.high], [y, y], "-", color=DOT, lw=5, alpha=0.45, zorder=3, solid_capstyle="butt")
        left.plot(found.median, y, "o", color=DOT, ms=7, zorder=4)
        if found.goal is not None:
            left.plot([found.goal] * 2, [y - 0.36, y + 0.36], color=GOAL, lw=2, zorder=3)
        left.annotate(
            short(found.median), (1.01, y), xycoords=("axes fraction", "data"), va="center", fontsize=10
        )
    left.axvline(1, color=RULE, lw=0.8, zorder=1)
    left.set_xscale("log")
    spread = [x for r in ratios for x in (*r.each, r.goal or 1.0)]
    left.set_xlim(min(spread) / 1.1, max(spread) * 1.1)
    low, high = left.get_xlim()
    ticks = [t for t in (TICKS if high / low > 6 else FINE_TICKS) if low <= t <= high]
    left.set_xticks(ticks, [f"{t:g}" for t in ticks])
    left.xaxis.minorticks_off()
    left.set_yticks(range(len(ratios)), [f"{r.over}  /  {r.base}" for r in ratios])
    left.set_xlabel(
        "ratio of times (log scale): dots are rounds, bar is the 95 % interval of the median,\n"
        "red mark is the goal; further left is faster"
    )
    for y, (side, seconds) in enumerate(times.items()):
        speed = sizes[side] / np.array(seconds) / 1e9
        right.barh(y, np.median(speed), color=FAINT, height=0.62)
        right.plot(speed, np.full(len(speed), y), "o", color=DOT, ms=3, alpha=0.5)
        right.annotate(
            f"{np.median(speed):.2f}", (1.01, y), xycoords=("axes fraction", "data"), va="center", fontsize=10
        )
    right.set_yticks(range(len(times)), list(times))
    right.set_xlim(0)
    right.set_xlabel("GB/s of the file (10⁹ bytes a second):\nbar is the median, dots are rounds")
    for axes, count in ((left, len(ratios)), (right, len(times))):
        axes.set_ylim(count - 0.4, -0.6)
        axes.grid(axis="x", color="#e3e3e3", lw=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(foot, fontsize=9, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


