"""Runs every benchmark program and collects their output in summary.txt beside the results.

    python bench/all.py [--quick] [--data DIR] [--results DIR] [--probe PATH] [--gristmill PATH] [--rg PATH] [PROGRAM ...]
"""

import argparse
import subprocess
import sys
from pathlib import Path

from probe import ROOT

# Each program, and its options that not all programs have.
PROGRAMS = {
    "sum": ["probe"],
    "kernels": ["probe"],
    "grep": ["gristmill", "rg"],
    "growth": ["probe"],
    "points": ["probe"],
    "image": ["probe"],
    "schedule": [],
    **dict.fromkeys(("variables", "variables_link", "variables_chunks", "python_link", "verify", "busy", "outside", "outside_cache", "attached"), ["gristmill"]),
    "reductionist_api": ["gristmill"],
    **dict.fromkeys(("cephfs", "ceph_gateway", "object_class", "ceph_hosts", "ceph_kill"), ["gristmill"]),
    "python_fields": [],
    "python_blocks": [],
    **dict.fromkeys(
        ("nodes", "placement", "link", "transfer", "latency", "normal", "small", "scale", "collectives", "reductionist"),
        ["probe", "gristmill"],
    ),
}
# A quick run leaves these out. They need programs that are not installed everywhere, and a small run of them shows little.
FULL_ONLY = ["reductionist", "cephfs", "ceph_gateway", "object_class", "ceph_hosts", "ceph_kill"]
SHARED = ["data", "results"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    for name in [*SHARED, "probe", "gristmill", "rg"]:
        parser.add_argument(f"--{name}")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)} (default: all)")
    given = vars(parser.parse_args())
    if unknown := set(given["programs"]) - set(PROGRAMS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    results = Path(given["results"] or ROOT / ("target/bench-quick" if given["quick"] else "bench/results"))
    given["results"] = str(results)
    results.mkdir(parents=True, exist_ok=True)
    failed = []
    with open(results / "summary.txt", "w") as summary:
        usual = [program for program in PROGRAMS if not (given["quick"] and program in FULL_ONLY)]
        for program in given["programs"] or usual:
            command = [sys.executable, str(Path(__file__).with_name(f"{program}.py"))]
            command += ["--quick"] if given["quick"] else []
            for name in [*SHARED, *PROGRAMS[program]]:
                command += [f"--{name}", given[name]] if given[name] else []
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
                for line in running.stdout:
                    print(line, end="", flush=True)
                    summary.write(line)
                    summary.flush()
            if running.returncode != 0:
                failed.append(program)
            summary.write("\n")
            print(flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
