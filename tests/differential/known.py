"""Differences that have a reason: each as narrow as it can be said."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Known:
    """A class of differences. ``is_that`` tells it by the case and by what one way did."""

    name: str
    reason: str
    is_that: Callable[..., bool]


def raised(kind, *words):
    """Whether Gristmill raised that, with one of these words in the message."""

    def told(case, difference):
        error = difference.error
        return type(error).__name__ == kind and any(word in str(error) for word in words)

    return told


def used(case):
    """The variables that a program names."""
    return (one for one in case.made.variables if f"'{one.name}'" in case.text)


def narrow_scale(case, difference):
    """Whether a variable of the program has integers that the type of their integer scale does not hold."""

    def has(one):
        scale = getattr(one.attrs.get("scale_factor"), "dtype", np.dtype("f8"))
        return scale.kind in "iu" and one.values.dtype.kind in "iu" and np.promote_types(one.values.dtype, scale) != scale

    return difference.error is None and any(map(has, used(case)))


def rounded_fill(case, difference):
    """Whether a variable of the program has elements of more digits than f4, a scale in f4, and a missing value that is no f4."""

    def has(one):
        scaled = getattr(one.attrs.get("scale_factor"), "dtype", None) == np.float32
        fills = [one.attrs[name] for name in ("_FillValue", "missing_value") if name in one.attrs]
        return one.values.dtype.itemsize >= 4 and scaled and any(np.float32(fill) != fill for fill in fills)

    return type(difference.error).__name__ != "PanicException" and any(map(has, used(case)))


def quantile_of_nothing(case, difference):
    """Whether a quantile of f4 is f8, and nothing else differs."""
    types = ("dtype: float64, expected float32",)
    return "quantile(" in case.text and all(said.endswith(types) for said in difference.said)


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
        "of elements with a scale in f4 xarray makes f4 before it looks for missing values, and finds none: numbers come for them",
        rounded_fill,
    ),
    Known(
        "quantiles of which the first is of nothing",
        "NumPy's quantiles of f4 along an axis are f8, but f4 if all elements of the first cell are missing; Gristmill's do not "
        "depend on what a cell holds",
        quantile_of_nothing,
    ),
]


def explained(case, difference):
    """The entry that explains a difference, or None."""
    return next((known for known in KNOWN if known.is_that(case, difference)), None)
