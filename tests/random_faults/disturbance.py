"""Faults: a node is killed and started again, or stopped and continued."""

import signal
import threading
from collections import Counter
from random import Random

#: The maximum pause between two faults, and the maximum time for which a node is down or stopped, in seconds. The last is longer
#: than others wait for a node that gives no sign of life.
MAX_PAUSE, MAX_AWAY, MAX_STILL = 1.5, 2.0, 14.0


class Disturbance(threading.Thread):
    """Causes random faults until the trial is over. Then every node runs."""

    def __init__(self, cluster, seed, over):
        super().__init__(name="disturbance")
        self.cluster, self.over = cluster, over
        self.choose = Random(f"faults {seed}")
        self.counts = Counter()
        self.failed = None

    def run(self):
        try:
            while not self.over.wait(self.choose.uniform(0, MAX_PAUSE)):
                number = self.choose.randrange(self.cluster.count)
                if self.choose.random() < 0.6:
                    self.kill(number)
                else:
                    self.stop(number)
        except BaseException as error:
            self.failed = error
            self.over.set()

    def kill(self, number):
        self.cluster.kill(number)
        self.over.wait(self.choose.uniform(0, MAX_AWAY))
        self.cluster.start(number)
        self.counts["entry node killed" if number == 0 else "node killed"] += 1

    def stop(self, number):
        still = self.choose.choice([0.05, 0.5, self.choose.uniform(0, MAX_STILL)])
        self.cluster.send(number, signal.SIGSTOP)
        try:
            self.over.wait(still)
        finally:
            self.cluster.send(number, signal.SIGCONT)
        self.counts["entry node stopped" if number == 0 else "node stopped"] += 1
