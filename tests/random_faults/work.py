"""The work of clients. Each client has its own paths, and all clients read some shared files with known answers."""

import hashlib
import json
import math
import subprocess
import threading
from random import Random

import numpy as np
from conftest import binary

from .history import Path

#: Seconds within which any command must end, whatever happens to the nodes.
HANGS = 150
PATHS = 4
MAX_BYTES = 600_000

#: Kernels over the file of numbers, with their parameters.
KERNELS = {
    "sum": (), "mean": (), "minmax": (), "var": (), "count": (), "top": ("-p", "k=5"), "histogram": ("-p", "range=-5:5"),
    "median": (), "quantile": ("-q", "0.1"), "lookup": ("-p", "where=> 3"), "kmeans": ("-p", "dims=2", "-p", "k=3", "-p", "init=first"),
}  # fmt: skip
TEXT_KERNELS = {"wc": (), "grep": ("-p", "pattern=7 .*9$"), "unique": ("--type", "u8")}
MADE = ("gaussian", "--type", "f64", "-p", "shape=512,100", "--quiet")


class Wrong(Exception):
    """Something that must never happen, with all details."""


class Shared:
    """The files that all clients read, and the right answers, which a process computes without nodes."""

    def __init__(self, cluster, folder, seed):
        numbers = np.random.default_rng(Random(f"numbers {seed}").getrandbits(64)).normal(size=51_200)
        lines = "".join(f"{n} {n * n} {n % 97}\n" for n in range(30_000))
        self.numbers, self.text = folder / "numbers.f64", folder / "text"
        self.numbers.write_bytes(numbers.tobytes())
        self.text.write_text(lines)
        self.questions = {}
        for local, kernels, kind in ((self.numbers, KERNELS, ("--type", "f64")), (self.text, TEXT_KERNELS, ())):
            path = f"/shared/{local.name}"
            cluster.grist.ok("put", local, cluster.url(path), "--stripe", "16KiB")
            for kernel, params in kernels.items():
                how = (*params, *(() if "--type" in params else kind))
                self.questions[kernel] = path, how, answer(cluster.grist.ok("run", kernel, local, *how, "--json"))
        assert math.isclose(float(self.questions["sum"][2]["result"]["sum"]), math.fsum(numbers))
        made = folder / "made"
        cluster.grist.ok("run", MADE[0], self.numbers, *MADE[1:-1], "--output", made)
        self.made = made.read_bytes()


def answer(text):
    """The part of an answer that does not depend on the place: the result and the rows."""
    found = json.loads(text)
    return {name: found[name] for name in ("result", "rows", "columns") if name in found}


class Client(threading.Thread):
    """Runs one command after the other until the trial is over."""

    def __init__(self, number, cluster, shared, seed, over):
        super().__init__(name=f"client {number}")
        self.cluster, self.shared, self.over = cluster, shared, over
        self.choose = Random(f"client {number} {seed}")
        self.paths = [Path(f"/client{number}/file{n}") for n in range(PATHS)]
        self.made = Path(f"/client{number}/made")
        self.counts = {"right": 0, "refused": 0, "killed": 0}
        self.wrong = None
        #: The last line of the last command that failed. It is empty after a command that was killed.
        self.said = ""

    def run(self):
        steps = [self.put, self.put, self.get, self.get, self.ask, self.ask, self.ask, self.remove, self.move, self.make]
        try:
            while not self.over.is_set():
                self.choose.choice(steps)()
        except Wrong as wrong:
            self.wrong = wrong
            self.over.set()

    def command(self, *args, stdin=None, may_die=True):
        """Runs a command, and sometimes kills it. Returns its output, or None if it failed or was killed."""
        self.said = ""
        dies = may_die and self.choose.random() < 0.1
        after = self.choose.uniform(0, 0.4)
        child = subprocess.Popen(
            [binary(), *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.cluster.grist.env, cwd=self.cluster.folder,
        )  # fmt: skip
        try:
            out, err = child.communicate(stdin, timeout=after if dies else HANGS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            if dies:
                self.counts["killed"] += 1
                return None
            raise Wrong(f"{args} did not end in {HANGS} s") from None
        if child.returncode == 0:
            self.counts["right"] += 1
            return out
        said = err.decode(errors="replace").strip().splitlines()
        if child.returncode not in (1, 2) or not said or "panick" in err.decode(errors="replace"):
            raise Wrong(f"{args} ended with {child.returncode}: {err!r}")
        self.counts["refused"] += 1
        self.said = said[-1]
        return None

    def put(self):
        path = self.choose.choice(self.paths)
        content = self.choose.randbytes(self.choose.choice([0, 1, 1000, 70_000, self.choose.randrange(MAX_BYTES)]))
        stripe = self.choose.choice(["4KiB", "64KiB", "1MiB"])
        done = self.command("put", "-", self.cluster.url(path.name), "--stripe", stripe, stdin=content)
        (path.told if done is not None else path.untold)(f"put of {len(content)}", content)

    def get(self, path=None, sure=False):
        path = path or self.choose.choice(self.paths)
        out = self.command("get", self.cluster.url(path.name), "-", may_die=not sure)
        if out is None:
            absent = "there is nothing at" in self.said
            if sure and not absent:
                raise Wrong(f"nothing disturbs any more, and {path.name} cannot be read: {self.said}")
            if not absent or None in path.states:
                if sure:
                    path.seen(None)
                return
            raise Wrong(f"is not there: {path.told_of()}")
        if not path.seen(out):
            raise Wrong(f"{len(out)} bytes, sha256 {hashlib.sha256(out).hexdigest()[:12]}, came: {path.told_of()}")

    def ask(self):
        kernel = self.choose.choice(sorted(self.shared.questions))
        path, how, expected = self.shared.questions[kernel]
        place = self.choose.choice(["auto", "storage", "client"])
        out = self.command("run", kernel, self.cluster.url(path), *how, "--json", "--place", place)
        if out is not None and answer(out) != expected:
            raise Wrong(f"{kernel} of {path} with --place {place} is {answer(out)}, not {expected}")

    def remove(self):
        path = self.choose.choice(self.paths)
        done = self.command("rm", self.cluster.url(path.name))
        gone = done is not None or "there is nothing at" in self.said
        if not gone:
            path.untold("rm", None)
        elif done is None and None not in path.states:
            raise Wrong(f"is not there: {path.told_of()}")
        else:
            path.told("rm", None)

    def move(self):
        old, new = self.choose.sample(self.paths, 2)
        # Each of the two paths must have one known state. Otherwise several combinations would be possible.
        if len(old.states) > 1 or len(new.states) > 1 or None in old.states:
            return
        (content,) = old.states
        done = self.command("mv", self.cluster.url(old.name), self.cluster.url(new.name))
        if done is not None:
            old.told("mv away", None)
            new.told("mv", content)
        else:
            old.untold("mv away", None)
            new.untold("mv", content)

    def make(self):
        done = self.command(
            "run", *MADE[:-1], self.cluster.url("/shared/numbers.f64"), "--output", self.cluster.url(self.made.name)
        )
        (self.made.told if done is not None else self.made.untold)("made", self.shared.made)

    def check(self):
        """Reads all files after the faults have ended."""
        for path in (*self.paths, self.made):
            self.get(path, sure=True)
