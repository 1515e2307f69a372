"""One factor between the described machine and this one.

Two cores cannot be sixteen hosts. With a *scale* of 1/2 every link carries half, every core computes half, and every file is half
as long. So a run takes as long as on the described machine and all its ratios are the same, as long as this machine can do the
work of all hosts together.
"""

from statistics import median

import schemes

# For a calibration: the seconds of the longer of two folds, the factor by which it is longer, how often both run for one rate, and
# how many rates are taken to find a quota and to check it.
SECONDS, QUICK_SECONDS, LONGER, TIMES = 0.6, 0.12, 3, 3
ROUNDS, QUICK_ROUNDS = 9, 2

# The maximum number of calibrations.
TRIES = 4

# A fold must take this many periods of its quota, or its slowdown is wrong by more than a tenth.
PERIODS = 10

# How far the reached rate may be from the right one at the end, and how far one try may change it.
TOLERATED, STEP = 0.1, 1.5


class Folds:
    """Two files of different lengths on one target. The difference of their times does not contain the fixed time of a request, or
    the part of a period that a fold has for nothing at its beginning."""

    def __init__(self, storage, short, long, request, host):
        """`request` makes the request for a number of bytes, and `host` sends it."""
        self.storage, self.short, self.long, self.request, self.host = storage, short, long, request, host

    def seconds(self, file):
        request = self.request(file.size)
        return median(schemes.active(self.storage, file, request, self.host)[0] for _ in range(TIMES))

    def rate(self):
        """Bytes a second of the kernel."""
        apart = self.seconds(self.long) - self.seconds(self.short)
        return (self.long.size - self.short.size) / max(apart, 1e-6)


def cores(storage, folds, rounds=ROUNDS, known=None):
    """For each scale in `folds`: {scale: (core, reached)}. `core` is the processor time of this machine, in seconds, that makes
    one second of a core of the described machine. `reached` is the rate of the kernel then, as a share of the right one.

    The values are found by trying, on one storage host with its quota. A processor that is taken away and given back many times a
    second folds less in a second of its time than another one. Other machines on the same hardware change the speed of this
    machine's memory by a tenth and more, for seconds or minutes. So all scales run in turns in each round, no single rate decides,
    and the result is tried once more. `known` has the values of the last time. The first try only checks them, and ends the search
    if they are near enough.
    """
    hosts, server = storage.hosts, storage.servers[0]
    wanted = {scale: hosts.machine.rate * scale * folding(hosts.machine) for scale in folds}
    found, best = dict(known or {}), {}
    for scale, each in folds.items():
        if known:
            break
        hosts.shape(scale)
        hosts.limit(None)
        before = server.usage()
        each.seconds(each.long)
        found[scale] = scale * hosts.machine.rate * (server.usage() - before) / (TIMES * each.long.size)

    def rate(scale):
        hosts.shape(scale)
        hosts.limit(found[scale])
        return folds[scale].rate() / wanted[scale]

    for number in range(TRIES):
        tries = {scale: [] for scale in folds}
        for _ in range(rounds if number or not known else 0):
            for scale in folds:
                tries[scale].append(found[scale] / min(max(rate(scale), 1 / STEP), STEP))
                found[scale] = median(tries[scale])
        again = {scale: [] for scale in folds}
        for _ in range(rounds):
            for scale in folds:
                again[scale].append(rate(scale))
        for scale in folds:
            came = found[scale], median(again[scale])
            best[scale] = min(best.get(scale, came), came, key=lambda each: abs(each[1] - 1))
        if all(abs(reached - 1) <= TOLERATED for _, reached in best.values()):
            break
    return best


def folding(machine):
    """The number of cores with which a storage node can fold."""
    return machine.roles["storage"].folding


def jiffies():
    """The seconds that all processors were busy since the start, and all their seconds."""
    with open("/proc/stat") as stat:
        numbers = [int(word) for word in stat.readline().split()[1:9]]
    idle = numbers[3] + numbers[4]
    return sum(numbers) - idle, sum(numbers)


class Busy:
    """The share of this machine's processor time that was used inside a `with` block."""

    def __enter__(self):
        self.before = jiffies()
        return self

    def __exit__(self, *_):
        busy, all_ = (after - before for before, after in zip(self.before, jiffies()))
        self.share = busy / max(all_, 1)
