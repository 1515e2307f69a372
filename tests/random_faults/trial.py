"""One trial: a cluster, clients and faults, and then a check of what is left."""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from cluster import Nodes, until

from .disturbance import Disturbance
from .work import Client, Shared, Wrong

NODES = 4
CLIENTS = 4
#: Seconds until the nodes have removed the rest of unfinished puts: the lease, and the time to look for them.
CLEARED = 180
#: The limits for a node without requests.
MAX_THREADS, MAX_DESCRIPTORS, MAX_RESIDENT = 120, 700, 900 << 20


@dataclass
class Report:
    """The result of a trial."""

    faults: Counter = field(default_factory=Counter)
    answers: Counter = field(default_factory=Counter)
    #: Sentences that say what went wrong.
    wrong: list[str] = field(default_factory=list)

    def lines(self):
        yield f"{self.faults.total()} faults: " + ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        yield ", ".join(f"{count} commands {name}" for name, count in sorted(self.answers.items()))
        yield from self.wrong
        yield f"{len(self.wrong)} things wrong"


def run(start, folder, seed, seconds):
    """Runs a trial. ``start(kind, **how)`` starts a cluster."""
    cluster = start(Nodes, nodes=NODES)
    shared = Shared(cluster, folder, seed)
    report, over = Report(), threading.Event()
    clients = [Client(number, cluster, shared, seed, over) for number in range(CLIENTS)]
    disturbance = Disturbance(cluster, seed, over)
    threads = [*clients, disturbance]
    for thread in threads:
        thread.start()
    over.wait(seconds)
    over.set()
    for thread in threads:
        thread.join()
    report.faults += disturbance.counts
    for client in clients:
        report.answers += Counter(client.counts)
        report.faults["client killed"] += client.counts["killed"]
    report.wrong += [f"{client.name}: {client.wrong}" for client in clients if client.wrong]
    if disturbance.failed:
        report.wrong.append(f"a node could not be started again: {disturbance.failed!r}; {cluster.errors()[-2000:]}")
    if not report.wrong:
        report.wrong += left_over(cluster, clients)
    return report


def left_over(cluster, clients):
    """Lists what is wrong after the faults have ended."""
    until(cluster.works, "the nodes work again", 60)
    try:
        for client in clients:
            client.check()
    except Wrong as wrong:
        return [f"{client.name}, at the end: {wrong}"]
    try:
        until(lambda: clean(cluster), "nothing but files is on the nodes", CLEARED)
    except AssertionError as error:
        return [f"{error}: {cluster.grist('fsck', cluster.url('/')).stdout.decode()}"]
    return [*resources(cluster)]


def clean(cluster):
    """Whether a file names each object, and each file has its objects."""
    checked = cluster.grist("fsck", cluster.url("/"), "--json")
    if checked.returncode != 0:
        return False
    counted = sum(node["objects"] for node in json.loads(checked.stdout)["nodes"])
    listed = cluster.grist.ok("scrub", cluster.url("/"), "--json")
    return counted == json.loads(listed)["objects"] == len(cluster.objects())


def resources(cluster):
    for number, pid in cluster.pids().items():
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        threads, resident = int(status["Threads"]), int(status["VmRSS"].split()[0]) << 10
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        for what, has, most in (
            ("threads", threads, MAX_THREADS),
            ("descriptors", descriptors, MAX_DESCRIPTORS),
            ("bytes of memory", resident, MAX_RESIDENT),
        ):
            if has > most:
                yield f"node {number} has {has} {what}, more than {most}"
