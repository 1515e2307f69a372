"""Runs random programs with Gristmill and with xarray: ``python tests/differential --help``."""

import argparse
import random
import sys
from pathlib import Path

sys.path[:] = [str(Path(__file__).resolve().parent.parent), *sys.path[1:]]


def main():
    parser = argparse.ArgumentParser(
        prog="differential",
        description="Runs random programs over random data sets with Gristmill and with xarray, and tells what differs.",
    )
    parser.add_argument("--seed", help="what the programs are made of; without one a new seed is drawn and printed")
    parser.add_argument("--programs", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--number", type=int, help="this program alone")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program (0)")
    parser.add_argument("--jobs", type=int, help="processes (one for each processor)")
    every = "plain,blocks,pieces,nodes,storage,far"
    parser.add_argument("--ways", default=every, help=f"some of {every}")
    parser.add_argument("--no-scripts", action="store_true", help="do not make small scripts of what differs")
    parser.add_argument("--everything", action="store_true", help="tell what is on the list of known differences too")
    given = parser.parse_args()
    from differential import runner, ways

    import gristmill as gm

    asked = tuple(given.ways.split(","))
    if not set(asked) <= set(ways.WAYS):
        parser.error(f"--ways {given.ways}: there are {', '.join(ways.WAYS)}")
    seed = given.seed if given.seed is not None else str(random.SystemRandom().randrange(10**9))
    first, programs = (given.first, given.programs) if given.number is None else (given.number, 1)
    print(f"seed {seed}", flush=True)
    nodes = gm.up(nodes=2) if set(asked) & set(ways.ON_NODES) else None
    try:
        plan = runner.Plan(seed, programs, first, asked, nodes and nodes.url, not given.no_scripts, given.everything)
        summary = runner.run(plan, 1 if given.number is not None else given.jobs, tell)
    finally:
        if nodes is not None:
            nodes.stop()
    print(told(summary))
    return 1 if summary.unexplained else 0


def tell(one, summary, seconds):
    """Prints each difference at once, and the progress now and then."""
    for text in one.unexplained:
        print(f"\n{text}", flush=True)
    if summary.programs % 2000 < one.programs:
        print(f"{summary.programs} programs in {seconds:.0f} s, {len(summary.unexplained)} differ", flush=True)


def told(summary):
    lines = [f"{summary.programs} programs, of which xarray refuses {summary.refused}"]
    lines += [f"{count} on the list: {name}" for name, count in summary.explained.most_common()]
    lines.append(f"{len(summary.unexplained)} differences that are not on the list")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
