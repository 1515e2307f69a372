"""One trial: a cluster, a user alone, the same user during the attacks, and the size of the nodes."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np
from cluster import Up, until
from conftest import binary

from .attacks import ALICE, BOB
from .others import NUMBERS, SMALL, during

NODES = 3
MIB = 1 << 20
WORDS = b"".join(b"the quick brown fox %07d\n" % n for n in range(400_000))
LISTED = 5_000
#: The limit for decoded chunks of a node in this trial.
CHUNK_MEMORY = 512 * MIB
#: Attacks of which one round may take longer than a trial.
LASTING = {"long_kernels", "large_chunks"}
#: Seconds in which an attack must have begun.
BEGINS = 120
#: The size that a node must stay below with this limit (docs/administration.md lists its parts).
STATED = CHUNK_MEMORY + 1536 * MIB
#: How long a user may wait: at most so many times the wait on a quiet cluster, and at most so many seconds.
TIMES, SECONDS = 10, 2


@dataclass
class Report:
    """The waits of a user, and the largest size of a node."""

    quiet: dict
    attacked: dict
    peak: int
    #: Sentences that say what went wrong.
    wrong: list[str] = field(default_factory=list)

    def slowest(self, name):
        """The 99th percentile of the durations of a command, quiet and attacked, in seconds."""
        return tuple(float(np.percentile(times[name], 99)) if times[name] else float("inf") for times in (self.quiet, self.attacked))

    def beyond(self):
        """The commands that took too long."""
        each = {name: self.slowest(name) for name in self.quiet}
        return [name for name, (quiet, attacked) in each.items() if attacked > min(TIMES * quiet, SECONDS)]

    def lines(self):
        for name in self.quiet:
            quiet, attacked = self.slowest(name)
            goal = "missed" if name in self.beyond() else "reached"
            yield (f"{name}: p99 {quiet:.3f} s quiet, {attacked:.3f} s attacked, {attacked / quiet:.1f} times "
                   f"(goal: {TIMES} times, {SECONDS} s: {goal}), of {len(self.attacked[name])} commands")  # fmt: skip
        yield f"the largest node had {self.peak / MIB:.0f} MiB, of {STATED / MIB:.0f} stated"
        yield from self.wrong
        yield f"{len(self.wrong)} things wrong"


def run(start, folder, seconds, attacks):
    """Runs a trial. ``start(kind, **how)`` starts a cluster."""
    tokens = folder / "tokens"
    tokens.write_text(f"alice {ALICE}\nbob {BOB}\n")
    tokens.chmod(0o600)
    given = ("--tokens", tokens, "--require-identity", "--chunk-memory", str(CHUNK_MEMORY))
    cluster = start(Up, nodes=NODES, args=given)
    env = {"GRISTMILL_TOKEN": BOB}
    fill(cluster, folder, env)
    before = cluster.pids()
    quiet, wrong = during(cluster, env, seconds)
    with attacked(cluster, attacks):
        slow, more = during(cluster, env, seconds)
    report = Report(quiet, slow, max(largest(pid) for pid in cluster.pids().values()), wrong + more)
    if cluster.pids() != before:
        report.wrong.append(f"a node ended: {before} became {cluster.pids()}")
    if report.peak > STATED:
        report.wrong.append(f"a node had {report.peak / MIB:.0f} MiB")
    until(lambda: not during(cluster, env, 1)[1], "the nodes work as before", 60)
    return report


def fill(cluster, folder, env):
    """Stores the files for the attacks, which Alice may read, and the files of the user."""
    put = lambda path, content, *args: cluster.put(path, content, "--mode", "644", *args, env=env)
    put("/words", WORDS, "--stripe", "64KiB")
    put("/numbers", NUMBERS[: 1 << 20].tobytes(), "--stripe", "64KiB")
    put("/sums", NUMBERS.tobytes(), "--stripe", "256KiB")
    put("/small", SMALL)
    chunk = 12 * MIB
    with h5py.File(folder / "bomb.h5", "w") as file:
        data = file.create_dataset("x", (4 * chunk,), "f8", chunks=(chunk,), compression="gzip", compression_opts=1)
        for n in range(4):
            data[n * chunk : (n + 1) * chunk] = np.full(chunk, n + 1.0)
    with h5py.File(folder / "chunks.h5", "w") as file:
        # The file has no chunk: all elements are fill values.
        file.create_dataset("x", (4 * MIB - 1,), "f8", chunks=(1,))
    for name in ("bomb.h5", "chunks.h5"):
        cluster.grist.ok("put", folder / name, cluster.url(f"/{name}"), "--mode", "644", env=env)
    many = folder / "many"
    many.mkdir()
    for n in range(LISTED):
        (many / f"{n:06}").write_bytes(b"x")
    cluster.grist.ok("put", many, cluster.url("/many"), "--mode", "644", env=env)


@contextmanager
def attacked(cluster, attacks):
    """Runs the attacks inside the `with` block, which begins once each has sent its requests, except for those
    of which one round lasts longer than a trial."""
    tests = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "under_attack.attacks"]
    env = {**os.environ, "GRISTMILL_BIN": str(binary())}
    processes = [
        subprocess.Popen([*command, name, cluster.entry, cluster.folder], cwd=tests, env=env, stdin=subprocess.DEVNULL, start_new_session=True)
        for name in attacks
    ]
    try:
        # Attackers have little processor time once the user works too.
        for name in attacks:
            until(lambda name=name: go_on(attacks, processes) and reached(cluster, name), f"the attack {name} has begun", BEGINS)
        yield
        go_on(attacks, processes)
    finally:
        for process in processes:
            end_group(process)


def go_on(attacks, processes):
    """Checks that no attack has ended by itself."""
    for name, process in zip(attacks, processes, strict=True):
        assert process.poll() is None, f"the attack {name} ended by itself"
    return True


def reached(cluster, name):
    """Whether an attack has sent its requests, or may still be in its first round."""
    return (cluster.folder / f"reached-{name}").exists() or name in LASTING


def end_group(process):
    """Ends an attack and the commands that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def largest(pid):
    """The peak memory of a process, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    [peak] = [int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM")]
    return peak
