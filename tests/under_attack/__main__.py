"""``python tests/under_attack --help``."""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path[:] = [str(Path(__file__).resolve().parent.parent), *sys.path[1:]]


def main():
    from cluster import Started
    from under_attack import trial
    from under_attack.attacks import ATTACKS

    parser = argparse.ArgumentParser(prog="under_attack", description="Attacks on three nodes, and what another user notices.")
    parser.add_argument("--seconds", type=float, default=60, help="how long they are attacked, and quiet before (60)")
    parser.add_argument("--attacks", default=",".join(ATTACKS), help=f"some of {', '.join(ATTACKS)} (all)")
    parser.add_argument("--alone", action="store_true", help="one attack after another, instead of all at once")
    given = parser.parse_args()
    asked = given.attacks.split(",")
    if not set(asked) <= set(ATTACKS):
        parser.error(f"--attacks {given.attacks}: there are {', '.join(ATTACKS)}")
    failed = False
    for attacks in [[one] for one in asked] if given.alone else [asked]:
        with tempfile.TemporaryDirectory(prefix="under-attack-") as folder, Started(lambda: Path(folder)) as start:
            report = trial.run(start, Path(folder), given.seconds, attacks)
        print(", ".join(attacks), *report.lines(), sep="\n  ", flush=True)
        failed |= bool(report.wrong or report.beyond())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
