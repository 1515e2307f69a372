"""Reductions of variables of netCDF files, compared with netCDF4-python and NumPy on one core.

The time of Gristmill is that of the whole command, from its start to its end, and the goals are for this time. The time of the
request alone, from its report, is written too. The time of NumPy is that of a process that has imported everything, from opening
the file to the answer. For each question the program first tries both of NumPy's usual ways, and measures the faster one.
"""

import os

# This must come before NumPy starts threads.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import netCDF4
import numpy as np

import command
import data
import field_numpy
import fields
import pairs
from cluster import GRISTMILL
from field_numpy import ALL, MEAN, SOME, WAYS

ROUNDS = 5

# The size of a decoded variable in bytes. It is smaller where decoding takes NumPy longest. Each layout then takes at most four
# minutes.
SIZE, SIZE_DEFLATE, QUICK_SIZE = data.GIB, 512 * data.MIB, 4 * data.MIB

# How many times as long as NumPy on one core Gristmill may take on one core and on two.
GOALS = {1: 1.1, 2: 1 / 1.7}

BLOCKS = f"NumPy by blocks, {MEAN.name}"


def questions(layout, quick):
    return SOME if quick or "deflate" in layout else ALL


def lanes_called(lanes):
    return f"{lanes} lane{'s' if lanes > 1 else ''}"


class Compared:
    """One file, and the same questions to both sides."""

    def __init__(self, options, layout, size):
        self.binary, self.layout, self.size = options.gristmill, layout, size
        self.path = fields.make(options.data, layout, size)
        self.bytes = fields.decoded_bytes(layout, size)
        self.times = fields.times_of(layout, size)
        self.asked = questions(layout, options.quick)
        self.lanes = [lanes for lanes in GOALS if lanes <= len(os.sched_getaffinity(0))]
        self.inside = {}

    def ours(self, asked, lanes):
        """The answer of Gristmill, on as many cores as it has lanes."""
        return command.variable(
            self.binary,
            asked.op,
            self.path,
            fields.VARIABLE,
            "--lanes",
            lanes,
            axes="time" if asked.times_only else None,
            cores=command.one_core() if lanes == 1 else None,
        )

    def theirs(self, function, *more):
        """The answer of NumPy on one core."""
        with command.on_cores(command.one_core()):
            return field_numpy.answer(self.path, fields.VARIABLE, function, *more)

    def check(self):
        """Ends the program if an answer is wrong. Returns the faster way of NumPy: {asked: its name}."""
        truths = field_numpy.truths(self.path, fields.VARIABLE, self.asked)
        fastest, worst, own = {}, 0, 0
        for asked, truth in truths.items():
            what = f"{self.layout}, {asked.name}"
            for lanes in self.lanes:
                far = field_numpy.ulps(self.ours(asked, lanes).value, truth)
                most = 0 if asked.op == "max" else field_numpy.ULPS
                pairs.require(far <= most, f"{what}, {lanes_called(lanes)}: {far} ulps from what is true")
                own = max(own, far)
            seconds = {}
            for way, function in WAYS.items():
                found = []
                seconds[way] = pairs.timed(lambda: found.append(self.theirs(function, asked)))()
                near = field_numpy.near(found[0], truth, self.times)
                pairs.require(near, f"{what}, {way}: {found[0]} instead of {truth}")
                worst = max(worst, field_numpy.ulps(found[0].astype(truth.dtype), truth))
            fastest[asked] = min(seconds, key=seconds.get)
            print(f"# {what}: {', '.join(f'{way} {took:.3f} s' for way, took in seconds.items())}", flush=True)
        found = self.theirs(field_numpy.by_blocks)
        pairs.require(field_numpy.near(found, truths[MEAN], self.times), f"{self.layout}: the mean by blocks")
        print(
            f"# {self.layout}: from what is true, Gristmill's answers are at most {own} ulp (allowed: "
            f"{field_numpy.ULPS}), those of NumPy's usual ways at most {worst}",
            flush=True,
        )
        return fastest

    def side(self, asked, lanes):
        name = f"gristmill inside, {lanes_called(lanes)}, {asked.name}"

        def run():
            answered = self.ours(asked, lanes)
            self.inside.setdefault(name, []).append(answered.inside)
            return answered.seconds

        return run

    def numpy(self, *function):
        return pairs.timed(lambda: self.theirs(*function))

    def measure(self, options):
        fastest = self.check()
        pairs.warm(self.path)
        sides = {}
        for asked in self.asked:
            for lanes in self.lanes:
                sides[f"gristmill, {lanes_called(lanes)}, {asked.name}"] = self.side(asked, lanes)
            sides[f"NumPy, {asked.name}"] = self.numpy(WAYS[fastest[asked]], asked)
        sides[BLOCKS] = self.numpy(field_numpy.by_blocks)
        times = pairs.rounds(sides, options.rounds)
        # The first round does not count.
        times |= {name: self.inside[name][1:] for name in sorted(self.inside)}
        ratios = []
        for asked in self.asked:
            for lanes in self.lanes:
                name = f"{lanes_called(lanes)}, {asked.name}"
                ratios.append(pairs.ratio(times, f"gristmill, {name}", f"NumPy, {asked.name}", GOALS[lanes]))
        for lanes in self.lanes:
            ours = f"gristmill, {lanes_called(lanes)}, {MEAN.name}"
            ratios.append(pairs.ratio(times, ours.replace(",", " inside,", 1), f"NumPy, {MEAN.name}"))
            ratios.append(pairs.ratio(times, ours, BLOCKS))
        if len(self.lanes) > 1:
            one, two = (f"gristmill, {lanes_called(lanes)}, {MEAN.name}" for lanes in self.lanes)
            ratios.append(pairs.ratio(times, two, one))
        title = f"Variables of {data.size_name(self.size)} decoded: {fields.LAYOUTS[self.layout].about}"
        note = f"NumPy {np.__version__}, netCDF4 {netCDF4.__version__}, one core"
        sizes = dict.fromkeys(times, self.bytes)
        pairs.report(f"variables_{self.layout}", title, options, times, sizes, ratios, note)


def main():
    options = pairs.arguments(
        __doc__.split("\n")[0],
        min_rounds=ROUNDS,
        quick_rounds=1,
        size={"type": data.parse_size, "help": "bytes decoded (default: 1GiB, 512MiB with deflate; --quick: 4MiB)"},
        gristmill=GRISTMILL,
        layout={"choices": list(fields.LAYOUTS), "help": "only this one (default: one after the other)"},
    )
    if not options.gristmill.is_file():
        raise SystemExit(f"{options.gristmill} is missing; build it with: cargo build --release")
    for layout in [options.layout] if options.layout else fields.LAYOUTS:
        full = SIZE_DEFLATE if "deflate" in layout else SIZE
        size = options.size or (QUICK_SIZE if options.quick else full)
        Compared(options, layout, size).measure(options)


if __name__ == "__main__":
    main()
