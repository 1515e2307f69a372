"""Runs many programs in several processes, and collects the results."""

import gc
import multiprocessing
import os
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace

from . import cases, known, ways
from .shrinking import script, shrunk

#: The number of differences for which a script is made. Later differences are reported without one.
MAX_SCRIPTS = 5


@dataclass
class Summary:
    """The results of some programs."""

    programs: int = 0
    refused: int = 0
    ways: Counter = field(default_factory=Counter)
    explained: Counter = field(default_factory=Counter)
    #: Texts that describe each difference and how to reproduce it.
    unexplained: list[str] = field(default_factory=list)

    def add(self, other):
        self.programs += other.programs
        self.refused += other.refused
        self.ways += other.ways
        self.explained += other.explained
        self.unexplained += other.unexplained


@dataclass(frozen=True)
class Plan:
    """What to run: programs ``first`` to ``first + programs`` of a seed."""

    seed: object
    programs: int
    first: int = 0
    ways: tuple[str, ...] = ways.WAYS
    cluster: str | None = None
    scripts: bool = True
    #: Whether to report known differences like all others.
    everything: bool = False

    def blocks(self):
        """The same plan, cut into one part for each data set."""
        at, end = self.first, self.first + self.programs
        while at < end:
            until = min(end, (at // cases.PROGRAMS_OF_ONE + 1) * cases.PROGRAMS_OF_ONE)
            yield replace(self, programs=until - at, first=at)
            at = until


def block(plan):
    """Runs the programs over one data set."""
    # NumPy and dask warn of NaN thousands of times. This process does nothing else, so its warnings can be off.
    warnings.simplefilter("ignore")
    summary = Summary()
    folder = tempfile.mkdtemp(prefix="differential-")
    try:
        place = cases.data_of(plan.seed, plan.first, folder, plan.cluster)
        for number in range(plan.first, plan.first + plan.programs):
            one(plan, number, place, folder, summary)
        place.close()
    except cases.Unreadable:
        summary.refused += plan.programs
    except Exception:
        # The comparison itself failed, and not what it compares. The other programs go on.
        summary.unexplained.append(f"--seed {plan.seed} --number {plan.first}: no comparison\n{traceback.format_exc()}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return summary


def one(plan, number, place, folder, summary):
    """Runs one program in all ways and adds the result to the summary."""
    try:
        case = cases.run(plan.seed, number, place, plan.ways)
    except Exception:
        summary.unexplained.append(f"--seed {plan.seed} --number {number}: no comparison\n{traceback.format_exc()}")
        return
    summary.programs += 1
    summary.refused += case.refusal is not None
    summary.ways.update(ways.of_program(number, plan.ways))
    for difference in case.found:
        reason = None if plan.everything else known.explained(case, difference)
        if reason:
            summary.explained[reason.name] += 1
            continue
        summary.unexplained.append(told(case, difference, place, plan, folder, len(summary.unexplained)))
        # If another way differs too, the reason is nearly always the same.
        break


def told(case, difference, place, plan, folder, told_before):
    """A difference as text: how to repeat it, a description, and a small script that shows it."""
    lines = [f"--seed {case.seed} --number {case.number}, {difference.way} ({case.made.form})"]
    lines += [f"    {line}" for line in case.text.splitlines()]
    lines += [f"  {one}" for one in difference.said]
    lines += [f"  without a bound: {case.unbounded}"] if case.unbounded else []
    if plan.scripts and told_before < MAX_SCRIPTS:
        small = shrunk(case, difference, folder, plan.cluster, place.chunks)
        lines += ["  this shows it:", *(f"    {line}" for line in script(*small).splitlines())]
    return "\n".join(lines)


def prepare():
    """Graphs of dask have many objects with short lives. The default garbage collection took a seventh of the time of a process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def run(plan, jobs=None, heard=None):
    """Runs a plan in several processes, and calls ``heard(part, summary, seconds)`` for each finished part. A process that crashes
    ends the run."""
    summary, begin = Summary(), time.monotonic()
    jobs = jobs or os.cpu_count() or 1
    # Forked children cannot use nodes and threads. A pool of multiprocessing would wait for a crashed process without end.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=prepare) as pool:
        under_way = {pool.submit(block, part): part for part in plan.blocks()}
        while under_way:
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                part = under_way.pop(future)
                try:
                    one = future.result()
                except BrokenProcessPool:
                    # All other parts fail with it.
                    summary.unexplained.append(f"--seed {plan.seed} --number {part.first} or another: a process crashed")
                    return summary
                summary.add(one)
                if heard:
                    heard(one, summary, time.monotonic() - begin)
    return summary
