"""Control groups: how much processor time the processes of a host may take together, and how much they took.

Works with version 1 (controllers cpu and cpuacct) and version 2.
"""

import contextlib
import os
import time
from pathlib import Path

from network import PREFIX, LabError, over

ROOT = Path("/sys/fs/cgroup")

# A quota holds for periods this long, unless its part of one would be below the least that the kernel takes.
PERIOD_US, LEAST_QUOTA_US, MOST_PERIOD_US = 20_000, 1_000, 1_000_000

# How long processes of a group that are being ended may take, in seconds.
END_SECONDS = 10


def controllers():
    """Where groups are made: {what it is for: directory}."""
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
        for directory in self.directories.values():
            directory.mkdir(exist_ok=True)

    def enter(self):
        """For a child before it runs its program."""
        for directory in self.directories.values():
            (directory / "cgroup.procs").write_text(str(os.getpid()))

    def limit(self, cores):
        """Its processes may take `cores` seconds of processor time a second; None: all they can."""
        quota, period = -1, PERIOD_US
        if cores is not None:
            period = int(min(max(PERIOD_US, LEAST_QUOTA_US / cores), MOST_PERIOD_US))
            quota = max(LEAST_QUOTA_US, round(cores * period))
        directory = self.directories["quota"]
        if self.second:
            (directory / "cpu.max").write_text(f"{'max' if quota < 0 else quota} {period}")
            return
        (directory / "cpu.cfs_quota_us").write_text("-1")
        (directory / "cpu.cfs_period_us").write_text(str(period))
        (directory / "cpu.cfs_quota_us").write_text(str(quota))

    def usage(self):
        """Seconds of processor time that its processes took."""
        if self.second:
            stat = (self.directories["usage"] / "cpu.stat").read_text().split()
            return int(stat[stat.index("usage_usec") + 1]) / 1e6
        return int((self.directories["usage"] / "cpuacct.usage").read_text()) / 1e9

    def remove(self):
        for directory in set(self.directories.values()):
            remove(directory)


def remove(directory):
    """Ends what is still in a group and removes it."""
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
    """Removes the groups of labs whose process is no more, of all labs, or of one."""
    for base in set(controllers().values()):
        for directory in base.glob(f"{PREFIX}-*"):
            if over(directory.name, everything, of):
                remove(directory)


def missing():
    """Why processor time cannot be limited here, or nothing."""
    try:
        group = Group("probe")
        try:
            group.limit(0.5)
            group.usage()
        finally:
            group.remove()
    except (LabError, OSError) as error:
        return f"no control groups: {error}"
    return None
