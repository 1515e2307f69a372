"""The differences that have a reason. Each entry is as narrow as possible."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import programs


@dataclass(frozen=True)
class Known:
    """A class of differences. ``is_that`` decides from the case and the difference of one way."""

    name: str
    reason: str
    is_that: Callable[..., bool]


def raised(kind, *words):
    """Whether Gristmill raised this exception, with one of these words in the message."""

    def told(case, difference):
        error = difference.error
        return type(error).__name__ == kind and any(word in str(error) for word in words)

    return told


def used(case):
    """The variables whose names are in the program."""
    return (one for one in case.made.variables if f"'{one.name}'" in case.text)


def narrow_scale(case, difference):
    """Whether the program uses a variable of integers that its integer scale's type cannot hold."""

    def has(one):
        scale = getattr(one.attrs.get("scale_factor"), "dtype", np.dtype("f8"))
        return scale.kind in "iu" and one.values.dtype.kind in "iu" and np.promote_types(one.values.dtype, scale) != scale

    return difference.error is None and any(map(has, used(case)))


def rounded_fill(case, difference):
    """Whether the program uses a variable with a scale of f4 and elements with more digits than f4 has. Its missing value is not
    an f4, or some elements are rounded to it."""

    def has(one):
        scaled = getattr(one.attrs.get("scale_factor"), "dtype", None) == np.float32
        fills = [one.attrs[name] for name in ("_FillValue", "missing_value") if name in one.attrs]
        return one.values.dtype.itemsize >= 4 and scaled and any(rounds(one.values, fill) for fill in fills)

    def rounds(values, fill):
        narrow = np.float32(fill)
        return narrow != fill or bool(((values.astype("f4") == narrow) != (values == fill)).any())

    return type(difference.error).__name__ != "PanicException" and any(map(has, used(case)))


def quantile_of_nothing(case, difference):
    """Whether one side has a quantile as f8 and the other as f4, and nothing else differs."""
    types = ("dtype: float64, expected float32", "dtype: float32, expected float64")
    return "quantile(" in case.text and all(said.endswith(types) for said in difference.said)


def place_of_missing(case, difference):
    """Whether the program asks for the index of the smallest or largest element where some elements are missing and others
    infinite."""

    def both(step_at):
        x = programs.run(case.program.steps[:step_at], case.theirs)
        each = x.data_vars.values() if hasattr(x, "data_vars") else [x]
        values = [np.asarray(one.values) for one in each if one.dtype.kind == "f"]
        return any(np.isnan(one).any() and np.isinf(one).any() for one in values)

    asked = [at for at, step in enumerate(case.program.steps) if re.search(r"\.(arg|idx)(min|max)\(", step.text)]
    return difference.error is None and any(at > 0 and both(at) for at in asked)


def narrow_weights(case, difference):
    """Whether the sum of the weights, or of the weighted elements, is beyond the integer type in which xarray adds them up."""
    import xarray as xr

    names = {"ds": case.theirs, "np": np, "xr": xr}
    for step in case.program.steps:
        if "by" in step.more:
            weights = eval(step.more["by"], dict(names))
            if weights.dtype.kind in "iu":
                x = names["x"]
                each = [one.values for one in (x.data_vars.values() if hasattr(x, "data_vars") else [x])]
                most = max((float(np.nanmax(np.abs(one.astype("f8")), initial=0)) for one in each), default=0.0)
                held = min([np.iinfo(one.dtype).max for one in [*each, weights] if one.dtype.kind in "iu"])
                if float(np.abs(weights.values.astype("f8")).sum()) * max(most, 1) > held:
                    return difference.error is None
        programs.run([step], case.theirs, names)
    return False


def dates_in_memory(case, difference):
    """Whether dask refused to join objects, and the program uses a variable of booleans to find them."""
    refused = raised("NotImplementedError", "auto rechunking with object dtype")(case, difference)
    found = re.search(r"\.idx(min|max)\(", case.text) is not None
    return refused and found and any(one.values.dtype.kind == "b" for one in used(case))


KNOWN = [
    Known(
        "sums of 64-bit integers that overflow",
        "Gristmill raises DataError where NumPy wraps around: docs/python/numbers.md",
        raised("DataError", "beyond 64 bits"),
    ),
    Known(
        "spreads of huge numbers",
        "the squares of values beyond 2^500 are beyond f64; Gristmill says so, and NumPy gives infinity or NaN",
        raised("DataError", "below 2^500"),
    ),
    Known(
        "integers beyond their scale",
        "xarray brings integers to the type of an integer scale, and loses those that it does not hold; Gristmill keeps them",
        narrow_scale,
    ),
    Known(
        "missing values that are no f4",
        "of elements with a scale in f4 xarray makes f4 before it looks for missing values, and finds none, or too many",
        rounded_fill,
    ),
    Known(
        "quantiles of which the first is of nothing",
        "NumPy's quantiles of f4 along an axis are f8, but f4 if all elements of the first cell are missing; Gristmill's do not "
        "depend on what a cell holds",
        quantile_of_nothing,
    ),
    Known(
        "weights that overflow",
        "xarray adds up integer weights, and elements by them, in their own type; what wraps around is no number of anything",
        narrow_weights,
    ),
    Known(
        "places beside infinities",
        "where all elements that are not missing are infinite NumPy takes the place of a missing one, and Gristmill that of the "
        "infinity: docs/python/numbers.md",
        place_of_missing,
    ),
    Known(
        "dates joined with blocks",
        "variables that are no numbers, as those of booleans, are read when the file is opened, also with chunks; so dates that "
        "are found by them are in memory, and dask joins no objects in memory with blocks",
        dates_in_memory,
    ),
]


def explained(case, difference):
    """The entry that explains a difference, or None."""
    return next((known for known in KNOWN if known.is_that(case, difference)), None)
