"""Control groups: how much processor time the processes of a host may use together, and how much they used.

This works with version 1 (controllers cpu and cpuacct) and version 2.
"""

import contextlib
import os
import time
from pathlib import Path

from network import PREFIX, LabError, over

ROOT = Path("/sys/fs/cgroup")

# A group may use its share of a period at full speed, and is stopped for the rest of the period. So periods are as short as the
# least quota of the kernel allows. Work that takes only a few periods is not slowed down correctly.
LEAST_QUOTA_US, LEAST_PERIOD_US, MOST_PERIOD_US = 1_000, 1_000, 1_000_000


def period(cores):
    """The length of a period in seconds, for a group that may use `cores`."""
    return min(max(LEAST_PERIOD_US, LEAST_QUOTA_US / cores), MOST_PERIOD_US) / 1e6


# The maximum time for the processes of a group to end, in seconds.
END_SECONDS = 10


def controllers():
    """The folders for groups: {purpose: directory}."""
    if (ROOT / "cgroup.controllers").exists():
        return {"quota": ROOT, "usage": ROOT}
    if (ROOT / "cpu/cpu.cfs_quota_us").exists() and (ROOT / "cpuacct/cpuacct.usage").exists():
        return {"quota": ROOT / "cpu", "usage": ROOT / "cpuacct"}
    raise LabError(f"there are no control groups with processor quotas below {ROOT}")


class Group:
    """The control group of one host."""

    def __init__(self, name):
        found = controllers()
        self.second = found["quota"] == ROOT
        self.directories = {what: base / f"{PREFIX}-{os.getpid()}-{name}" for what, base in found.items()}
        if self.second and "cpu" not in (ROOT / "cgroup.subtree_control").read_text().split():
            (ROOT / "cgroup.subtree_control").write_text("+cpu")

    def make(self):
        for directory in self.directories.values():
            directory.mkdir(exist_ok=True)

    def enter(self):
        """Enters the group. It runs in a child before its program."""
        for directory in self.directories.values():
            (directory / "cgroup.procs").write_text(str(os.getpid()))

    def limit(self, cores):
        """Limits the processes to `cores` seconds of processor time a second. None: no limit."""
        quota, length = -1, 100_000
        if cores is not None:
            length = int(1e6 * period(cores))
            quota = max(LEAST_QUOTA_US, round(cores * length))
        directory = self.directories["quota"]
        if self.second:
            (directory / "cpu.max").write_text(f"{'max' if quota < 0 else quota} {length}")
            return
        (directory / "cpu.cfs_quota_us").write_text("-1")
        (directory / "cpu.cfs_period_us").write_text(str(length))
        (directory / "cpu.cfs_quota_us").write_text(str(quota))

    def limited(self):
        """The number of cores that the group may use, according to the kernel."""
        directory = self.directories["quota"]
        if self.second:
            quota, length = (directory / "cpu.max").read_text().split()
        else:
            quota, length = (int((directory / f"cpu.cfs_{what}_us").read_text()) for what in ("quota", "period"))
        return None if quota in ("max", -1) else int(quota) / int(length)

    def usage(self):
        """The processor time that the processes used, in seconds."""
        if self.second:
            stat = (self.directories["usage"] / "cpu.stat").read_text().split()
            return int(stat[stat.index("usage_usec") + 1]) / 1e6
        return int((self.directories["usage"] / "cpuacct.usage").read_text()) / 1e9

    def remove(self):
        for directory in set(self.directories.values()):
            remove(directory)


def remove(directory):
    """Ends the processes that are still in a group and removes it."""
    deadline = time.monotonic() + END_SECONDS
    while directory.exists():
        for process in (directory / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), 9)
        try:
            directory.rmdir()
        except OSError as error:
            if time.monotonic() > deadline:
                raise LabError(f"{directory} cannot be removed: {error}") from error
            time.sleep(0.01)


def sweep(everything=False, of=None):
    """Removes the groups of labs whose process has ended, of all labs, or of one."""
    for base in set(controllers().values()):
        for directory in base.glob(f"{PREFIX}-*"):
            if over(directory.name, everything, of):
                remove(directory)


def missing():
    """Why processor time cannot be limited here, or None."""
    try:
        group = Group("probe")
        try:
            group.make()
            group.limit(0.5)
            group.usage()
        finally:
            group.remove()
    except (LabError, OSError) as error:
        return f"no control groups: {error}"
    return None
