"""Builds the papers' machines on this machine: hosts made of network namespaces, shaped links and processor quotas.

    python bench/lab run EXPERIMENT...    measure; CSV and PNG go to bench/results/lab
    python bench/lab check                measure whether the result depends on the scale
    python bench/lab figures              write docs/figures.md from the measurements
    python bench/lab draw [EXPERIMENT...] draw the pictures again from the measurements
    python bench/lab list                 list the experiments
    python bench/lab down                 remove what a killed lab has left
"""

import argparse
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import check  # noqa: E402
import data  # noqa: E402
import draw  # noqa: E402
import experiment  # noqa: E402
import figures  # noqa: E402
import hosts  # noqa: E402
import told  # noqa: E402
from probe import ROOT, release_binary  # noqa: E402


RESULTS = ROOT / "bench/results/lab"


def parser():
    whole = argparse.ArgumentParser(
        prog="bench/lab", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = whole.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the experiments")
    down = commands.add_parser("down", help="remove what labs that were killed have left; running ones, too")
    down.add_argument("--data", type=Path, default=data.DEFAULT_DIR, help="their data folder (default: %(default)s)")
    commands.add_parser("figures", help="write docs/figures.md from what was measured")
    again = commands.add_parser("draw", help="draw pictures again from what was measured")
    again.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="names as 'list' has them (default: all)")
    again.add_argument("--results", type=Path, default=RESULTS, help="where CSV and PNG are (default: %(default)s)")
    run = commands.add_parser("run", help="measure experiments")
    run.add_argument("experiments", nargs="+", metavar="EXPERIMENT", help="names as 'list' has them, or 'all'")
    run.add_argument("--scale", type=scale, help="of links, processors and files (default: the experiment's)")
    for command in (run, commands.add_parser("check", help="measure whether the result depends on the scale")):
        command.add_argument(
            "--quick", action="store_true", help="small files, few hosts, one round: does it all work?"
        )
        command.add_argument("--repeats", type=positive, help="rounds (default: the experiment's)")
        command.add_argument("--data", type=Path, default=data.DEFAULT_DIR, help="data folder (default: %(default)s)")
        results = "for CSV and PNG (default: bench/results/lab; --quick: target/bench-quick)"
        command.add_argument("--results", type=Path, help=results)
        for name in ("gristmill", "gristmill-probe"):
            option = f"--{name.split('-')[-1]}"
            command.add_argument(option, type=Path, default=release_binary(name), help="default: %(default)s")
    return whole


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rounds")
    return int(text)


def scale(text):
    """A scale such as 0.25 or 1/4."""
    over, _, under = text.partition("/")
    try:
        value = float(over) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        value = 0
    if not 0 < value <= 16:
        raise argparse.ArgumentTypeError(f"{text!r} is no scale such as 1/4, above 0 and at most 16")
    return value


def main():
    options = parser().parse_args()
    if options.command == "list":
        for name in experiment.names():
            print(f"{name:24}{experiment.load(name).TITLE}")
        return
    if options.command == "down":
        for name in hosts.sweep(everything=True, data=options.data):
            print(f"removed {name}")
        return
    if options.command == "figures":
        figures.write(RESULTS)
        print("wrote docs/figures.md")
        return
    if options.command == "draw":
        drawn(options.experiments or experiment.names(), options.results)
        return
    modules = []
    if options.command == "run":
        names = experiment.names() if options.experiments == ["all"] else options.experiments
        modules = [experiment.load(name) for name in names]
    if why := hosts.missing():
        print(f"# lab: skipped; {why}")
        return
    for binary in (options.gristmill, options.probe):
        if not binary.is_file():
            raise SystemExit(f"{binary} is missing; build it with: cargo build --release -p {binary.name}")
    if options.results is None:
        options.results = ROOT / "target/bench-quick" if options.quick else RESULTS
    for directory in (options.results, options.data):
        directory.mkdir(parents=True, exist_ok=True)
    told.listen()
    hosts.sweep(data=options.data)
    if options.command == "check":
        found = list(check.report(check.run(options), options.results / "check.csv"))
        (options.results / "check.json").write_text(json.dumps({"findings": found}, indent=1) + "\n")
        print("\n".join(found))
        return
    for module in modules:
        measured(module, options)


def drawn(names, results):
    """Draws the pictures of these experiments again, from their measurements."""
    for name in names:
        experiment.load(name)
        if result := experiment.kept(results, name):
            draw.picture(results / f"{name}.png", result)
            print(f"drew {name}.png")
        else:
            print(f"{name} was not measured: there is no {name}.csv in {results}")


def measured(module, options):
    name = module.__name__.split(".")[-1]
    result = experiment.run(name, options)
    experiment.write(options.results / f"{name}.csv", result)
    draw.picture(options.results / f"{name}.png", result)
    table, busy = experiment.table(result["rows"])
    for series, points in table.items():
        at = ", ".join(f"{str(x).replace(chr(10), ' ')}: {seconds:.3f} s" for x, (seconds, _) in points.items())
        print(f"{series}: {at}")
    by_rows = getattr(result["module"], "JUDGED", False) or getattr(result["module"], "ROWS", False)
    findings = list(result["module"].findings(result["rows"] if by_rows else table))
    print("\n".join(findings))
    print(f"# this machine was busy to {busy:.0%} at most, load {os.getloadavg()[0]:.1f}", flush=True)
    (options.results / f"{name}.json").write_text(figures.sidecar(result, findings))


if __name__ == "__main__":
    main()
