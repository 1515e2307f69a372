"""Four works on files in Ceph: read by the client, done by the nodes, and done by the storage daemons, each on hosts of their own.

Each storage host is a network namespace with one storage daemon of Ceph and one storage node (ceph_namespaces.py). The client and the
monitor have namespaces of their own. The works are done on an open network, and with the ports of the storage hosts and of the client
limited to 1 Gbit/s. The times are those of the requests, from their reports. The processor time of each process of the hosts is written, too. All
hosts share the processors of this machine. The program needs Ceph, root, ip and tc. It says so and does nothing if they are missing.
"""

import json
import subprocess
from dataclasses import dataclass

import numpy as np

import ceph_namespaces
import data
import fields
import pairs
from cluster import GRISTMILL, environment
from object_class import FOLDED, OBJECT_CLASS

ROUNDS = 5
RATE = 125e6
#: The file of a work with several passes is so much smaller on a slow network. Otherwise the client would read for half a minute.
LESS = 4
#: The time of the nodes and of the daemons / that of the client read, behind 1 Gbit/s.
GOAL = 1 / 20
NETWORKS = {"open": None, "1gbit": RATE}
ABOUT = {"open": "an open network", "1gbit": "1 Gbit/s for each host"}

CLIENT, STORAGE, OSD = "client", "storage", "osd"
CALLED = {CLIENT: "client read", STORAGE: "nodes", OSD: "storage daemons"}
#: How much of a file may cross the network while the nodes sum it: that is how they read if each has its pieces on its own host.
MOST_CARRIED = 0.02
#: Records, locks and others that the daemons keep beside the bytes of files.
BESIDE = 512 * data.MIB


@dataclass(frozen=True)
class Work:
    """A kernel with its options on a file of some kind, and the places that can run it. `passes`: it reads the file several times."""

    name: str
    kind: str
    words: tuple
    places: tuple
    passes: bool = False

    def size(self, size, rate):
        return size // LESS if self.passes and rate else size


KMEANS = ("dims=8", "k=8", "init=first", "max_iter=2", "tol=0")
WORKS = (
    Work("sum", "normal", ("sum", "--type", "f64"), (CLIENT, STORAGE, OSD)),
    Work("grep", "text", ("grep", "--param", f"pattern={data.LITERAL}", "--count-only"), (CLIENT, STORAGE, OSD)),
    Work(
        "k-means",
        "normal",
        ("kmeans", "--type", "f64", *(word for param in KMEANS for word in ("--param", param))),
        (CLIENT, STORAGE, OSD),
        passes=True,
    ),
    Work(
        "mean over time",
        "field",
        ("mean", "--var", fields.VARIABLE, "--axes", "time", "--no-statistics"),
        (CLIENT, STORAGE),
    ),
)


def make(directory, kind, size):
    return fields.make(directory, "classic", size) if kind == "field" else data.make(directory, kind, size)


def command_of(work, file, *options):
    kernel, *words = work.words
    return ["run", kernel, file, *words, "--json", "--no-progress", *options]


class Side:
    """A work in one place. `costs` has the processor time of each process in each round, the first round included."""

    def __init__(self, hosts, work, place, name, truth):
        self.hosts, self.place, self.truth = hosts, place, truth
        self.what = f"{work.name}, {CALLED[place]}"
        self.command = command_of(work, hosts.url(name), "--place", place)
        self.costs = []

    def __call__(self):
        before = self.hosts.used()
        said, by_client = self.hosts.gristmill(*self.command)
        after = self.hosts.used()
        answer = json.loads(said)
        pairs.require(answer["result"] == self.truth, f"{self.what}: {said[:500]}")
        report = answer["report"]
        pairs.require(report[FOLDED] == (report["bytes_read"] if self.place == OSD else 0), f"{self.what}: the bytes that were folded in the daemons")
        cost = {key: after[key] - before[key] for key in after}
        self.costs.append(cost | {("", "client"): by_client})
        return report["elapsed_seconds"]


def put(hosts, options, files):
    """Copies files to the nodes. Their pieces must be beside the nodes that have them."""
    for name, path in files.items():
        hosts.gristmill("put", path, hosts.url(name), "--no-progress")
    name = next(iter(files))
    before = hosts.carried()
    hosts.gristmill(*command_of(WORKS[0], hosts.url(name), "--place", STORAGE))
    share = (hosts.carried() - before) / files[name].stat().st_size
    if share > MOST_CARRIED:
        raise SystemExit(f"the nodes do not read from their own hosts: {share:.2f} of the file crossed the network")


