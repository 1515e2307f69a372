"""Storage nodes as real processes: functions that start them, find them, send signals to them, and always end them."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

from conftest import Gristmill, binary
from prometheus_client.openmetrics.parser import text_string_to_metric_families

DEADLINE = 30  # seconds; a bound on a hang, not a measure of speed
PAUSE = 0.02


def until(condition, what, seconds=DEADLINE):
    """Waits until a condition is true and returns its value."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(PAUSE)


def metrics(cluster):
    """The values of /metrics of the entry node, by name and labels."""
    with urllib.request.urlopen(f"http://{cluster.entry}/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        text = answer.read().decode()
    assert text.endswith("# EOF\n")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    return {
        (sample.name, sample.labels.get("kernel") or sample.labels.get("state")): sample.value
        for family in families.values()
        for sample in family.samples
    }


class Process:
    """A process whose output goes to files, so that it never waits for a reader."""

    def __init__(self, folder, name, args, env=None, before=()):
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("GRISTMILL_")}
        with open(self.out, "ab") as out, open(self.err, "ab") as err:
            self.from_here = out.tell()
            self.child = subprocess.Popen(
                [*before, binary(), *map(str, args)],
                cwd=folder,
                env={**inherited, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self.pid = self.child.pid

    def running(self):
        return self.child.poll() is None

    def line(self, start) -> str:
        """Waits for the line of output that contains `start`, and returns it."""

        def look():
            for line in self.out.read_bytes()[self.from_here :].decode().splitlines(keepends=True):
                if start in line and line.endswith("\n"):
                    return line
            assert self.running(), f"ended ({self.child.returncode}): {self.err.read_text()}"
            return None

        return until(look, f"'{start}' from {self.child.args}")

    def signal(self, number):
        if self.running():
            self.child.send_signal(number)

    def end(self):
        """Ends the process with SIGTERM, or with SIGKILL if it does not end in time."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def kill(self):
        self.signal(signal.SIGKILL)
        return self.child.wait(20)


class Cluster:
    """The methods that both ways to start nodes have."""

    def __init__(self, folder: Path, nodes):
        self.folder = folder
        self.count = nodes
        self.grist = Gristmill(folder)
        self.env = {}

    def url(self, path="/") -> str:
        return f"grist://{self.entry}{path}"

    def http(self, path) -> str:
        return f"http://{self.entry}/files{path}"

    def node_dir(self, number) -> Path:
        return self.folder / "store" / f"node{number}"

    def objects(self, *numbers) -> list[Path]:
        """The object files of the given nodes, or of all nodes."""
        found = []
        for number in numbers or range(self.count):
            found += [p for p in (self.node_dir(number) / "objects" / "objects").glob("**/*") if p.is_file()]
        return found

    def space(self) -> int:
        """The number of bytes of all objects."""
        total = 0
        for path in self.objects():
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                pass
        return total

    def put(self, name, content: bytes, *args, **how):
        """Stores bytes under a path."""
        source = self.folder / f"source-{time.monotonic_ns()}"
        source.write_bytes(content)
        self.grist.ok("put", source, self.url(name), *args, **how)
        source.unlink()
        return self.url(name)

    def get(self, name, **how) -> bytes:
        return self.grist.ok("get", self.url(name), "-", **how)

    def stat(self, name) -> dict:
        return json.loads(self.grist.ok("stat", self.url(name), "--json"))

    def addresses(self) -> dict:
        nodes = json.loads(self.grist.ok("nodes", self.url(), "--json"))["nodes"]
        return {node["target"]: node["address"] for node in nodes}

    def pid(self, number) -> int:
        return self.pids()[number]

    def processor_time(self):
        """The processor time that each node has used, in seconds."""
        for number in range(self.count):
            with open(f"/proc/{self.pid(number)}/stat") as stat:
                words = stat.read().rpartition(")")[2].split()
            yield (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def send(self, number, what) -> int:
        """Sends a signal to a node."""
        pid = self.pid(number)
        os.kill(pid, what)
        return pid

    def works(self):
        """Whether every node answers again. It stores a file on all of them and reads it."""
        done = self.grist("nodes", self.url())
        if done.returncode != 0:
            return False
        probe = self.folder / "probe"
        probe.write_bytes(b"x" * 4096)
        if self.grist("put", probe, self.url("/probe"), "--stripe", "64").returncode != 0:
            return False
        answer = self.grist("run", "count", self.url("/probe"), "--type", "u8", "--place", "storage")
        return answer.returncode == 0 and self.grist("rm", self.url("/probe")).returncode == 0

    def errors(self) -> str:
        return "".join(path.read_text(errors="replace") for path in self.folder.glob("*.err"))


class Up(Cluster):
    """Nodes under `gristmill up`, which restarts a node that ended."""

    def __init__(self, folder, nodes=4, args=(), env=None, listen="127.0.0.1:0", before=()):
        super().__init__(folder, nodes)
        self.args, self.settings, self.listen, self.before = args, env or {}, listen, before
        self.known = {}
        self.start()

    def start(self):
        given = ("--dir", self.folder / "store", "--nodes", self.count, "--listen", self.listen, *self.args)
        self.process = Process(self.folder, "up", ("up", *given), self.settings, self.before)
        try:
            line = self.process.line("files are at ")
        except BaseException:
            self.process.end()
            raise
        self.entry = line.split("grist://")[1].strip().rstrip("/")
        self.pids()

    def restart(self):
        self.stop()
        self.listen = self.entry
        self.start()

    def pids(self) -> dict:
        """The process ID of each node, by its number."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            if b"--target" in words and parent == self.process.pid:
                target = words[words.index(b"--target") + 1].decode()
                if target.startswith(str(self.folder / "store") + "/"):
                    found[int(target.rpartition("node")[2])] = int(entry.name)
        self.known.update(found)
        return found

    def stop(self):
        pids = self.pids()
        for pid in pids.values():
            os.kill(pid, signal.SIGCONT)
        code = self.process.end()
        for pid in pids.values():
            if is_ours(pid, self.folder):
                os.kill(pid, signal.SIGKILL)
        return code

    end = stop


class Nodes(Cluster):
    """Nodes that are started one by one with `gristmill serve`. A node that ended stays down until the test starts it."""

    def __init__(self, folder, nodes=3, args=(), env=None, dirs=None):
        super().__init__(folder, nodes)
        self.args, self.settings = args, env or {}
        self.dirs = dirs or {}
        self.listen = {}
        self.running = {}
        for number in range(nodes):
            self.start(number)

    def node_dir(self, number):
        return self.dirs.get(number) or super().node_dir(number)

    def start(self, number):
        listen = self.listen.get(number, "127.0.0.1:0")
        given = ("serve", "--target", self.node_dir(number), "--listen", listen, *self.cluster_of(number))
        self.node_dir(number).mkdir(parents=True, exist_ok=True)
        process = Process(self.folder, f"node{number}", (*given, *self.args_of(number)), self.settings, self.before(number))
        self.running[number] = process
        line = process.line("listening on ")
        self.listen[number] = line.split("listening on ")[1].split()[0]
        assert f"as target {number}" in line, line
        if number == 0:
            self.entry = self.listen[0]

    def cluster_of(self, number):
        """The options by which a node finds its cluster."""
        return ("--join", self.entry, "--key", self.node_dir(0) / "cluster.key") if number > 0 else ()

    def before(self, number):
        """The words before the command of a node."""
        return ()

    def args_of(self, number):
        """The options of a node."""
        return self.args

    def pids(self):
        return {number: process.pid for number, process in self.running.items()}

    def kill(self, number):
        self.running[number].kill()

    def stop(self, number):
        return self.running[number].end()

    def end(self):
        for number in reversed(sorted(self.running)):
            self.running[number].end()


def is_ours(pid, folder) -> bool:
    """Whether the process with this ID was started in this folder."""
    try:
        return str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


class Started:
    """Starts clusters and ends all of them, also after a failed test."""

    def __init__(self, folder):
        self.folder = folder
        self.clusters = []
        self.processes = []

    def __enter__(self):
        return self

    def __call__(self, kind=Up, **how):
        folder = self.folder()
        made = kind.__new__(kind)
        self.clusters.append(made)
        made.__init__(folder, **how)
        return made

    def process(self, folder, name, args, **how) -> Process:
        """Starts a command that the test leaves running."""
        self.processes.append(Process(folder, name, args, **how))
        return self.processes[-1]

    def __exit__(self, *_):
        for process in self.processes:
            process.signal(signal.SIGCONT)
            process.kill()
        for cluster in reversed(self.clusters):
            if hasattr(cluster, "process") or getattr(cluster, "running", None):
                cluster.end()
        for cluster in self.clusters:
            for word in ("panicked", "RUST_BACKTRACE"):
                assert word not in cluster.errors(), cluster.errors()
        # Each target keeps 32 MiB in reserve. A test run makes hundreds of stores, which would fill the disk.
        for cluster in self.clusters:
            for number in range(cluster.count):
                shutil.rmtree(cluster.node_dir(number), ignore_errors=True)
