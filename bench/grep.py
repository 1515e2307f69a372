"""Counts matching lines, compared with ripgrep: two commands, with the start of the process included for both."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import data
import pairs
from probe import ROOT, release_binary

PATTERNS = {
    "literal": data.LITERAL,
    "regex with a literal in it": "took 1[0-9]{2}7 ms",
    "regex without literals": "[A-Z]{12,}K",
}


def find_rg(given):
    own = ROOT / ".tools" / "bin" / "rg"
    found = given or (own if own.is_file() else shutil.which("rg"))
    if not found:
        raise SystemExit("there is no ripgrep in .tools/bin or on PATH; name one with --rg PATH")
    return str(found)


def output_of(command, ok=(0,)):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in ok:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def timed_command(command, ok=(0,), cores=None):
    """A side that runs a command from its start to its end. If cores are given, it runs only on these."""

    def run():
        before = os.sched_getaffinity(0)
        # A child inherits the cores of its parent.
        if cores is not None:
            os.sched_setaffinity(0, cores)
        try:
            begun = time.perf_counter()
            output_of(command, ok)
            return time.perf_counter() - begun
        finally:
            os.sched_setaffinity(0, before)

    return run


def main():
    options = pairs.arguments(
        __doc__,
        size={"type": data.parse_size, "help": "bytes of the text (default: 512MiB; --quick: 32MiB)"},
        rg={"help": "ripgrep (default: .tools/bin/rg, then PATH)"},
        gristmill={"type": Path, "default": release_binary("gristmill"), "help": "the command (default: %(default)s)"},
    )
    if not options.gristmill.is_file():
        raise SystemExit(f"{options.gristmill} is missing; build it with: cargo build --release")
    size = options.size or (32 if options.quick else 512) * data.MIB
    rg = find_rg(options.rg)
    version = output_of([rg, "--version"]).split("\n")[0]
    path = data.make(options.data, "text", size)
    pairs.warm(path)
    one_core = {min(os.sched_getaffinity(0))}
    sides = {}
    for name, pattern in PATTERNS.items():
        ours = [str(options.gristmill), "run", "grep", str(path)]
        ours += ["--param", f"pattern={pattern}", "--param", "count_only=true"]
        theirs = [rg, "--no-config", "-c", "-e", pattern, str(path)]
        # Without a match ripgrep prints nothing and its exit code is 1.
        count = json.loads(output_of([*ours, "--json"]))["result"]["count"]
        expected = int(output_of(theirs, ok=(0, 1)) or 0)
        pairs.require(count == expected, f"{pattern!r}: {count} lines by gristmill, {expected} by ripgrep")
        print(f"# {name}: {pattern!r} matches {count} lines", flush=True)
        sides[f"gristmill, {name}"] = timed_command(ours)
        sides[f"gristmill on one core, {name}"] = timed_command(ours, cores=one_core)
        sides[f"rg, {name}"] = timed_command(theirs, ok=(0, 1))
    times = pairs.rounds(sides, options.rounds)
    ratios = []
    for name in PATTERNS:
        ratios.append(pairs.ratio(times, f"gristmill, {name}", f"rg, {name}", 1.3))
        ratios.append(pairs.ratio(times, f"gristmill on one core, {name}", f"rg, {name}"))
    title = f"Counting matching lines of {data.size_name(size)} of text"
    note = f"{version}, one thread for one file"
    pairs.report("grep", title, options, times, dict.fromkeys(times, size), ratios, note)


if __name__ == "__main__":
    main()
