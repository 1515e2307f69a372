"""Where requests run with `--place auto`, compared with the better of both places: every built-in kernel on 1 to 4 nodes of this
machine, with files in the page cache and not, alone and beside other requests of the same kind with the same option.

Slow kernels have a quarter of the file. In each round every side (`storage`, `client`, `auto`) runs once, in a random order. The
ratio is the time of `auto` over that of the side with the smaller median. Simultaneous requests begin together, and their time
ends with the last answer. All processes are on the same processors, so moving bytes gains nothing, and `auto` should move none.
"""

import os
import sys
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import data
import pairs
from cluster import GRISTMILL, STRIPE, Nodes
from probe import Probe

SIZE, QUICK_SIZE = 256 * data.MIB, 8 * data.MIB
NODES, QUICK_NODES = (1, 2, 4), (4,)
OTHERS, QUICK_OTHERS = (1, 2, 4, 8), (2,)
PLACES = ("storage", "client", "auto")
GOAL, MIDDLE_GOAL = 1.10, 1.03
WIDTH = 4096

F64, TEXT = ("normal", "f64"), ("text", None)

# Kernels that fold less than some GiB a second or read the file several times.
SLOW, PART = {"gaussian", "grep", "kmeans", "median", "quantile", "unique", "wc"}, 4

# How much `auto` may move besides the answers, as a share of the file.
ALMOST_NOTHING = 0.02


def kernels(size):
    """Each built-in kernel: {name: (kind of data, type, parameters)}, for files of this size or a part of it."""
    points = {"dims": "8", "k": "8", "init": "first", "max_iter": "2", "tol": "0"}
    image = {"shape": f"{size // PART // 8 // WIDTH},{WIDTH}", "result": "summary"}
    return {
        **{name: (*F64, {}) for name in ("count", "first", "last", "max", "mean", "median", "min", "minmax")},
        **{name: (*F64, {}) for name in ("sum", "top", "var")},
        "gaussian": (*F64, image),
        "grep": (*TEXT, {"pattern": data.LITERAL}),
        "histogram": (*F64, {"bins": "50", "range": "-5:5"}),
        "kmeans": (*F64, points),
        "lookup": (*F64, {"where": "> 5"}),
        "quantile": (*F64, {"q": "0.05,0.95"}),
        "unique": ("text", "u8", {}),
        "wc": (*TEXT, {}),
    }


@dataclass(frozen=True)
class Situation:
    """The number of nodes, the number of other requests at the same time, and whether the file is read from disks."""

    nodes: int
    others: int
    cold: bool

    def __str__(self):
        beside = f"{self.others} others" if self.others else "alone"
        return f"{self.nodes} node{'s' * (self.nodes > 1)}, {'cold' if self.cold else 'warm'}, {beside}"


def situations(options):
    nodes, others = (QUICK_NODES, QUICK_OTHERS) if options.quick else (NODES, OTHERS)
    others = others if options.others is None else options.others
    for count in options.nodes or nodes:
        yield Situation(count, 0, False)
        yield Situation(count, 0, True)
        yield from (Situation(count, other, False) for other in others)


