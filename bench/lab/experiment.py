"""Runs an experiment: all situations in turns, several times, in a random order each time.

An experiment is a file in `experiments/`, or the FIGURE in it. It has MACHINE, SCALE, TITLE, X and Y (the labels of the axes), and
three functions. `situations(bench)` puts the files and yields a `Situation` for each point. `paper()` gives the curves of the
paper. `findings(table)` gives sentences about the points. It may also have:

- VALUE: the column for Y (default: seconds)
- LOG: whether both axes are logarithmic, or only "x"
- STACKED: the series of an x make one bar, in "seconds" or as a "share" of it
- SHORTER: the factor by which files are shorter than the paper's; the measured seconds are multiplied by it
- THEIRS: the name of the paper's curves (default: "the paper's text")
- BANDWIDTH: the bytes of a request; the picture then also shows bytes a second
- JUDGED: the series are TS, AS and DOSAS, and the decisions are judged; `findings` then gets the rows
- ROWS: `findings` gets the rows although nothing is judged
- WIDTH: the width of the picture in inches
"""

import contextlib
import csv
import importlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

import dilation
import machine
import pairs
import quota
import told
import workload
from hosts import Hosts
from storage import STRIPE, Storage

HERE = Path(__file__).parent / "experiments"
COLUMNS = ["series", "x", "repeat", "seconds", "network_bytes", "busy", "folded_by_clients"]


@dataclass(frozen=True)
class Situation:
    """One point of a figure. `run` gives seconds and an answer. `truth` is the right answer, or a list with the right answer of
    each request. `parts`: the series into which the seconds are split, as the answer names them. `warm`: whether it runs in the
    first round, which does not count. Situations of minutes gain nothing from that round. `shorter`: the factor by which its files
    are shorter than the paper's, if that is not the experiment's SHORTER."""

    series: str
    x: float | str
    run: Callable
    truth: object
    parts: tuple = ()
    warm: bool = True
    shorter: float | None = None


class Bench:
    """The nodes, clients and files for the `situations` of an experiment."""

    def __init__(self, storage, options, scale, shorter=1):
        self.storage, self.options, self.scale, self.shorter = storage, options, scale, shorter
        self.clients = storage.hosts.by_role["client"]
        self.servers = storage.hosts.by_role["storage"]
        self.files, self.truths = {}, {}

    def size(self, size, shorter=None):
        """The bytes of a file that has `size` bytes on the described machine, after the scale and the shortening of the
        experiment."""
        return workload.whole(size * self.scale / (shorter or self.shorter))

    def file(self, make, size, targets, unit=STRIPE, shorter=None):
        """A file over the first targets. It is put when it is first requested; `make` makes its source."""
        size = self.size(size, shorter)
        key = (make.__name__, size, targets, unit)
        if key not in self.files:
            source = workload.cut(make(self.options.data, size), size)
            path = "/" + "-".join(str(part) for part in key)
            self.files[key] = self.storage.put(path, source, size, targets, unit)
        return self.files[key]

    def truth(self, file, request):
        """The right answer, computed from the file by one process."""
        key = (file.source, request.kernel, *sorted(request.params.items()))
        if key not in self.truths:
            probe = self.storage.rank(self.clients[0])
            if request.dtype:
                how = {"type": request.dtype, "params": request.params, "rows": request.rows}
                answer = probe.run(request.kernel, file.source, **how)
                whole = answer["result"] | {"rows": answer.get("rows")}
                self.truths[key] = {name: whole[name] for name in request.right}
            else:
                with open(file.source, "rb") as text:
                    self.truths[key] = {"count": sum(workload.NEEDLE in line for line in text)}
        return self.truths[key]


def names():
    return sorted(path.stem for path in HERE.glob("*.py"))


def theirs(module):
    """The name of the curves that `paper()` gives."""
    return getattr(module, "THEIRS", "the paper's text")


def load(name):
    if name not in names():
        raise SystemExit(f"there is no experiment {name!r}; there are {', '.join(names())}")
    module = importlib.import_module(f"experiments.{name}")
    return getattr(module, "FIGURE", module)


def run(name, options, say=print):
    """Measures all situations of an experiment and returns the rows of its table."""
    module = load(name)
    seconds = dilation.QUICK_SECONDS if options.quick else dilation.SECONDS
    scale = options.scale or (module.QUICK_SCALE if options.quick else module.SCALE)
    repeats = options.repeats or (1 if options.quick else module.REPEATS)
    fewer = {"most": options.most} if getattr(options, "most", None) else {}
    described = module.machine(machine.load(module.MACHINE), options.quick, **fewer)
    data = options.data
    with Hosts(described, data) as hosts, Storage(hosts, options.gristmill, options.probe, data, scale) as storage:
        shorter = getattr(module, "SHORTER", 1)
        bench = Bench(storage, options, scale, shorter)
        situations = list(module.situations(bench, options.quick))
        folds = calibrating(bench, seconds)
        known = None if options.quick else last_core(options.results, module, scale)
        [(core, reached)] = calibrated(storage, {scale: folds}, options, known).values()
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
        places = {}
        for each in situations:
            for series in each.parts or (each.series,):
                places.setdefault((series, each.x), len(places))
        rows.sort(key=lambda row: (places[row[0], row[1]], row[2]))
        times = {(series, each.x): each.shorter or shorter for each in situations for series in each.parts or (each.series,)}
        for row in rows:
            row[3] *= times[row[0], row[1]]
    about = {"name": name, "module": module, "scale": scale, "core": core, "repeats": repeats, "counted": counted}
    about |= {"shorter": shorter, "host": pairs.host()}
    return about | {"rows": rows, "reached": [round(reached, 3), round(after, 3)], "period": quota.period(core)}


