"""How long nodes take to agree on a pass, by the number of nodes: an allreduce, measured to 16 nodes on this machine and simulated
to 1,000.

A pass is k-means over a few points of each node. Nodes fold these points in microseconds, so the time of a pass is that of the
exchange. It is the time of all passes less that of a run with one pass, divided by the number of passes. The simulation runs the
same code and counts messages that follow each other. The picture uses the time of one message as measured with two nodes.
"""

import csv
import io
import subprocess
import textwrap

import matplotlib.pyplot as plt
import numpy as np

import pairs
from cluster import GRISTMILL, Nodes
from probe import ROOT, Probe

COUNTS, QUICK_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16), (1, 2, 3)
POINTS, DIMS, K = 256, 2, 16
ROUNDS, FEW, MANY = 10, 1, 101


def simulated():
    """The delays and messages, by the number of servers."""
    command = ["cargo", "run", "--quiet", "--release", "-p", "gristmill-collective", "--example", "latency"]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [{name: int(n) for name, n in row.items()} for row in csv.DictReader(io.StringIO(said))]


def measured(options, count):
    """The seconds of a pass on so many nodes, in each round."""
    path = options.data / f"few-points-{count}.f64"
    rng = np.random.default_rng(3)
    rng.normal(size=(POINTS * count, DIMS)).tofile(path)
    with Probe(options.probe) as probe, Nodes(options.gristmill, options.data, count) as nodes:
        nodes.put(probe, path, "/points", stripe=POINTS * DIMS * 8)

        def seconds(passes):
            params = dict(dims=str(DIMS), k=str(K), init="first", tol="0", max_iter=str(passes))
            what = {"kernel": "kmeans", "type": "f64", "place": "storage", "params": params}
            answer = probe.ask("ask", cluster=nodes.entry, file="/points", what=what)
            return answer["seconds"], answer["result"]["iterations"]

        each = []
        for number in range(options.rounds + 1):
            few, many = seconds(FEW), seconds(MANY)
            pairs.require(many[1] > few[1], "k-means ended at once")
            each.append((many[0] - few[0]) / (many[1] - few[1]))
        return each[1:]


def draw(path, found, theory, foot):
    figure, axes = plt.subplots(figsize=(10, 5.5), layout="constrained")
    axes.set_title("A pass of k-means over next to no points: the time that nodes take to agree")
    counts = list(found)
    middle = [np.median(found[n]) * 1e3 for n in counts]
    axes.fill_between(counts, [min(found[n]) * 1e3 for n in counts], [max(found[n]) * 1e3 for n in counts], alpha=0.2, lw=0)
    axes.plot(counts, middle, "o-", color=pairs.DOT, label="measured, all nodes on this machine: median and range")
    one = (found[2][0] if 2 in found else 1e-3) * 1e3 if len(counts) < 2 else float(np.median(found[counts[1]])) * 1e3
    servers = [row["servers"] for row in theory]
    axes.plot(servers, [max(row["delays"], 0) * one for row in theory], "--", color=pairs.LINES[1], label=f"simulated: messages that follow each other x {one:.2f} ms")
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000])
    axes.set_ylim(0)
    axes.set_xlabel("nodes")
    axes.set_ylabel("milliseconds of a pass")
    axes.grid(color="#e3e3e3", lw=0.7)
    axes.legend(loc="upper left", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(textwrap.fill(foot, 150), fontsize=8, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    options = pairs.arguments(__doc__, min_rounds=ROUNDS, probe=pairs.PROBE, gristmill=GRISTMILL)
    options.data.mkdir(parents=True, exist_ok=True)
    found = {count: measured(options, count) for count in (QUICK_COUNTS if options.quick else COUNTS)}
    theory = simulated()
    print(f"# Passes that nodes agree on ({pairs.described(options)})")
    for count, each in found.items():
        low, high = pairs.interval(each)
        print(f"{count} nodes: {np.median(each) * 1e3:.2f} ms a pass [{low * 1e3:.2f}, {high * 1e3:.2f}]")
    for row in theory:
        print(f"simulated, {row['servers']} servers: {row['delays']} messages after each other, {row['messages']} in all")
    rows = [(count, number, f"{seconds:.9f}") for count, each in found.items() for number, seconds in enumerate(each)]
    pairs.write_csv(options.results / "collectives.csv", ["nodes", "round", "seconds"], rows)
    rows = [(row["servers"], row["delays"], row["messages"]) for row in theory]
    pairs.write_csv(options.results / "collectives_simulated.csv", ["servers", "delays", "messages"], rows)
    draw(options.results / "collectives.png", found, theory, pairs.footer(options))


if __name__ == "__main__":
    main()