def print_costs(sides):
    """Prints the median processor time of each process for each request."""
    print("# median processor time for each request, in seconds: daemons of Ceph on each host | nodes on each host | client")
    for name, side in sides.items():
        middle = {key: np.median([cost[key] for cost in side.costs[1:]]) for key in side.costs[0]}
        of = lambda process: " ".join(f"{seconds:.2f}" for (_, which), seconds in middle.items() if which == process)
        print(f"#   {name:28} {of('daemon of Ceph')} | {of('node')} | {of('client')}", flush=True)


def write_costs(path, sides):
    rows = [
        (number, name, host, process, f"{seconds:.3f}")
        for name, side in sides.items()
        for number, cost in enumerate(side.costs[1:])
        for (host, process), seconds in cost.items()
    ]
    pairs.write_csv(path, ["round", "side", "host", "process", "processor_seconds"], sorted(rows, key=lambda row: row[0]))


def measure(options, hosts, network, size, truths):
    rate = NETWORKS[network]
    hosts.shape(rate)
    sides, sizes, ratios = {}, {}, []
    for work in WORKS:
        bytes_of = work.size(size, rate)
        for place in work.places:
            name = f"{work.name}, {CALLED[place]}"
            sides[name] = Side(hosts, work, place, named(work, bytes_of), truths[work, bytes_of])
            sizes[name] = bytes_of
    times = pairs.rounds(sides, options.rounds)
    for work in WORKS:
        for place in work.places[1:]:
            goal = GOAL if rate else None
            over, base = (f"{work.name}, {CALLED[of]}" for of in (place, CLIENT))
            ratios.append(pairs.ratio(times, over, base, goal))
    many = f"{hosts.count} storage host{'s' if hosts.count > 1 else ''}"
    title = f"{data.size_name(size)} in Ceph on {many}, {ABOUT[network]}"
    smaller = f"k-means on {data.size_name(size // LESS)}; " if rate else ""
    name = f"ceph_hosts_{network}_{hosts.count}"
    pairs.report(name, title, options, times, sizes, ratios, f"{smaller}daemons keep objects in memory; times of requests")
    print_costs(sides)
    write_costs(options.results / f"{name}_cost.csv", sides)
    print(flush=True)


def named(work, size):
    return f"{work.kind}-{data.size_name(size)}" + (".nc" if work.kind == "field" else "")


def truth_of(options, work, path):
    """The answer for the file of this machine."""
    command = [options.gristmill, *command_of(work, path)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment(), check=True)
    return json.loads(done.stdout)["result"]


def main():
    options = pairs.arguments(
        __doc__.split("\n")[0],
        min_rounds=ROUNDS,
        quick_rounds=2,
        size={"type": data.parse_size, "help": "bytes of each file (default: 1GiB; --quick: 16MiB)"},
        gristmill=GRISTMILL,
        osds={"type": int, "nargs": "+", "metavar": "N", "help": "numbers of storage hosts (default: 1 2 3; --quick: 2)"},
        network={"choices": list(NETWORKS), "help": "only this network (default: one after the other)"},
        **{"object-class": OBJECT_CLASS},
    )
    options.gristmill = options.gristmill.resolve()
    library = (options.object_class or options.gristmill.with_name("libcls_gristmill.so")).resolve()
    if why := ceph_namespaces.missing(library):
        return print(f"# ceph_hosts: skipped; {why}")
    size = options.size or (16 * data.MIB if options.quick else data.GIB)
    files, truths = {}, {}
    for work in WORKS:
        for rate in NETWORKS.values():
            bytes_of = work.size(size, rate)
            path = files[named(work, bytes_of)] = make(options.data, work.kind, bytes_of).resolve()
            if (work, bytes_of) not in truths:
                truths[work, bytes_of] = truth_of(options, work, path)
    memory = 2 * sum(path.stat().st_size for path in files.values()) + BESIDE
    for count in options.osds or ([2] if options.quick else [1, 2, 3]):
        with ceph_namespaces.Hosts(options.gristmill, library, options.data, count, memory) as hosts:
            put(hosts, options, files)
            for network in [options.network] if options.network else NETWORKS:
                measure(options, hosts, network, size, truths)


if __name__ == "__main__":
    main()
