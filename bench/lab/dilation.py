"""One factor between the machine described and the one we have.

Two cores cannot be sixteen hosts. A *scale* of 1/2 has every link carry half, every core compute half, and every file be
half as long, so a run takes as long as on the machine described and all its ratios hold, as long as what all hosts do
together stays below what this machine can do.
"""

from statistics import median

import schemes

# Seconds that the longer of two calibrating folds is to take, how much longer it is, how often both are done for one rate,
# and how many rates are taken to find a quota, and again to see what it came to.
SECONDS, QUICK_SECONDS, LONGER, TIMES = 0.6, 0.12, 3, 3
ROUNDS, QUICK_ROUNDS = 9, 2

# How often all of this is done at most.
TRIES = 4

# Periods of its quota that a fold must take to be slowed down as it should be, to a tenth.
PERIODS = 10

# How near it must have come in the end for the lab to be one, and how far one try may change it.
TOLERATED, STEP = 0.1, 1.5


class Folds:
    """Two files of different lengths on one target: what one takes longer than the other is free of what every request
    takes, and of the part of a period that a fold has for nothing at its beginning."""

    def __init__(self, storage, short, long, request, host):
        """`request` gives what is asked of so many bytes, `host` asks."""
        self.storage, self.short, self.long, self.request, self.host = storage, short, long, request, host

    def seconds(self, file):
        request = self.request(file.size)
        return median(schemes.active(self.storage, file, request, self.host)[0] for _ in range(TIMES))

    def rate(self):
        """Bytes a second."""
        apart = self.seconds(self.long) - self.seconds(self.short)
        return (self.long.size - self.short.size) / max(apart, 1e-6)


def cores(storage, folds, rounds=ROUNDS, known=None):
    """For each scale that there are `folds` for, seconds of this machine's processor time that make one second of a core
    of the machine described, and how near the kernel then comes to its rate: {scale: (core, reached)}.

    Found by trying, on one storage host with its quota: a processor that is taken away and given back many times a
    second folds less in a second of its time than one that is not. Other machines on the same hardware make this one's
    memory slower and faster by a tenth and more, for seconds or minutes: so all scales have their turns in each round, no
    single rate decides, and what was found is tried once more. `known`: what was found the last time, which is only tried if
    it still is near enough.
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
    """Cores that a storage node can fold with."""
    return machine.roles["storage"].folding


def jiffies():
    """Seconds that all processors were busy, and all there were, since the start."""
    with open("/proc/stat") as stat:
        numbers = [int(word) for word in stat.readline().split()[1:9]]
    idle = numbers[3] + numbers[4]
    return sum(numbers) - idle, sum(numbers)


class Busy:
    """The share of this machine's processor time taken in a `with`."""

    def __enter__(self):
        self.before = jiffies()
        return self

    def __exit__(self, *_):
        busy, all_ = (after - before for before, after in zip(self.before, jiffies()))
        self.share = busy / max(all_, 1)
