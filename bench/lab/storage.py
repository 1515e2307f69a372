"""Storage nodes on the storage hosts of a lab, files on them, and ranks that request folds."""

import contextlib
import os
import tempfile
import time
from pathlib import Path
from subprocess import DEVNULL, PIPE

import hosts as lab_hosts
from first_line import first_line
from network import PREFIX
from probe import Probe

PORT = 7440

# The stripe unit of a plain put in this lab, and that of PVFS in the papers.
STRIPE = 64 << 10


class File:
    """A file on the nodes: its source, its size, its number of targets, and its stripe unit in bytes."""

    def __init__(self, path, source, size, targets, unit):
        self.path, self.source, self.size, self.targets, self.unit = path, source, size, targets, unit


class Request:
    """A request for a file: the kernel, its parameters and the type of its records. `together` combines the answers of ranks that
    had a part each, if that is possible. `right` names the parts of an answer that must be right. `rows` says what happens to rows
    ("digest": only their hash is returned)."""

    def __init__(self, kernel, together=None, dtype=None, record=None, params=None, right=(), rows=None):
        self.kernel, self.together, self.dtype, self.record = kernel, together, dtype, record
        self.params, self.right, self.rows = params or {}, right, rows

    def what(self, place, lanes, part=None):
        what = {"kernel": self.kernel, "params": self.params, "place": place, "lanes": lanes}
        what |= {"type": self.dtype, "record": self.record, "range": part, "rows": self.rows}
        return {name: value for name, value in what.items() if value is not None}


class Storage:
    """One storage node on each storage host. The first one has the namespace. Use with `with`."""

    def __init__(self, hosts, gristmill, probe, directory, scale=1):
        """`scale` is the scale of the links. The nodes are told their rate."""
        self.hosts, self.gristmill, self.probe, self.parent = hosts, gristmill, probe, directory
        self.link = int(hosts.machine.link * scale)
        self.processes, self.servers, self.probes = [], [], {}
        self.roles = hosts.machine.roles
        # The number of threads that fold in a rank.
        self.lanes = self.roles["client"].lanes

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix=f"{PREFIX}-{os.getpid()}-", dir=self.parent)
        try:
            storage = self.hosts.by_role["storage"]
            entry = f"{storage[0].address}:{PORT}"
            key = Path(self.directory.name) / "t0" / "cluster.key"
            for host in storage:
                target = Path(self.directory.name) / f"t{host.number}"
                command = [self.gristmill, "serve", "--target", target, "--listen", f"{host.address}:{PORT}"]
                command += ["--lanes", self.roles["storage"].lanes, "--link", self.link]
                if active := self.roles["storage"].active:
                    command += ["--active-share", active / self.roles["storage"].cores]
                if host.number > 0:
                    command += ["--join", entry, "--key", key]
                self.start(host, command)
            self.entry = {"address": entry}
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, host, command):
        group = host.group("server", self.roles["storage"].cores)
        self.servers.append(group)
        process = host.start(group, *command, stdin=DEVNULL, stdout=PIPE, text=True)
        self.processes.append(process)
        line = first_line(process)
        if "listening on" not in line:
            raise SystemExit(
                f"the node on {host.role} {host.number} did not start: {line.strip() or 'it said nothing'}"
            )

    def __exit__(self, *_):
        for probe in self.probes.values():
            probe.__exit__()
        self.probes = {}
        for process in reversed(self.processes):
            lab_hosts.stop(process)
        self.processes = []
        self.directory.cleanup()

    def rank(self, host, number=0):
        """A process on a host that can send requests. `number` distinguishes several processes on one host."""
        key = (host.role, host.number, number)
        if key not in self.probes:
            group = host.group(f"rank{number}", self.roles["client"].cores)
            probe = Probe(self.probe, host.prefix(), host.enter(group))
            self.probes[key] = probe
            probe.ask("ping", cluster=self.entry, count=1)
        return self.probes[key]

    def put(self, path, source, size, targets, unit=STRIPE):
        """Copies a file to the first `targets` targets. With `unit` None each has one piece, as with Son."""
        if unit is None:
            unit = -(-size // targets)
        probe = self.rank(self.hosts.by_role["client"][0])
        on = list(range(targets))
        probe.ask("upload", cluster=self.entry, source=source, file=path, on=on, stripe=unit)
        return File(path, source, size, targets, unit)

    @contextlib.contextmanager
    def fewer_cores(self, cores):
        """Limits every storage node to so many cores inside the `with` block."""
        core, usual = self.hosts.core, self.roles["storage"].cores
        for group in self.servers:
            group.limit(None if core is None else cores * core)
        try:
            yield
        finally:
            for group in self.servers:
                group.limit(None if core is None else usual * core)


def ask_all(asked, op="ask"):
    """Sends requests to many ranks at once: [(rank, request)]. Returns the seconds until the last answer, and the answers.
    Information about rows is part of the result."""
    begun = time.perf_counter()
    for probe, command in asked:
        probe.send(op, **command)
    answers = [probe.receive() for probe, _ in asked]
    seconds = time.perf_counter() - begun
    for answer in answers:
        if "rows" in answer:
            answer["result"] = answer["result"] | {"rows": answer["rows"]}
    return seconds, answers
