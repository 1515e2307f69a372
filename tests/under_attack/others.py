"""The commands of another user, and their durations."""

import json
import threading
import time

import numpy as np

KIB, MIB = 1 << 10, 1 << 20
NUMBERS = np.arange(8 * MIB, dtype="f8")  # 64 MiB
SMALL = np.random.default_rng(5).bytes(64 * KIB)
SUM = "35184367894528"  # the sum of all numbers, exactly
#: Seconds after which a command counts as hung. The durations are measured, but they decide nothing.
HUNG = 300


class Bob(threading.Thread):
    """Repeats one command until it is told to stop."""

    def __init__(self, name, cluster, env, args, right):
        super().__init__(name=name, daemon=True)
        self.cluster, self.env, self.args, self.right = cluster, env, args, right
        self.over = threading.Event()
        self.seconds, self.wrong = [], []

    def run(self):
        while not self.over.is_set():
            begun = time.monotonic()
            try:
                done = self.cluster.grist(*self.args, env=self.env, timeout=HUNG)
            except Exception as error:
                self.wrong.append(f"{self.name}: {error!r}")
                continue
            self.seconds.append(time.monotonic() - begun)
            if done.returncode != 0 or not self.right(done.stdout):
                self.wrong.append(f"{self.name}: {done.returncode} {done.stderr.decode()[:300]} {done.stdout[:100]}")

    def stop(self):
        self.over.set()
        self.join()


def all_of(cluster, env):
    """One thread for each command of the user."""
    total = lambda out: str(json.loads(out)["result"]["sum"]).partition(".")[0] == SUM
    return [
        Bob("ls", cluster, env, ("ls", cluster.url("/")), lambda out: b"small" in out),
        Bob("get 64 KiB", cluster, env, ("get", cluster.url("/small"), "-"), lambda out: out == SMALL),
        Bob("sum 64 MiB", cluster, env,
            ("run", "sum", cluster.url("/sums"), "--type", "f64", "--place", "storage", "--json"), total),
    ]  # fmt: skip


def during(cluster, env, seconds):
    """Runs a user for some seconds. Returns the durations of each command, and a list of what went wrong."""
    users = all_of(cluster, env)
    for user in users:
        user.start()
    time.sleep(seconds)
    for user in users:
        user.stop()
    return {user.name: user.seconds for user in users}, [one for user in users for one in user.wrong]
