"""The other kernels compared with NumPy, for the same question about the same file."""

import math

import numpy as np

import data
import pairs
from probe import Probe

BINS = 100
RANGE = (-5.0, 5.0)
# In a standard normal distribution 0.1 % of the values lie above SPARSE, and half lie above DENSE.
SPARSE, DENSE = 3.0902, 0.0

# Both are far above the rounding error of NumPy's mean and variance of these data, and far below a wrong answer.
MEAN_TOLERANCE, VAR_TOLERANCE = 1e-12, 1e-9


def minmax(a):
    i, j = a.argmin(), a.argmax()
    return float(a[i]), int(i), float(a[j]), int(j)


def rows_above(a, threshold):
    index = np.flatnonzero(a > threshold)
    return index, a[index]


# Name: (kernel, parameters, rows, function with NumPy).
QUESTIONS = {
    "minmax": ("minmax", {}, None, minmax),
    "mean": ("mean", {}, None, lambda a: a.mean()),
    "var": ("var", {}, None, lambda a: (a.mean(), a.var())),
    "histogram with range": (
        "histogram",
        {"bins": str(BINS), "range": f"{RANGE[0]}:{RANGE[1]}"},
        None,
        lambda a: np.histogram(a, BINS, RANGE),
    ),
    "histogram": ("histogram", {"bins": str(BINS)}, None, lambda a: np.histogram(a, BINS)),
    "lookup 0.1 %": ("lookup", {"where": f"> {SPARSE}"}, "collect", lambda a: rows_above(a, SPARSE)),
    "lookup 50 %": ("lookup", {"where": f"> {DENSE}"}, "collect", lambda a: rows_above(a, DENSE)),
    "count": ("count", {}, None, lambda a: a.size),
}


def agree(name, answer, theirs):
    """Whether gristmill's answer is NumPy's. Where NumPy rounds, the tolerances above hold."""
    ours = answer["result"]
    match name:
        case "minmax":
            return (ours["min"], ours["min_index"], ours["max"], ours["max_index"]) == theirs
        case "mean":
            return math.isclose(ours["mean"], theirs, rel_tol=0, abs_tol=MEAN_TOLERANCE)
        case "var":
            mean, var = theirs
            return math.isclose(ours["mean"], mean, rel_tol=0, abs_tol=MEAN_TOLERANCE) and math.isclose(
                ours["var"], var, rel_tol=VAR_TOLERANCE
            )
        case "histogram" | "histogram with range":
            counts, edges = theirs
            return ours["counts"] == counts.tolist() and ours["edges"] == edges.tolist()
        case "count":
            return ours["count"] == theirs
        case _:
            index, values = theirs
            pairs_sum = np.multiply(index.astype(np.uint64), values.view(np.uint64)).sum(dtype=np.uint64)
            rows = {"count": len(index), "ascending": True, "pairs": str(pairs_sum)}
            return ours["count"] == len(index) and answer["rows"] == rows


def main():
    options = pairs.arguments(__doc__, size=pairs.SIZE, lanes=pairs.LANES, probe=pairs.PROBE)
    size = options.size or (64 * data.MIB if options.quick else data.GIB)
    path = data.make(options.data, "normal", size)
    pairs.warm(path)
    sides = {}
    with Probe(options.probe) as probe:
        for name, (kernel, params, rows, numpy_does) in QUESTIONS.items():

            def run(kernel=kernel, params=params, rows=rows):
                return probe.run(kernel, path, type="f64", params=params, lanes=options.lanes, rows=rows)

            answer = run()
            pairs.require(agree(name, answer, numpy_does(np.fromfile(path))), f"{name}: {answer}")
            sides[f"gristmill {name}"] = lambda run=run: run()["seconds"]
            sides[f"numpy.fromfile {name}"] = pairs.timed(lambda does=numpy_does: does(np.fromfile(path)))
            if name == "count":
                # NumPy knows the size of a mapping without reading it.
                continue
            sides[f"numpy.memmap {name}"] = pairs.timed(lambda does=numpy_does: does(np.memmap(path, "<f8", "r")))
        times = pairs.rounds(sides, options.rounds)
    ratios = []
    for name in QUESTIONS:
        ratios.append(pairs.ratio(times, f"gristmill {name}", f"numpy.fromfile {name}", 1.0))
        if f"numpy.memmap {name}" in times:
            ratios.append(pairs.ratio(times, f"gristmill {name}", f"numpy.memmap {name}"))
    title = f"Kernels over {data.size_name(size)} of f64, {options.lanes} lanes"
    note = f"NumPy {np.__version__}, one thread"
    pairs.report("kernels", title, options, times, dict.fromkeys(times, size), ratios, note)


if __name__ == "__main__":
    main()
