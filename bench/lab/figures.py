"""Writes docs/figures.md from the measurements in bench/results/lab."""

import csv
import json
from statistics import median

import experiment
import judge
from probe import ROOT

HEAD = """# The papers' figures, here

`make figures` makes this page; do not edit it. Each figure is measured on hosts made of network namespaces, shaped links and
processor quotas on one machine ([bench/lab](../bench/lab)). The ratio of one kernel's speed on a core to the speed of a link is
that of the paper. This kernel is the Gaussian filter in figures about it, and SUM in all others. Other kernels have the speed
that Gristmill has on such a core. Files are in the page cache, and not on disks as in the papers. One factor, the *scale*,
multiplies the speed of links and processors and the length of files. So the seconds are those of the described machine. Whoever
shows a figure of this page beside one of real clusters must say how it was made.

The papers' figures are pictures, and we have only the texts. *The paper's text* is a curve made from the numbers in the text, as
each caption says. It shows what the figure must look like if the text is true. *The paper's model* is a curve made from the
paper's equations and rates.

AS is active storage: each server folds its own data. TS is traditional storage: a program with as many ranks as servers reads
and folds. Both are Gristmill, with `--place storage` and `--place client`. Where the captions say so, the program first reads its
parts into memory, as the papers' programs do, and then computes there. DOSAS decides for each request where it runs, and may
decide again; ours is `--place auto`.
"""


def sidecar(result, findings):
    """The JSON that is kept beside the table of an experiment."""
    module = result["module"]
    about = {
        "title": module.TITLE,
        "about": module.__doc__.split("\n\n", 1)[-1].strip() if "\n\n" in module.__doc__ else "",
        "paper": module.PAPER,
        "hosts": result["counted"],
        "scale": result["scale"],
        "shorter": result["shorter"],
        "core": round(result["core"], 5),
        "repeats": result["repeats"],
        "reached": result["reached"],
        "period": result["period"],
        "busy": max(row[5] for row in result["rows"]),
        "machine": result["host"],
        "findings": findings,
    }
    return json.dumps(about, indent=1) + "\n"


def ratios(name, path):
    """Our time over that of the paper's curve, for each curve: the median and the range of its points."""
    module = experiment.load(name)
    curves = {series: curve for series, curve in module.paper().items() if isinstance(curve, dict)}
    ours = {}
    with open(path, newline="") as table:
        for row in csv.DictReader(table):
            # The first line of an x is the x of the paper's curve. All parts of a bar belong to one time.
            series, x = row["series"], row["x"].split("\n")[0]
            if hasattr(module, "STACKED"):
                [series] = curves or [None]
            rounds = ours.setdefault(series, {}).setdefault(x, {})
            rounds[row["repeat"]] = rounds.get(row["repeat"], 0) + float(row["seconds"])
    told = []
    for series, curve in curves.items():
        middle = {x: median(rounds.values()) for x, rounds in ours.get(series, {}).items()}
        each = [middle[str(x)] / seconds for x, seconds in curve.items() if str(x) in middle]
        if each:
            told.append(f"{series} {median(each):.2f} ({min(each):.2f} to {max(each):.2f})")
    return ", ".join(told)


def table_four(results):
    """All judged situations, in the form of the paper's table IV."""
    lines, verdicts = [], []
    for name in experiment.names():
        module = experiment.load(name)
        if not getattr(module, "JUDGED", False) or not (result := experiment.kept(results, name)):
            continue
        what = f"{module.KERNEL} {module.SIZE} MB" if hasattr(module, "KERNEL") else "mixed"
        for x, verdict in judge.judged(result["rows"]).items():
            verdicts.append(verdict)
            over = verdict.over
            right = "-" if verdict.better == judge.TIE else "right" if verdict.right else "**wrong**"
            x = str(x).replace("\n", ", ")
            lines.append(
                f"| {what}, {x} | {verdict.decided} | {verdict.better} | {right} | {over[judge.TS]:.2f} | {over[judge.AS]:.2f} |"
            )
    if not lines:
        return []
    head = [
        "## DOSAS 2012, table IV: decisions\n",
        "*Decided*: where most of the bytes were folded under DOSAS. *Better*: the faster of TS and AS as measured; a tie where "
        "the 95 % interval of their ratio has 1 in it. *Right*: the better one, or a mixture that was as fast as the better one. "
        "The last columns are the time of DOSAS over that of TS and of AS.\n",
        *(f"- {line}" for line in judge.summary(verdicts)),
        "\n| Requests | Decided | Better | Judgement | / TS | / AS |",
        "|---|---|---|---|---|---|",
    ]
    return [*head, *lines, ""]


def page(results):
    """The whole page."""
    parts = [HEAD]
    for name in experiment.names():
        path = results / f"{name}.json"
        if not path.exists():
            continue
        about = json.loads(path.read_text())
        parts.append(f"## {about['title']}\n")
        if about["about"]:
            parts.append(about["about"] + "\n")
        theirs = experiment.theirs(experiment.load(name))
        picture = results.relative_to(ROOT) / f"{name}.png"
        parts.append(f"![{about['title']}](../{picture})\n")
        parts += [f"- {line}" for line in about["findings"]]
        if ratio := ratios(name, results / f"{name}.csv"):
            parts.append(f"- Our time over that of {theirs}, median (and range) of the points: {ratio}")
        if about["paper"]:
            parts.append(f"- {theirs.capitalize()}: {about['paper']}.")
        if about.get("shorter", 1) > 1:
            parts.append(
                f"- Files were up to {about['shorter']} times shorter than said, and seconds are those measured as many times; what "
                "a request takes besides its bytes counts so many times too much."
            )
        period = 1000 * about["period"] * about.get("shorter", 1)
        parts.append(
            f"- Ran on {about['hosts']} at scale {about['scale']:g}, {about['repeats']} rounds: {about['machine']}. A core "
            f"was {about['core']:.3g} of one of this machine's; a node folded at {about['reached'][0]:.2f} of the machine's "
            f"rate before the first round and {about['reached'][1]:.2f} after the last; this machine was busy to "
            f"{about['busy']:.0%} at most. What takes less than {10 * period:.0f} ms may be too fast by up "
            f"to {period:.0f} ms, since a core is shared out in periods of that length.\n"
        )
    parts += table_four(results)
    check = results / "check.json"
    if check.exists():
        parts.append("## Does the scale matter?\n")
        parts += [f"- {line}" for line in json.loads(check.read_text())["findings"]]
        parts.append("")
    return "\n".join(parts)


def write(results):
    (ROOT / "docs" / "figures.md").write_text(page(results))
