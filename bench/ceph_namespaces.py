"""Storage hosts made of network namespaces. Each has a storage daemon of Ceph and a storage node of Gristmill.

The monitor and the client have namespaces of their own. The daemons keep objects in memory or with BlueStore, in as many copies as asked. All
processes end with this program. The network is that of the lab (lab/network.py), and the settings of Ceph are those of the tests (tests/ceph_config.py).
"""

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from cluster import STOP_SECONDS, ends_with_us, environment
from first_line import first_line
from own_ceph import NODE_POOL, stores_of
from probe import ROOT

# At the end, because modules there and here may have the same name.
sys.path += [str(ROOT / "bench/lab"), str(ROOT / "tests")]
import network  # noqa: E402
from ceph_config import CONFIG, MOST_OSDS, RIGHTS, class_settings, monitor_address  # noqa: E402

PORT = 7440
MONITOR_PORTS = (3300, 6789)
CEPH_SECONDS = 120
PAUSE = 0.05
TICKS = os.sysconf("SC_CLK_TCK")
PROGRAMS = ("ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "nsenter")

#: The settings of one daemon. Its address must be that of its host, so that the node there finds it. All files must fit into its memory, if it
#: keeps them there.
DAEMON = """[osd.{number}]
public addr = {address}
cluster addr = {address}
memstore device bytes = {memory}
"""


def missing(library):
    """Why there can be no such hosts here, or None."""
    if absent := [name for name in PROGRAMS if not shutil.which(name)]:
        return f"there is no {', '.join(absent)} (scripts/ceph installs Ceph)"
    if not library.is_file():
        return f"{library} is missing; cargo build --release -p gristmill-object-class"
    return network.missing()


def until(condition, what):
    end = time.monotonic() + CEPH_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"not within {CEPH_SECONDS} s: {what}")
        time.sleep(PAUSE)


def inside(port, *words):
    """A command that runs another one in a namespace. The process is that of the other one."""
    return ["nsenter", f"--net={network.NAMED / port.namespace}", *map(str, words)]


