"""Pictures of experiments: our points with their range, and the paper's curve beside them."""

import textwrap

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogFormatter

import experiment

# The width of a legend in letters, including its line symbols, up to which entries fit side by side.
WIDE = 135

COLORS = {
    "TS": "#d1730b",
    "AS": "#1f5fa8",
    "DOSAS": "#b0245c",
    "TS, same node,": "#3a8a3a",
    "AS, one core": "#7a3fa0",
    "AS, image to the client": "#3a8a3a",
    "reading": "#d1730b",
    "computing": "#1f5fa8",
    "storage": "#1f5fa8",
    "client": "#d1730b",
    "auto": "#b0245c",
}


def color_of(name):
    """The colour of the scheme. It is paler for all kernels except SUM."""
    if name in COLORS:
        return COLORS[name]
    scheme, _, kernel = name.rpartition(" ")
    color = COLORS.get(scheme or name, "#4c4c4c")
    return color if kernel in ("SUM", name) else (*matplotlib.colors.to_rgb(color), 0.55)


def picture(path, result):
    module = result["module"]
    series = list(dict.fromkeys(row[0] for row in result["rows"]))
    band = getattr(module, "BANDWIDTH", None)
    width = getattr(module, "WIDTH", 12.6 if band else 8.6)
    figure, all_axes = plt.subplots(1, 2 if band else 1, figsize=(width, 5.6), layout="constrained", squeeze=False)
    axes = all_axes[0][0]
    # A title over both panels would lie under the legend.
    axes.set_title(module.TITLE, fontsize=13, loc="left" if band else "center")
    # The drawn value of a row comes after series, x and round.
    value = experiment.COLUMNS.index(getattr(module, "VALUE", "seconds"))
    rows = [[*row[:3], row[value]] for row in result["rows"]]
    draw = bars if isinstance(rows[0][1], str) else lines
    draw = stacks if hasattr(module, "STACKED") else draw
    draw(axes, module, series, rows)
    axes.set_ylabel(module.Y)
    if band:
        per_second = lambda n, seconds: n * band / seconds / 1e6
        curves = {
            name: {n: per_second(n, seconds) for n, seconds in curve.items()} for name, curve in module.paper().items()
        }
        lines(all_axes[0][1], module, series, [[*row[:3], per_second(row[1], row[3])] for row in rows], curves)
        all_axes[0][1].set_ylabel("MB/s of all requests together")
    for each in all_axes[0]:
        each.set_xlabel(module.X)
        each.grid(color="#e3e3e3", lw=0.7)
        each.set_axisbelow(True)
        each.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    columns = max(1, min(4, WIDE // max(len(label) + 8 for label in labels)))
    figure.legend(handles, labels, fontsize=9, loc="outside upper center", ncols=columns, frameon=False)
    foot = f"{result['host']}\n{result['counted']} on it, scale {result['scale']:g}; median and range of {result['repeats']} runs"
    if result["shorter"] > 1:
        foot += f"\nfiles up to {result['shorter']} times shorter than said, seconds as many times longer than measured"
    foot += f"\n{experiment.theirs(module).capitalize()}: {module.PAPER}" if module.paper() else ""
    figure.supxlabel("\n".join(wrapped(foot)), fontsize=8, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def wrapped(text, width=125):
    return [line for part in text.split("\n") for line in textwrap.wrap(part, width)]


def lines(axes, module, series, rows, curves=None):
    curves = module.paper() if curves is None else curves
    for name in series:
        color = color_of(name)
        xs = sorted({row[1] for row in rows if row[0] == name})
        each = [[row[3] for row in rows if row[0] == name and row[1] == x] for x in xs]
        middle = [np.median(values) for values in each]
        axes.plot(xs, middle, "o-", color=color, label=f"{name}, ours")
        axes.fill_between(xs, [min(v) for v in each], [max(v) for v in each], color=color, alpha=0.2, lw=0)
        curve = curves.get(name)
        if curve:
            axes.plot(
                list(curve), list(curve.values()), "--x", color=color, lw=1.2, ms=4, label=f"{name}, {experiment.theirs(module)}"
            )
    if module.LOG:
        axes.set_xscale("log", base=2)
        xs = sorted({row[1] for row in rows})
        axes.set_xticks(xs, [f"{x:g}" for x in xs])
        axes.xaxis.minorticks_off()
    if module.LOG is True:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(LogFormatter())
    else:
        axes.set_ylim(0)


def bars(axes, module, series, rows):
    """Bars of a ratio for each x. The numbers of the paper's text are a dashed line."""
    xs = list(dict.fromkeys(row[1] for row in rows))
    width = 0.8 / len(series)
    base = {x: np.median([row[3] for row in rows if row[:2] == [module.RELATIVE_TO, x]]) for x in xs}
    for number, name in enumerate(series):
        at = np.arange(len(xs)) + (number - (len(series) - 1) / 2) * width
        values = [[row[3] / base[x] for row in rows if row[0] == name and row[1] == x] for x in xs]
        middle = np.array([np.median(v) if v else np.nan for v in values])
        low = middle - [min(v) if v else np.nan for v in values]
        high = np.array([max(v) if v else np.nan for v in values]) - middle
        color = color_of(name)
        axes.bar(at, middle, width * 0.9, yerr=[low, high], color=color, capsize=3, label=f"{name}, ours")
    for (name, level), dash in zip(module.paper().items(), ("--", ":", "-.")):
        axes.axhline(level, ls=dash, lw=1.4, color="#333333", label=name)
    axes.set_xticks(range(len(xs)), xs, fontsize=8 if any("\n" in str(x) for x in xs) else None)


def stacks(axes, module, series, rows):
    """One bar for each x, made of the medians of all series. The share of the first series is written into it. The range is that
    of the sum. Numbers of the paper's text are marks at an x, or lines."""
    xs = list(dict.fromkeys(row[1] for row in rows))
    each = {(name, x): [row[3] for row in rows if row[:2] == [name, x]] for name in series for x in xs}
    sums = {x: [sum(parts) for parts in zip(*(each[name, x] for name in series))] for x in xs}
    middle = {at: float(np.median(values)) for at, values in each.items()}
    whole = {x: sum(middle[name, x] for name in series) for x in xs}
    unit = whole if module.STACKED == "share" else dict.fromkeys(xs, 1)
    below = np.zeros(len(xs))
    for name in series:
        part = np.array([middle[name, x] / unit[x] for x in xs])
        axes.bar(range(len(xs)), part, 0.6, bottom=below, color=color_of(name), label=f"{name}, ours")
        below += part
    for place, x in enumerate(xs):
        share = f"{middle[series[0], x] / whole[x]:.0%} {series[0]}"
        axes.annotate(share, (place, below[place]), (0, 5), textcoords="offset points", ha="center", fontsize=9)
    if module.STACKED != "share":
        least = [below[place] - min(sums[x]) for place, x in enumerate(xs)]
        most = [max(sums[x]) - below[place] for place, x in enumerate(xs)]
        spread = [np.clip(least, 0, None), np.clip(most, 0, None)]
        axes.errorbar(range(len(xs)), below, yerr=spread, fmt="none", ecolor="#333333", capsize=3)
    told = dict(module.paper())
    for name, curve in [(name, curve) for name, curve in told.items() if isinstance(curve, dict)]:
        at = [(place, curve[first_line(x)]) for place, x in enumerate(xs) if first_line(x) in curve]
        axes.plot(*zip(*at), "x", color="#111111", ms=9, mew=2, label=f"{name}, {experiment.theirs(module)}")
        del told[name]
    for (name, level), dash in zip(told.items(), ("--", ":", "-.")):
        axes.axhline(level, ls=dash, lw=1.4, color="#333333", label=name)
    axes.set_xticks(range(len(xs)), xs, fontsize=8 if any("\n" in str(x) for x in xs) else None)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.06)


def first_line(x):
    return str(x).split("\n")[0]
