"""Every built-in kernel, with both fixed places and with `--place auto`, on nodes and clients that share no processor."""

from statistics import mean, median

import numpy as np

import pairs
import schemes
import workload
from experiment import Situation
from storage import Request

MIB = 1 << 20

STORAGE, CLIENT, AUTO = "storage", "client", "auto"

# The size of the file in MiB: for a kernel that folds fast on a core of the machine, and for one that is slow or reads it several
# times. `auto` decides nothing about files of less than one MiB.
FAST, SLOW = 128, 32
# The size for slow kernels in MiB with many simultaneous requests, and the number of requests from which it holds.
SLOW_FOR_MANY, MANY = 8, 5
QUICK = ("sum", "grep")

GOAL, MIDDLE_GOAL = 1.10, 1.03

# A time is the mean of several requests: as many as take LONG_ENOUGH seconds, and at most MOST. Requests with `storage` and with
# `auto` take turns, so that other work of the machine affects both alike. Requests with `client` are measured separately, because
# nodes believe for some seconds afterwards that their processors are busy.
LONG_ENOUGH, MOST = 1.2, 32

DOUBLES = workload.doubles


def requests():
    """{kernel: (function that makes the file, MiB, function that makes the request for so many bytes)}."""
    plain = lambda kernel, **params: lambda _: Request(kernel, dtype="f64", params=params)
    points = {"dims": str(workload.DIMS), "k": str(workload.CENTRES), "init": "first", "max_iter": "2", "tol": "0"}
    text = workload.records
    return {
        **{name: (DOUBLES, FAST, plain(name)) for name in ("count", "first", "last", "max", "mean", "min", "minmax")},
        **{name: (DOUBLES, FAST, plain(name)) for name in ("sum", "top", "var")},
        "histogram": (DOUBLES, FAST, plain("histogram", bins="50", range="-5:5")),
        "lookup": (DOUBLES, FAST, plain("lookup", where="> 5")),
        "gaussian": (workload.image, SLOW, workload.summary),
        "grep": (text, FAST, lambda _: Request("grep", params={"pattern": workload.NEEDLE.decode()})),
        "kmeans": (workload.points, SLOW, plain("kmeans", **points)),
        "median": (DOUBLES, SLOW, plain("median")),
        "quantile": (DOUBLES, SLOW, plain("quantile", q="0.05,0.95")),
        "unique": (text, SLOW, lambda _: Request("unique", dtype="u8")),
        "wc": (text, FAST, lambda _: Request("wc")),
    }


class Truths:
    """The first answer. All others must equal it bit by bit. No single process computes the right answer here."""

    def __init__(self):
        self.first = None

    def of(self, run):
        """`run`, with a check of its answers."""

        def one():
            seconds, answer = run()
            all_ = answer["all"]
            self.first = all_[0] if self.first is None else self.first
            wrong = [each for each in all_ if each != self.first]
            if wrong:
                raise SystemExit(f"the answer {wrong[0]} is not {self.first}")
            return seconds, answer

        return one


def in_turns(runs):
    """Runs all of these again and again, in a random order each time, until each took long enough or often enough.
    `folded_by_clients` is that of the last one."""
    order, last = np.random.default_rng(0), list(runs)[-1]

    def some():
        times, shares, answer = {place: [] for place in runs}, [], None
        enough = lambda taken: sum(taken) >= LONG_ENOUGH or len(taken) >= MOST
        while not all(map(enough, times.values())):
            for place in order.permutation(list(runs)):
                seconds, answer = runs[place]()
                times[place].append(seconds)
                if place == last:
                    shares.append(answer["folded_by_clients"])
        parts = {place: mean(taken) for place, taken in times.items()}
        return sum(parts.values()), answer | {"parts": parts, "folded_by_clients": mean(shares)}

    return some


class Figure:
    """An experiment with all kernels on so many nodes, beside so many other requests of the same kind, as described in
    `experiment`."""

    MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1, 1 / 2, 5
    X, Y = "kernel", "time over that of --place storage"
    RELATIVE_TO, LOG, WIDTH, ROWS = STORAGE, False, 15, True
    PAPER = ""

    def __init__(self, name, doc, nodes, others):
        self.__name__, self.__doc__, self.nodes, self.others = name, doc, nodes, others
        beside = f", {others + 1} requests at once" if others else ""
        self.TITLE = f"The lab: --place auto, {nodes} node{'s' * (nodes > 1)}{beside}"

    def machine(self, described, quick):
        return described.with_hosts(storage=self.nodes, client=min(self.others + 1, described.roles["client"].hosts))

    def situations(self, bench, quick):
        storage = bench.storage
        on = [bench.clients[number % len(bench.clients)] for number in range(self.others + 1)]
        schemes.processes(storage, on)
        for kernel, (make, size, request) in requests().items():
            if quick and kernel not in QUICK:
                continue
            if quick or size == SLOW and self.others >= MANY:
                size = SLOW_FOR_MANY
            file = bench.file(make, size * MIB, self.nodes)
            asked = [(file, request(file.size), host) for host in on]
            truths = Truths()
            run = lambda place, asked=asked: truths.of(lambda: schemes.mixed(storage, place, asked))
            for places in ((CLIENT,), (STORAGE, AUTO)):
                runs = in_turns({place: run(place) for place in places})
                yield Situation("-".join(places), kernel, runs, {}, parts=places)

    def paper(self):
        return {}

    @staticmethod
    def findings(rows):
        return findings(rows)


def findings(rows):
    seconds, shares = {}, {}
    for series, kernel, _, each, *_, share in rows:
        seconds.setdefault(kernel, {}).setdefault(series, []).append(each)
        if series == AUTO:
            shares.setdefault(kernel, []).append(share)
    ratios = {}
    for kernel, times in seconds.items():
        better = min((STORAGE, CLIENT), key=lambda place: median(times[place]))
        ratios[kernel] = ratio = pairs.ratio(times, AUTO, better, GOAL)
        yield f"{kernel}: {ratio.line()}; clients folded {median(shares[kernel]):.0%}"
    middle = np.array([ratio.median for ratio in ratios.values()])
    yield (
        f"auto takes {np.median(middle):.2f} of the time of the better place in the middle (goal: at most {MIDDLE_GOAL}) and "
        f"{middle.max():.2f} at most (goal: at most {GOAL}); within the goal: {(middle <= GOAL).sum()} of {len(middle)}"
    )