def processor_seconds(process):
    """The processor time of a process since its start."""
    # The name of the program may contain spaces. It ends with the last bracket.
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def end(process):
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Hosts:
    """`count` storage hosts, a monitor and a client; use with `with`. `memory` is how many bytes each daemon can keep in memory."""

    def __init__(self, binary, library, parent, count, memory, store="memstore", copies=1):
        if not 0 < count <= MOST_OSDS:
            raise SystemExit(f"there can be 1 to {MOST_OSDS} storage daemons, not {count}")
        self.binary, self.library, self.parent = binary, library, parent
        self.count, self.memory, self.store, self.copies = count, memory, store, copies
        self.daemons, self.nodes = {}, []

    def __enter__(self):
        with contextlib.ExitStack() as self.stack:
            self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="ceph-hosts-", dir=self.parent))).resolve()
            net = self.stack.enter_context(network.Network())
            self.monitor, self.client = net.add("monitor"), net.add("client")
            self.storage = [net.add(f"storage{number}") for number in range(self.count)]
            self.config = self.folder / "ceph.conf"
            self.named = {"CEPH_CONF": str(self.config), "CEPH_ARGS": "--id node"}
            self._configure()
            self._make_keys()
            self._start_monitor()
            for number in range(self.count):
                self._make_daemon(number)
                self.start_daemon(number)
            self.wait_for_daemons()
            self._ceph("osd", "pool", "create", NODE_POOL)
            for number in range(self.count):
                self._start_node(number)
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_):
        # Nodes give their stores back to Ceph when they end. A daemon that started again would end before them.
        for node in self.nodes:
            end(node)
        self.stack.close()

    def _configure(self):
        of_daemons = [DAEMON.format(number=n, address=port.address, memory=self.memory) for n, port in enumerate(self.storage)]
        settings = {"folder": self.folder, "fsid": uuid.uuid4(), "gateway": 0, "store": self.store, "copies": self.copies}
        settings |= {"monitors": monitor_address(self.monitor.address, *MONITOR_PORTS)}
        settings |= {"classes": class_settings(self.folder / "classes", [self.library]), "addresses": "".join(of_daemons)}
        self.fsid = settings["fsid"]
        self.config.write_text(CONFIG.format(**settings).replace("127.0.0.1", self.monitor.address))

    def _make_keys(self):
        for name, rights in RIGHTS.items():
            caps = [word for service, right in rights.items() for word in ("--cap", service, right)]
            create = () if (self.folder / "keyring").exists() else ("--create-keyring",)
            self._tool("ceph-authtool", "keyring", *create, "--gen-key", "-n", name, *caps)

    def _start_monitor(self):
        address = monitor_address(self.monitor.address, *MONITOR_PORTS)
        self._tool("monmaptool", "--create", "--fsid", self.fsid, "--addv", "a", address, "monmap")
        self._tool("ceph-mon", "-c", self.config, "-i", "a", "--mkfs", "--monmap", "monmap", "--keyring", "keyring")
        process = self._start(self.monitor, "mon", "ceph-mon", "-c", self.config, "-f", "-i", "a", env=self._clean())

        def answers():
            if process.poll() is not None:
                raise SystemExit(f"the monitor of Ceph ended: {self._said('mon')}")
            return self._run("ceph", "-c", self.config, "--connect-timeout", "10", "quorum_status").returncode == 0

        until(answers, "the monitor of Ceph answers")

    def _make_daemon(self, number):
        name = uuid.uuid4()
        (self.folder / f"osd.{number}").mkdir()
        self._ceph("osd", "new", name)
        self._tool("ceph-osd", "-c", self.config, "-i", number, "--mkfs", "--osd-uuid", name)

    def start_daemon(self, number):
        """Starts the storage daemon of a host."""
        command = ("ceph-osd", "-c", self.config, "-f", "-i", number)
        self.daemons[number] = self._start(self.storage[number], f"osd{number}", *command, env=self._clean())

    def kill_daemon(self, number):
        """Kills the storage daemon of a host."""
        self.daemons[number].kill()
        self.daemons[number].wait()

    def wait_for_daemons(self):
        """Waits until the monitor knows that all daemons are up."""
        up = lambda: json.loads(self._ceph("osd", "stat", "--format", "json"))["num_up_osds"] == self.count
        until(up, "all storage daemons are up")

    def _start_node(self, number):
        target, address = self.folder / f"target{number}", f"{self.storage[number].address}:{PORT}"
        place = f"rados://{NODE_POOL}/{stores_of(self.count)[number]}"
        command = [self.binary, "serve", "--objects", place, "--target", target, "--listen", address]
        if number > 0:
            command += ["--join", f"{self.storage[0].address}:{PORT}", "--key", self.folder / "target0/cluster.key"]
        env = environment() | self.named
        node = self._start(self.storage[number], f"node{number}", *command, env=env, stdout=subprocess.PIPE, text=True)
        line = first_line(node)
        if "listening on" not in line:
            raise SystemExit(f"node {number} did not start: {line.strip()} {self._said(f'node{number}')}")
        self.nodes.append(node)

    def _start(self, port, name, *words, env, **settings):
        """Starts a process in a namespace. It ends with the hosts."""
        with open(self.folder / f"{name}.err", "wb") as err:
            how = {"stdin": subprocess.DEVNULL, "stdout": err, "stderr": err, **settings}
            process = subprocess.Popen(inside(port, *words), cwd=self.folder, env=env, preexec_fn=ends_with_us, **how)
        self.stack.callback(end, process)
        return process

    def _said(self, name):
        return (self.folder / f"{name}.err").read_text(errors="replace")[-2000:].strip()

    @staticmethod
    def _clean():
        # Some of the programs are scripts of the system's Python.
        return {name: value for name, value in os.environ.items() if not name.startswith(("CEPH_", "PYTHON"))}

    def _run(self, *words):
        command = inside(self.monitor, *words)
        return subprocess.run(command, cwd=self.folder, env=self._clean(), capture_output=True, text=True, timeout=CEPH_SECONDS)

    def _tool(self, *words):
        done = self._run(*words)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def _ceph(self, *words):
        return self._tool("ceph", "-c", self.config, "--connect-timeout", "10", *words)

    def url(self, name):
        return f"grist://{self.storage[0].address}:{PORT}/{name}"

    def at_client(self, *words):
        """The output of a command on the client. The environment names the cluster of Ceph to it."""
        env = environment() | self.named
        done = subprocess.run(inside(self.client, *words), stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def gristmill(self, *words):
        """The output of the command `gristmill` on the client, and the seconds of its processor time."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = self.at_client(self.binary, *words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return said, used

    def used(self):
        """The processor time of each process of the storage hosts since its start: {(host, process): seconds}."""
        both = {"daemon of Ceph": self.daemons, "node": self.nodes}
        return {(host, name): processor_seconds(of[host]) for name, of in both.items() for host in range(self.count)}

    def shape(self, rate):
        """Limits the ports of the storage hosts and of the client to so many bytes a second. None: no limit."""
        for port in [*self.storage, self.client]:
            port.shape(rate)

    def carried(self):
        """The bytes that went through the ports of the storage hosts."""
        return sum(sum(port.carried()) for port in self.storage)