def last_core(results, module, scale):
    """{scale: core} of the last experiment on the same machine, or None."""
    found = []
    for path in results.glob("*.json"):
        if path.stem in names() and load(path.stem).MACHINE == module.MACHINE:
            about = json.loads(path.read_text())
            if about["scale"] == scale:
                found.append((path.stat().st_mtime, about["core"]))
    return {scale: max(found)[1]} if found else None


def calibrated(storage, folds, options, known=None):
    """The result of `dilation.cores`. Ends the program if a rate is not near enough to the right one."""
    rounds = dilation.QUICK_ROUNDS if options.quick else dilation.ROUNDS
    found = dilation.cores(storage, folds, rounds, known)
    for _, reached in found.values():
        if abs(reached - 1) > dilation.TOLERATED and not options.quick:
            raise SystemExit(
                f"in {dilation.TRIES} tries a core of this lab came no nearer to its rate than {reached:.2f} of it: this "
                "machine is too busy to be a lab; let it come to rest, or take a smaller --scale"
            )
    return found


def calibrating(bench, seconds):
    described = bench.storage.hosts.machine
    if described.kernel not in workload.CALIBRATING:
        raise SystemExit(f"{described.name}: no input is known for the kernel {described.kernel}")
    make, request, role = workload.CALIBRATING[described.kernel]
    # These files are long enough for the measurement, whatever SHORTER the experiment has.
    size = described.rate * seconds * dilation.folding(described) * bench.shorter
    short, long = (bench.file(make, part, 1) for part in (size / dilation.LONGER, size))
    return dilation.Folds(bench.storage, short, long, request, bench.storage.hosts.by_role[role][0])


def measure(situations, repeats, storage, say):
    rows = []
    # The first round does not count, because connections are made in it.
    for repeat in range(-1, repeats):
        rows += one_round(situations, repeat, storage)
        if repeat >= 0:
            say(f"# round {repeat + 1} of {repeats}, {time.strftime('%H:%M:%S')}")
    return rows


def one_round(situations, repeat, storage):
    """Runs every situation once, in the order of this round. Rows of a round below 0 are not kept."""
    order, rows = np.random.default_rng(repeat + 1), []
    for number in order.permutation(len(situations)):
        situation = situations[number]
        if repeat < 0 and not situation.warm:
            continue
        told.check()
        before = sum(carried(storage))
        with dilation.Busy() as busy:
            seconds, answer = situation.run()
        carried_bytes = sum(carried(storage)) - before
        results = answer.get("all", [answer["result"]])
        truths = situation.truth if isinstance(situation.truth, list) else [situation.truth] * len(results)
        for result, truth in zip(results, truths, strict=True):
            if not workload.same(result, truth):
                raise SystemExit(f"{situation.series}, {situation.x}: the answer {result} is not {truth}")
        if repeat < 0:
            continue
        taken = {name: answer["parts"][name] for name in situation.parts} or {situation.series: seconds}
        for series, part in taken.items():
            here = round(answer.get("folded_by_clients", 0), 3)
            rows.append([series, situation.x, repeat, part, carried_bytes, round(busy.share, 3), here])
    return rows


def carried(storage):
    """The bytes that left each host, without packet headers."""
    return [host.port.carried()[1] for host in storage.hosts.all()]


def write(path, result):
    with open(path, "w", newline="") as out:
        table = csv.writer(out)
        table.writerow(COLUMNS)
        for series, x, repeat, seconds, *rest in result["rows"]:
            table.writerow([series, x, repeat, f"{seconds:.6f}", *rest])


def kept(results, name):
    """The results of a measurement, in the form of `run`, as far as a picture needs them. None if there was no measurement."""
    about, found = results / f"{name}.json", results / f"{name}.csv"
    if not (about.exists() and found.exists()):
        return None
    told_of = json.loads(about.read_text())
    with open(found, newline="") as text:
        rows = [
            [row["series"], number(row["x"]), int(row["repeat"]), *(float(row.get(name) or 0) for name in COLUMNS[3:])]
            for row in csv.DictReader(text)
        ]
    about = {"counted": told_of["hosts"], "host": told_of["machine"], "shorter": told_of.get("shorter", 1)}
    return about | {"module": load(name), "rows": rows, "scale": told_of["scale"], "repeats": told_of["repeats"]}


def number(text):
    """The text as a number if it is one, else the text."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def table(rows):
    """Medians: {series: {x: (seconds, network bytes)}}, and the maximum load of the machine."""
    found = {}
    for series, x, _, seconds, network_bytes, *_ in rows:
        found.setdefault(series, {}).setdefault(x, []).append((seconds, network_bytes))
    middle = {
        series: {x: tuple(float(np.median(each)) for each in zip(*values)) for x, values in points.items()}
        for series, points in found.items()
    }
    return middle, max(row[5] for row in rows)
