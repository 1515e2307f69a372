"""A storage daemon of Ceph is killed in the middle of a sum, and in the middle of a loop that reads the same objects and throws them away.

There are three storage hosts (ceph_namespaces.py), and two copies of each object, with BlueStore. In each round one daemon is killed once for
each side, half way through the time that the side usually takes. The delay is the time of that run less the usual one. Then the daemon starts
again, and the next side waits until its objects can be read from it. The program needs Ceph, root, ip and tc. It says so and does nothing if
they are missing.
"""

import json
import sys
import threading
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ceph_namespaces
import data
import pairs
from ceph_hosts import WORKS, command_of, truth_of
from cluster import GRISTMILL
from object_class import OBJECT_CLASS, PIECES
from own_ceph import NODE_POOL, stores_of

HOSTS, COPIES, ROUNDS = 3, 2, 15
#: The most delay of a sum / the delay of the loop.
GOAL = 2
#: A delay of fewer seconds counts so much, because it cannot be told from none.
LEAST_DELAY = 0.01
LOOP, NODES, OSDS = "loop over the objects", "sum on the nodes", "sum in the daemons"
LIBRADOS = Path(__file__).with_name("librados.py")
SUM = WORKS[0]
#: Runs without a kill before each one with a kill. The first of them waits for the daemon that starts again.
CALM = 3


class Side:
    """A side: it runs and returns the seconds of its work, which are fewer than those of its process."""

    def __init__(self, hosts, run):
        self.hosts, self.run = hosts, run

    def seconds(self):
        """The seconds of the work, and those before it."""
        begun = time.perf_counter()
        seconds = self.run()
        return seconds, max(time.perf_counter() - begun - seconds, 0)

    def usual(self):
        """Medians of what `seconds` returns, when nothing is killed."""
        runs = [self.seconds() for _ in range(CALM)]
        return np.median(runs[1:], axis=0)

    def killing(self, daemon, after):
        """The seconds of the work if a daemon is killed so many seconds after the start of the process."""
        killed = threading.Event()

        def kill():
            self.hosts.kill_daemon(daemon)
            killed.set()

        killer = threading.Timer(after, kill)
        killer.start()
        seconds, _ = self.seconds()
        if not killed.is_set():
            raise SystemExit(f"the work was over in {seconds:.2f} s, before the kill; take a larger file (--size)")
        killer.join()
        return seconds


def loop(hosts, size):
    """The seconds of the loop over the objects of the nodes, at the client."""
    done = json.loads(hosts.at_client(sys.executable, LIBRADOS, NODE_POOL, *stores_of(hosts.count), *PIECES))
    pairs.require(size <= done["bytes"], "the bytes of the objects")
    return done["seconds"]


def summed(hosts, url, place, truth):
    """The seconds of the sum, from its report."""
    said, _ = hosts.gristmill(*command_of(SUM, url, "--place", place))
    answer = json.loads(said)
    pairs.require(answer["result"] == truth, f"{place}: {said[:500]}")
    return answer["report"]["elapsed_seconds"]


def delays_of(options, hosts, sides):
    """The delays of each side in each round, and a row for each run: round, side, daemon, usual seconds, seconds with the kill."""
    order = np.random.default_rng(0)
    names = list(sides)
    delays, rows = {name: [] for name in names}, []
    for number in range(options.rounds):
        daemon = number % hosts.count
        for i in order.permutation(len(names)):
            side = sides[names[i]]
            usual, before = side.usual()
            killed = side.killing(daemon, before + usual / 2)
            hosts.start_daemon(daemon)
            hosts.wait_for_daemons()
            delays[names[i]].append(max(killed - usual, LEAST_DELAY))
            rows.append((number, names[i], daemon, f"{usual:.3f}", f"{killed:.3f}"))
            print(f"# round {number + 1}, daemon {daemon}, {names[i]}: usually {usual:.2f} s, now {killed:.2f} s", flush=True)
    return delays, rows


def draw(path, title, delays, foot):
    """The delay of each side in each round, and their median."""
    figure, axes = plt.subplots(figsize=(11, 1.6 + 0.45 * len(delays)), layout="constrained")
    figure.suptitle(title, fontsize=13)
    for y, seconds in enumerate(delays.values()):
        axes.barh(y, np.median(seconds), color=pairs.FAINT, height=0.6)
        axes.plot(seconds, np.full(len(seconds), y), "o", color=pairs.DOT, ms=4, alpha=0.6)
        axes.annotate(f"{np.median(seconds):.2f}", (1.01, y), xycoords=("axes fraction", "data"), va="center")
    axes.axvline(GOAL * np.median(delays[LOOP]), color=pairs.GOAL, lw=2)
    axes.set_yticks(range(len(delays)), list(delays))
    axes.invert_yaxis()
    axes.set_xlim(0)
    axes.set_xlabel("seconds of delay: bar is the median, dots are rounds;\nred line is the goal, twice the delay of the loop")
    figure.supxlabel(foot, fontsize=8, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    options = pairs.arguments(
        __doc__.split("\n")[0],
        min_rounds=ROUNDS,
        quick_rounds=1,
        size={"type": data.parse_size, "help": "bytes of the file (default: 1GiB)"},
        gristmill=GRISTMILL,
        **{"object-class": OBJECT_CLASS},
    )
    options.gristmill = options.gristmill.resolve()
    library = (options.object_class or options.gristmill.with_name("libcls_gristmill.so")).resolve()
    if why := ceph_namespaces.missing(library):
        return print(f"# ceph_kill: skipped; {why}")
    # A smaller file would be over before the kill.
    size = options.size or data.GIB
    path = data.make(options.data, SUM.kind, size).resolve()
    truth = truth_of(options, SUM, path)
    with ceph_namespaces.Hosts(options.gristmill, library, options.data, HOSTS, size, "bluestore", COPIES) as hosts:
        url = hosts.url("numbers")
        hosts.gristmill("put", path, url, "--no-progress")
        sides = {
            LOOP: Side(hosts, lambda: loop(hosts, size)),
            NODES: Side(hosts, lambda: summed(hosts, url, "storage", truth)),
            OSDS: Side(hosts, lambda: summed(hosts, url, "osd", truth)),
        }
        delays, rows = delays_of(options, hosts, sides)
    ratios = [pairs.ratio(delays, side, LOOP, GOAL) for side in (NODES, OSDS)]
    title = f"A storage daemon is killed: {data.size_name(size)} of f64, {HOSTS} hosts, {COPIES} copies, BlueStore"
    print(f"# {title} ({pairs.described(options)})")
    print(f"# median of {options.rounds} paired ratios of delays [95 % bootstrap interval]; below 1: gristmill is faster")
    for found in ratios:
        print(found.line())
    pairs.write_csv(options.results / "ceph_kill.csv", ["round", "side", "daemon", "usual_seconds", "seconds"], rows)
    draw(options.results / "ceph_kill.png", title, delays, pairs.footer(options))


if __name__ == "__main__":
    main()
