"""How long normal reads take while a storage node folds for many other clients: 64 KiB at random positions of a file, one after
the other on one connection, with and without a flood of active requests that are not handed back.

The clients of the flood have the same two cores as the node. So their answers are small, and they use only processor time that
nobody else wants. The reader is its own process, which waits only for its answers.
"""

import http.client
import multiprocessing
import os
import textwrap
import threading
import time

import matplotlib.pyplot as plt
import numpy as np

import data
import pairs
from cluster import GRISTMILL, Nodes
from probe import Probe

SIZE, QUICK_SIZE = 64 << 20, 16 << 20
READ = 64 << 10
READS, QUICK_READS = 1000, 100
FLOOD, QUICK_FLOOD = 16, 4
ROUNDS = 10
ALONE, FLOODED = "reads alone", "reads under the flood"
PERCENTILES = [*range(1, 100), 99.9]


def elsewhere():
    """The process uses only processor time that nobody else wants. In real use the clients would be on other machines."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


class Flood:
    """Active requests that begin again as soon as they end, each from its own process."""

    def __init__(self, options, nodes, count):
        self.stop, self.done = threading.Event(), 0
        self.lock = threading.Lock()
        ready = threading.Barrier(count + 1)
        self.threads = [threading.Thread(target=self.ask, args=(options, nodes, ready)) for _ in range(count)]
        for thread in self.threads:
            thread.start()
        # Each of them has folded once.
        ready.wait()

    def ask(self, options, nodes, ready):
        params = {"dims": "8", "k": "20", "init": "first", "max_iter": "2"}
        what = {"kernel": "kmeans", "type": "f64", "place": "storage", "params": params}
        with Probe(options.probe, enter=elsewhere) as probe:
            first = True
            while first or not self.stop.is_set():
                probe.ask("ask", cluster=nodes.entry, file="/points", what=what)
                with self.lock:
                    self.done += 1
                if first:
                    first = False
                    ready.wait()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def reads(address, places):
    """The seconds of each read at these positions."""
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port))
    each = []
    for at in places:
        begun = time.perf_counter()
        connection.request("GET", "/files/points", headers={"Range": f"bytes={at}-{at + READ - 1}"})
        answer = connection.getresponse()
        body = answer.read()
        each.append(time.perf_counter() - begun)
        pairs.require(answer.status == 206 and len(body) == READ, f"a read: {answer.status}")
    connection.close()
    return each


def draw(path, samples, foot):
    figure, axes = plt.subplots(figsize=(10, 5.5), layout="constrained")
    axes.set_title(f"Normal reads of {READ >> 10} KiB from a storage node, alone and while it folds for others")
    for (name, seconds), color in zip(samples.items(), pairs.LINES):
        sizes = np.sort(seconds) * 1e3
        half, most = np.percentile(sizes, [50, 99])
        axes.plot(sizes, np.linspace(0, 100, len(sizes)), color=color, lw=1.8, label=f"{name}: p50 {half:.2f} ms, p99 {most:.2f} ms")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_xlabel("milliseconds (log scale)")
    axes.set_ylabel("percent of reads that took at most so long")
    axes.set_ylim(0, 100)
    axes.grid(color="#e3e3e3", lw=0.7)
    axes.legend(loc="center right", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(textwrap.fill(foot, 150), fontsize=8, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    options = pairs.arguments(__doc__, min_rounds=ROUNDS, probe=pairs.PROBE, gristmill=GRISTMILL)
    size = QUICK_SIZE if options.quick else SIZE
    count = QUICK_READS if options.quick else READS
    flood = QUICK_FLOOD if options.quick else FLOOD
    options.data.mkdir(parents=True, exist_ok=True)
    source = data.make(options.data, "normal", size)
    rng = np.random.default_rng(7)
    found = {ALONE: [], FLOODED: []}
    own = multiprocessing.get_context("spawn").Pool(1)
    with own as reader, Probe(options.probe) as probe, Nodes(options.gristmill, options.data, 1) as nodes:
        nodes.put(probe, source, "/points")

        def read():
            return reader.apply(reads, (nodes.address, rng.integers(0, size - READ, count).tolist()))

        read()
        for number in range(options.rounds):
            for name in [ALONE, FLOODED] if number % 2 else [FLOODED, ALONE]:
                others = Flood(options, nodes, flood) if name == FLOODED else None
                found[name].append(read())
                if others:
                    others.end()
    samples = {name: np.concatenate(each) for name, each in found.items()}
    print(f"# Normal reads, {count} in each of {options.rounds} rounds; a flood of {flood} ({pairs.described(options)})")
    for name, seconds in samples.items():
        half, most, last = np.percentile(seconds, [50, 99, 99.9]) * 1e3
        print(f"{name}: p50 {half:.2f} ms, p99 {most:.2f} ms, p99.9 {last:.2f} ms")
    times = {name: [float(np.percentile(one, 99)) for one in each] for name, each in found.items()}
    print("# p99 of a round over p99 of its partner, median [95 % bootstrap interval]")
    print(pairs.ratio(times, FLOODED, ALONE, 2.0).line())
    rows = [
        (number, name, percent, f"{seconds:.9f}")
        for name, each in found.items()
        for number, one in enumerate(each)
        for percent, seconds in zip(PERCENTILES, np.percentile(one, PERCENTILES))
    ]
    pairs.write_csv(options.results / "normal.csv", ["round", "side", "percentile", "seconds"], rows)
    draw(options.results / "normal.png", samples, pairs.footer(options, f"{count} reads a round, {flood} active requests at once, loopback"))


if __name__ == "__main__":
    main()
