"""Storage nodes on this machine for the benchmark programs."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from first_line import first_line
from probe import release_binary

# The maximum time for nodes to stop, in seconds.
STOP_SECONDS = 30

# The usual stripe unit of a put.
STRIPE = 1 << 20

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)

# The option of all programs that start nodes, for `pairs.arguments`.
GRISTMILL = {
    "type": Path,
    "default": release_binary("gristmill"),
    "help": "the command that starts nodes (default: %(default)s)",
}


def ends_with_us():
    """Runs in a child before its program: the child gets a signal to stop when this program ends for any reason."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def environment():
    """The environment of this process, without the variables that change what nodes and clients do."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GRISTMILL_")}


def output_of(binary, *args):
    """The standard output of a command that must succeed."""
    command = [str(word) for word in (binary, *args)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment())
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.decode()}")
    return done.stdout


class Nodes:
    """Storage nodes with new, empty targets in their own directory; use with `with`."""

    def __init__(self, binary, parent, count, listen="127.0.0.1:0", prefix=(), options=(), ca=None, token=None):
        if not Path(binary).is_file():
            raise SystemExit(f"{binary} is missing; build it with: cargo build --release -p gristmill")
        self.count = count
        self.found = {}
        self.ca, self.token = ca, token
        Path(parent).mkdir(parents=True, exist_ok=True)
        self.directory = Path(tempfile.mkdtemp(prefix="nodes-", dir=parent))
        command = [*prefix, binary, "up", "--dir", self.directory, "--nodes", count, "--listen", listen, *options]
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
            preexec_fn=ends_with_us,
        )
        line = first_line(self.process)
        found = re.search(r"grist://(\S+)/", line)
        if not found:
            self.stop()
            raise SystemExit(f"the nodes did not start: {line.strip() or 'they said nothing'}")
        self.address = found.group(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends the nodes and removes their targets."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def entry(self):
        """The description of the cluster for gristmill-probe."""
        known = {"address": self.address, "ca": self.ca and str(self.ca), "token": self.token}
        return {name: value for name, value in known.items() if value is not None}

    def objects(self, file):
        """The objects of a file in this machine's file system. `put` found them."""
        return self.found[file]

    def put(self, probe, source, file, targets=None, stripe=STRIPE):
        before = self.data_files()
        answer = probe.ask("upload", cluster=self.entry, source=source, file=file, targets=targets, stripe=stripe)
        self.found[file] = sorted(self.data_files() - before)
        return answer

    def data_files(self):
        return {path for path in self.directory.glob("node*/objects/**/*") if path.is_file()}

    def floor(self, probe, file, size, lanes):
        """The seconds to read the objects of a file and do nothing with them. The pages are those that the nodes read."""
        first, *rest = self.objects(file)
        answer = probe.ask("floor", path=first, also=[str(path) for path in rest], lanes=lanes)
        if not size <= answer["bytes_read"] <= 1.01 * size + (1 << 20):
            raise SystemExit(f"the objects of {file} have {answer['bytes_read']} bytes instead of {size}")
        return answer["seconds"]

    def ask(self, probe, kernel, file, dtype="f64", place="storage", count=None, clients=None):
        what = {"kernel": kernel, "type": dtype, "place": place}
        return probe.ask("ask", cluster=self.entry, file=file, what=what, count=count, clients=clients)
