"""How long small requests to storage nodes take, compared with one byte that goes back and forth over a TCP connection."""

import struct
import textwrap

import matplotlib.pyplot as plt
import numpy as np

import data
import pairs
from cluster import GRISTMILL, Nodes
from probe import Probe

NODES = 4
GOAL = 1e-3
COUNT, QUICK_COUNT = 1000, 50
ROUNDS = 10

PING, EIGHT, FOUR, ECHO = "empty request", "sum of 8 bytes", "sum of 4 MiB on 4 nodes", "TCP echo"
PERCENTILES = [*range(1, 100), 99.9]


def draw(path, samples, foot):
    figure, axes = plt.subplots(figsize=(10, 5.5), layout="constrained")
    axes.set_title("Time of small requests to storage nodes, one after the other on one connection")
    for (name, seconds), color in zip(samples.items(), pairs.LINES):
        sizes = np.sort(seconds) * 1e3
        at = np.searchsorted(np.linspace(0, 1, len(sizes)), [0.5, 0.99])
        label = f"{name}: p50 {sizes[at[0]]:.3f} ms, p99 {sizes[min(at[1], len(sizes) - 1)]:.3f} ms"
        axes.plot(sizes, np.linspace(0, 100, len(sizes)), color=color, lw=1.8, label=label)
    goal = f"goal: half of the empty requests in {GOAL * 1e3:g} ms"
    axes.plot([GOAL * 1e3] * 2, [0, 50], color=pairs.GOAL, lw=2, label=goal)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds (log scale)")
    axes.set_ylabel("percent of requests that took at most so long")
    axes.set_ylim(0, 100)
    axes.grid(color="#e3e3e3", lw=0.7)
    axes.set_xlim(right=3e2)
    axes.legend(loc="center right", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(textwrap.fill(foot, 150), fontsize=8, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    options = pairs.arguments(__doc__, min_rounds=ROUNDS, probe=pairs.PROBE, gristmill=GRISTMILL)
    count = QUICK_COUNT if options.quick else COUNT
    small = options.data / "eight.f64"
    options.data.mkdir(parents=True, exist_ok=True)
    small.write_bytes(struct.pack("<d", 42.5))
    striped = data.make(options.data, "normal", 4 * data.MIB)
    found = {name: [] for name in (PING, EIGHT, FOUR, ECHO)}
    with Probe(options.probe) as probe, Nodes(options.gristmill, options.data, NODES) as nodes:
        nodes.put(probe, small, "/eight", targets=1)
        nodes.put(probe, striped, "/striped")
        truth = probe.run("sum", striped, type="f64")["result"]

        def kept(name, answer, result=None):
            pairs.require(answer.get("result") == result and len(answer["each"]) == count, f"{name}: {answer}")
            found[name].append(answer["each"])
            return float(np.median(answer["each"]))

        sides = {
            PING: lambda: kept(PING, probe.ask("ping", cluster=nodes.entry, count=count)),
            EIGHT: lambda: kept(EIGHT, nodes.ask(probe, "sum", "/eight", count=count), {"sum": 42.5, "count": 1}),
            FOUR: lambda: kept(FOUR, nodes.ask(probe, "sum", "/striped", count=count), truth),
            ECHO: lambda: kept(ECHO, probe.ask("echo", count=count)),
        }
        medians = pairs.rounds(sides, options.rounds)
    # The first round does not count.
    samples = {name: np.concatenate(each[1:]) for name, each in found.items()}
    print(f"# Small requests, {count} each in {options.rounds} rounds ({pairs.described(options)})")
    for name, seconds in samples.items():
        half, most, last = np.percentile(seconds, [50, 99, 99.9]) * 1e3
        print(f"{name}: p50 {half:.3f} ms, p99 {most:.3f} ms, p99.9 {last:.3f} ms")
    print(f"# ratios of medians, in {options.rounds} rounds [95 % bootstrap interval]")
    for name in (PING, EIGHT, FOUR):
        print(pairs.ratio(medians, name, ECHO).line())
    half = float(np.percentile(samples[PING], 50))
    verdict = "reached" if half <= GOAL else "NOT reached"
    print(f"{PING}: p50 {half * 1e3:.3f} ms  goal <= {GOAL * 1e3:g} ms: {verdict}", flush=True)
    rows = [
        (number, name, percent, f"{seconds:.9f}")
        for name, each in found.items()
        for number, times in enumerate(each[1:])
        for percent, seconds in zip(PERCENTILES, np.percentile(times, PERCENTILES))
    ]
    pairs.write_csv(options.results / "latency.csv", ["round", "side", "percentile", "seconds"], rows)
    foot = pairs.footer(options, f"{count} requests a round, loopback")
    draw(options.results / "latency.png", samples, foot)


if __name__ == "__main__":
    main()
