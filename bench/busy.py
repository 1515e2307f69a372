"""How long folds on a storage node take while other programs want all processors, as a ratio to a quiet machine.

The other programs are loops that never wait, two for each core. Folds of a node run at idle priority after their first 50 ms, so
that reads come first. If they hardly get any processor time for this reason, all folds of the node together get a tenth of the
processors for 30 seconds. Sides come in random order, so most folds begin within these seconds.
"""

import contextlib
import json
import os
import subprocess
import sys

import data
import pairs
from cluster import GRISTMILL, Nodes, output_of

SMALL, LARGE = 48 * data.MIB, 256 * data.MIB
QUICK = 8 * data.MIB
ROUNDS = 10
PROGRAMS = 2 * len(os.sched_getaffinity(0))
LOOP = "print(flush=True)\nwhile True: pass"

# Name: (bytes, kernel, parameters).
FOLDS = {
    "quantile": (SMALL, "quantile", ("q=0.5",)),
    "k-means, 20 iterations": (SMALL, "kmeans", ("dims=8", "k=20", "init=first", "max_iter=20", "tol=0")),
    "sum": (LARGE, "sum", ()),
    "histogram": (LARGE, "histogram", ("bins=10", "range=-3:3")),
}


@contextlib.contextmanager
def other_programs():
    """Programs that want all processors. They run when this begins."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE) for _ in range(PROGRAMS)]
    try:
        for loop in loops:
            loop.stdout.readline()
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
            loop.stdout.close()


class Fold:
    """A request to a node. Its answers must always be the same."""

    def __init__(self, options, nodes, size, kernel, params):
        given = [word for param in params for word in ("--param", param)]
        how = ["--type", "f64", "--place", "storage", "--no-progress", "--json"]
        self.command = [options.gristmill, "run", kernel, f"grist://{nodes.address}/{size}", *how, *given]
        self.answer = None

    def __call__(self):
        found = json.loads(output_of(*self.command))
        pairs.require(self.answer in (None, found["result"]), f"{self.command}: {found}")
        self.answer = found["result"]
        return found["report"]["elapsed_seconds"]

    def beside_programs(self):
        with other_programs():
            return self()


def main():
    options = pairs.arguments(__doc__.split("\n\n")[0], min_rounds=ROUNDS, quick_rounds=1, gristmill=GRISTMILL)
    sides, sizes, ratios = {}, {}, []
    with Nodes(options.gristmill, options.data, 1) as nodes:
        for size in (QUICK,) if options.quick else (SMALL, LARGE):
            output_of(options.gristmill, "put", data.make(options.data, "normal", size), f"grist://{nodes.address}/{size}")
        for name, (size, kernel, params) in FOLDS.items():
            size = QUICK if options.quick else size
            fold = Fold(options, nodes, size, kernel, params)
            sides |= {name: fold, f"{name} beside programs": fold.beside_programs}
            sizes |= dict.fromkeys((name, f"{name} beside programs"), size)
        times = pairs.rounds(sides, options.rounds)
    for name in FOLDS:
        ratios.append(pairs.ratio(times, f"{name} beside programs", name))
    title = f"Folds of one node beside {PROGRAMS} programs that never wait"
    pairs.report("busy", title, options, times, sizes, ratios, "time of the request")


if __name__ == "__main__":
    main()
