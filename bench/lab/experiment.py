"""Running an experiment: all situations in turns, several times, in an order drawn anew each time.

An experiment is a file in `experiments/` with MACHINE, SCALE, TITLE, X and Y (the labels of the axes) and
`situations(bench)`, which puts the files it needs and yields a `Situation` for each point; `paper(bench)` gives the
paper's curves, and `findings(table)` what is to be said of the points.
"""

import csv
import importlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

import dilation
import machine
import quota
import told
import workload
from hosts import Hosts
from storage import STRIPE, Storage

HERE = Path(__file__).parent / "experiments"
COLUMNS = ["series", "x", "repeat", "seconds", "network_bytes", "busy"]


@dataclass(frozen=True)
class Situation:
    """One point of a figure. `run` gives seconds and an answer; `truth` is what the answer must be."""

    series: str
    x: float | str
    run: Callable
    truth: object


class Bench:
    """What an experiment's `situations` works with."""

    def __init__(self, storage, options, scale):
        self.storage, self.options, self.scale = storage, options, scale
        self.clients = storage.hosts.by_role["client"]
        self.servers = storage.hosts.by_role["storage"]
        self.files, self.truths = {}, {}

    def size(self, size):
        """Bytes of a file that is `size` long on the machine described."""
        return workload.whole(size * self.scale)

    def file(self, make, size, targets, unit=STRIPE):
        """A file over the first targets, put when it is first asked for; `make` makes its source."""
        size = self.size(size)
        key = (make.__name__, size, targets, unit)
        if key not in self.files:
            source = workload.cut(make(self.options.data, size), size)
            path = "/" + "-".join(str(part) for part in key)
            self.files[key] = self.storage.put(path, source, size, targets, unit)
        return self.files[key]

    def truth(self, file, request):
        """The answer, from the file itself and one process."""
        key = (file.source, request.kernel)
        if key not in self.truths:
            probe = self.storage.rank(self.clients[0])
            if request.dtype:
                answer = probe.run(request.kernel, file.source, type=request.dtype, params=request.params)
                self.truths[key] = {"sum": answer["result"]["sum"]}
            else:
                with open(file.source, "rb") as text:
                    self.truths[key] = {"count": sum(workload.NEEDLE in line for line in text)}
        return self.truths[key]


def names():
    return sorted(path.stem for path in HERE.glob("*.py"))


def load(name):
    if name not in names():
        raise SystemExit(f"there is no experiment {name!r}; there are {', '.join(names())}")
    return importlib.import_module(f"experiments.{name}")


def run(name, options, say=print):
    """Measures all situations of an experiment and gives the rows of its table."""
    module = load(name)
    seconds = dilation.QUICK_SECONDS if options.quick else dilation.SECONDS
    scale = options.scale or (module.QUICK_SCALE if options.quick else module.SCALE)
    repeats = options.repeats or (1 if options.quick else module.REPEATS)
    fewer = {"most": options.most} if getattr(options, "most", None) else {}
    described = module.machine(machine.load(module.MACHINE), options.quick, **fewer)
    data = options.data
    with Hosts(described, data) as hosts, Storage(hosts, options.gristmill, options.probe, data) as storage:
        bench = Bench(storage, options, scale)
        situations = list(module.situations(bench, options.quick))
        folds = calibrating(bench, seconds)
        [(core, reached)] = calibrated(storage, {scale: folds}, options).values()
        hosts.shape(scale)
        hosts.limit(core)
        counted = " and ".join(f"{len(each)} {role} hosts" for role, each in hosts.by_role.items())
        say(f"# {module.TITLE}")
        say(
            f"# {counted}; scale {scale:g}: links {described.link * scale / 1e6:.3g} MB/s, cores {core:.3g} of ours each"
        )
        rows = measure(situations, repeats, storage, say)
        after = folds.rate() / (described.rate * scale * dilation.folding(described))
        say(
            f"# a node folded at {reached:.2f} of the machine's rate before the first round and {after:.2f} after the last"
        )
        places = {(each.series, each.x): place for place, each in enumerate(situations)}
        rows.sort(key=lambda row: (places[row[0], row[1]], row[2]))
    about = {"name": name, "module": module, "scale": scale, "core": core, "repeats": repeats, "counted": counted}
    return about | {"rows": rows, "reached": [round(reached, 3), round(after, 3)], "period": quota.period(core)}


def calibrated(storage, folds, options):
    """The cores of `dilation.cores`, near enough to their rates."""
    found = dilation.cores(storage, folds, dilation.QUICK_ROUNDS if options.quick else dilation.ROUNDS)
    for _, reached in found.values():
        if abs(reached - 1) > dilation.TOLERATED and not options.quick:
            raise SystemExit(
                f"in {dilation.TRIES} tries a core of this lab came no nearer to its rate than {reached:.2f} of it: this "
                "machine is too busy to be a lab; let it come to rest, or take a smaller --scale"
            )
    return found


def calibrating(bench, seconds):
    described = bench.storage.hosts.machine
    if described.kernel != "sum":
        raise SystemExit(f"{described.name}: no input is known for the kernel {described.kernel}")
    size = described.rate * seconds * dilation.folding(described)
    short, long = (bench.file(workload.doubles, part, 1) for part in (size / dilation.LONGER, size))
    return dilation.Folds(bench.storage, short, long, workload.SUM)


def measure(situations, repeats, storage, say):
    rows = []
    # The first round counts for nothing: connections are made in it.
    for repeat in range(-1, repeats):
        rows += one_round(situations, repeat, storage)
        if repeat >= 0:
            say(f"# round {repeat + 1} of {repeats}, {time.strftime('%H:%M:%S')}")
    return rows


def one_round(situations, repeat, storage):
    """Every situation once, in an order of this round; rows of a round below 0 are not kept."""
    order, rows = np.random.default_rng(repeat + 1), []
    for number in order.permutation(len(situations)):
        situation = situations[number]
        told.check()
        before = sum(carried(storage))
        with dilation.Busy() as busy:
            seconds, answer = situation.run()
        carried_bytes = sum(carried(storage)) - before
        for result in answer.get("all", [answer["result"]]):
            if not workload.same(result, situation.truth):
                what = f"{situation.series}, {situation.x}"
                raise SystemExit(f"{what}: the answer {result} is not {situation.truth}")
        if repeat >= 0:
            rows.append([situation.series, situation.x, repeat, seconds, carried_bytes, round(busy.share, 3)])
    return rows


def carried(storage):
    """Bytes that left each host, without the heads of packets."""
    return [host.port.carried()[1] for host in storage.hosts.all()]


def write(path, result):
    with open(path, "w", newline="") as out:
        table = csv.writer(out)
        table.writerow(COLUMNS)
        for series, x, repeat, seconds, network_bytes, busy in result["rows"]:
            table.writerow([series, x, repeat, f"{seconds:.6f}", network_bytes, busy])


def table(rows):
    """Medians: {series: {x: (seconds, network bytes)}}, and the most that the machine was busy."""
    found = {}
    for series, x, _, seconds, network_bytes, _ in rows:
        found.setdefault(series, {}).setdefault(x, []).append((seconds, network_bytes))
    middle = {
        series: {x: tuple(float(np.median(each)) for each in zip(*values)) for x, values in points.items()}
        for series, points in found.items()
    }
    return middle, max(row[5] for row in rows)