def forget(paths):
    """Drops files from the page cache."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


class Measured:
    """A kernel in a situation: the seconds of each side, and the bytes that `auto` moved."""

    def __init__(self, kernel, situation, size):
        self.kernel, self.situation, self.size = kernel, situation, size
        self.moved, self.truth = [], None

    def run(self, probe, nodes, file, what, rounds):
        def side(place):
            def one():
                if self.situation.cold:
                    forget(nodes.objects(file))
                clients = 1 + self.situation.others
                what_there = {**what, "place": place}
                answer = probe.ask(
                    "ask", cluster=nodes.entry, file=file, what=what_there, count=1, clients=clients
                )
                said = (answer.get("result"), answer.get("rows"))
                self.truth = said if self.truth is None else self.truth
                pairs.require(said == self.truth, f"{self.kernel}, {self.situation}, {place}: {said}")
                if place == "auto":
                    self.moved.append(answer["bytes_to_client"] / clients / self.size)
                return answer["seconds"]

            return one

        self.times = pairs.rounds({place: side(place) for place in PLACES}, rounds)
        middle = {place: float(np.median(self.times[place])) for place in PLACES}
        self.better = min(("storage", "client"), key=middle.get)
        self.ratio = pairs.ratio(self.times, "auto", self.better, GOAL)
        return self

    def row(self):
        middle = [f"{np.median(self.times[place]):.6f}" for place in PLACES]
        ratio = [f"{x:.4f}" for x in (self.ratio.median, self.ratio.low, self.ratio.high)]
        place = self.situation
        cache = "cold" if place.cold else "warm"
        moved = f"{np.median(self.moved):.6f}"
        return [self.kernel, place.nodes, cache, place.others, *middle, self.better, *ratio, moved]


HEADER = [
    "kernel", "nodes", "cache", "others", *(f"{place} seconds" for place in PLACES), "better",
    "auto / better", "low", "high", "moved by auto / file",
]  # fmt: skip


def draw(path, all_, foot):
    """Left: each ratio. Right: the share of the file that `auto` moved."""
    names = sorted({one.kernel for one in all_})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(15, 1.8 + 0.42 * len(names)), width_ratios=[2.2, 1], layout="constrained", sharey=True
    )
    figure.suptitle("--place auto against the better of storage and client, nodes and client on one machine", fontsize=14)
    kinds = {
        "alone, warm": lambda one: not one.situation.cold and not one.situation.others,
        "alone, cold": lambda one: one.situation.cold,
        "beside other requests": lambda one: one.situation.others > 0,
    }
    for (label, of), color, shift in zip(kinds.items(), pairs.LINES, (-0.22, 0, 0.22)):
        some = [one for one in all_ if of(one)]
        y = [names.index(one.kernel) + shift for one in some]
        left.plot([one.ratio.median for one in some], y, "o", ms=4.5, color=color, alpha=0.75, label=label)
        moved = [max(float(np.median(one.moved)), 1e-7) for one in some]
        right.plot(moved, y, "o", ms=4.5, color=color, alpha=0.75)
    for at, style in ((1, ":"), (MIDDLE_GOAL, "--"), (GOAL, "-")):
        left.axvline(at, color=pairs.RULE if at == 1 else pairs.GOAL, lw=1, ls=style, zorder=0)
    left.set_xscale("log")
    spread = [one.ratio.median for one in all_]
    left.set_xlim(min(0.8, min(spread) / 1.05), max(1.3, max(spread) * 1.05))
    low, high = left.get_xlim()
    ticks = [t for t in pairs.FINE_TICKS if low <= t <= high]
    left.set_xticks(ticks, [f"{t:g}" for t in ticks])
    left.xaxis.minorticks_off()
    left.set_yticks(range(len(names)), names)
    left.set_ylim(len(names) - 0.5, -0.5)
    left.set_xlabel(
        f"time of auto / time of the better place (log scale); red: at most {GOAL} for each, {MIDDLE_GOAL} in the middle"
    )
    left.legend(loc="best", fontsize=9)
    right.set_xscale("log")
    right.set_xlim(1e-7, 10)
    right.axvline(1, color=pairs.GOAL, lw=1, zorder=0)
    right.set_xlabel("bytes that auto moved to the client / bytes of the file\n(log scale; red: the whole file)")
    for axes in (left, right):
        axes.grid(axis="both", color="#e3e3e3", lw=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(foot, fontsize=9, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    only = {"nargs": "*", "help": "kernels to measure (default: all)"}
    nodes = {"nargs": "+", "type": int, "help": f"numbers of nodes (default: {NODES})"}
    others = {"nargs": "*", "type": int, "help": f"numbers of other requests (default: {OTHERS})"}
    options = pairs.arguments(
        __doc__, 7, 1, size=pairs.SIZE, probe=pairs.PROBE, gristmill=GRISTMILL, kernels=only, nodes=nodes, others=others
    )
    size = options.size or (QUICK_SIZE if options.quick else SIZE)
    asked = {name: of for name, of in kernels(size).items() if name in (options.kernels or kernels(size))}
    wanted = {(kind, size // PART if name in SLOW else size) for name, (kind, _, _) in asked.items()}
    files = {each: data.make(options.data, *each) for each in sorted(wanted)}
    all_ = []
    for situation in situations(options):
        with Nodes(options.gristmill, options.data, situation.nodes) as nodes, Probe(options.probe) as probe:
            for (kind, length), path in files.items():
                nodes.put(probe, path, f"/{kind}-{length}", stripe=STRIPE)
            pairs.warm(nodes.directory)
            for kernel, (kind, dtype, params) in asked.items():
                what = {"kernel": kernel, "type": dtype, "params": params}
                length = size // PART if kernel in SLOW else size
                measured = Measured(kernel, situation, length)
                all_.append(measured.run(probe, nodes, f"/{kind}-{length}", what, options.rounds))
                print(f"{kernel}, {situation}: {measured.ratio.median:.3f}", file=sys.stderr, flush=True)
    ratios = np.array([one.ratio.median for one in all_])
    moved = np.array([np.median(one.moved) for one in all_])
    print(f"# --place auto against the better of storage and client, nodes and client on one machine ({pairs.described(options)})")
    print(f"# {len(all_)} situations of {len(asked)} kernels, median of {options.rounds} paired ratios each")
    print(f"median {np.median(ratios):.3f} (goal <= {MIDDLE_GOAL}), worst {ratios.max():.3f} (goal <= {GOAL})")
    print(f"within {GOAL}: {(ratios <= GOAL).sum()} of {len(ratios)}; storage was better in {sum(one.better == 'storage' for one in all_)}")
    print(f"moved almost nothing: {(moved <= ALMOST_NOTHING).sum()} of {len(moved)}; most moved: {moved.max():.3f} of the file")
    for one in sorted(all_, key=lambda one: -one.ratio.median)[:10]:
        print(f"  {one.kernel}, {one.situation}: {one.ratio.line()}; moved {np.median(one.moved):.4f} of the file")
    pairs.write_csv(options.results / "placement.csv", HEADER, [one.row() for one in all_])
    draw(options.results / "placement.png", all_, pairs.footer(options, "processes of one machine"))


if __name__ == "__main__":
    main()
