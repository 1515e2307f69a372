"""``python tests/random_faults --help``."""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path[:] = [str(Path(__file__).resolve().parent.parent), *sys.path[1:]]


def main():
    parser = argparse.ArgumentParser(prog="random_faults", description="Work on four nodes that are killed and stopped at random.")
    parser.add_argument("--seed", help="of the work and the faults; without one a new seed is drawn and printed")
    parser.add_argument("--seconds", type=float, default=600, help="how long nodes are disturbed, in each trial (600)")
    parser.add_argument("--trials", type=int, default=1, help="how many, each with a cluster of its own (1)")
    given = parser.parse_args()
    from cluster import Started
    from random_faults import trial

    first = given.seed if given.seed is not None else str(random.SystemRandom().randrange(10**9))
    failed = False
    for number in range(given.trials):
        seed = first if number == 0 else f"{first}+{number}"
        print(f"seed {seed}", flush=True)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="random-faults-") as folder, Started(lambda: Path(folder)) as start:
            report = trial.run(start, Path(folder), seed, given.seconds)
        print(*report.lines(), f"in {time.monotonic() - begun:.0f} s", sep="\n", flush=True)
        failed |= bool(report.wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
