"""Runs the command `gristmill run` on a variable and times it from its start to its end."""

import contextlib
import json
import os
import subprocess
import time
from dataclasses import dataclass

import numpy as np

import pairs
from cluster import environment

KINDS = {"f": "float", "i": "int", "u": "uint"}


@dataclass(frozen=True)
class Answered:
    """`value`: the array. `seconds`: the time of the whole command. `inside`: the time of the request, from its report."""

    value: np.ndarray
    seconds: float
    inside: float
    report: dict


class Refused(Exception):
    """The command failed. The text is its error message."""


@contextlib.contextmanager
def on_cores(cores):
    """Limits this process and its children to these cores inside the `with` block. None: all cores."""
    before = os.sched_getaffinity(0)
    try:
        if cores is not None:
            os.sched_setaffinity(0, cores)
        yield
    finally:
        os.sched_setaffinity(0, before)


def one_core():
    return {min(os.sched_getaffinity(0))}


def array(said):
    """An array of an answer. Numbers that are not finite are text there."""
    kind = KINDS[said["type"][0]] + said["type"][1:]
    return np.array([float(x) if isinstance(x, str) else x for x in said["values"]], kind).reshape(said["shape"])


def sum_request(binary, path, want, *options):
    """A function that sums float64 of a path and returns the seconds of the request, from its report. The sum must be `want`, if it is known."""

    def run():
        words = [binary, "run", "sum", path, "--type", "f64", "--json", "--no-progress", *options]
        done = subprocess.run(list(map(str, words)), capture_output=True, env=environment(), check=True)
        answer = json.loads(done.stdout)
        pairs.require(want in (None, answer["result"]["sum"]), f"the sum of {path}")
        run.sum, run.report = answer["result"]["sum"], answer["report"]
        return answer["report"]["elapsed_seconds"]

    return run


def variable(binary, op, file, name, *options, axes=None, cores=None, prefix=(), env=None):
    """Requests a reduction of a variable of a file, which may be grist://... `env` has additional variables of the environment."""
    command = [*prefix, binary, "run", op, file, "--var", name, "--json", "--no-progress", *options]
    # Without this option the second round would use what the first one learned.
    command += ["--no-statistics"]
    command += ["--axes", axes] if axes else []
    with on_cores(cores):
        begun = time.perf_counter()
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment() | (env or {}),
        )
        seconds = time.perf_counter() - begun
    if done.returncode != 0:
        raise Refused(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    report = said["report"]
    return Answered(array(said["result"][op]), seconds, report["elapsed_seconds"], report)


def put(binary, sources, to, prefix=(), env=None):
    """Copies files to storage nodes."""
    command = [*prefix, binary, "put", *sources, to, "--no-progress"]
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment() | (env or {}),
    )
    if done.returncode != 0:
        raise Refused(f"putting {to} ended with {done.returncode}: {done.stderr.strip()}")
