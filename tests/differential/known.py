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


def nothing_picked(case, difference):
    here = raised("ValueError", "zero-size array to reduction", "remapped shapes")(case, difference)
    return here and any(call in case.text for call in (".weighted(", "xr.dot(", ".coarsen("))


def whole_scale(case, difference):
    """Whether types differ, or what follows from them, where a scale is a whole number."""
    scales = (one.attrs.get("scale_factor") for one in case.made.variables if f"'{one.name}'" in case.text)
    return any(getattr(scale, "dtype", np.dtype("f8")).kind in "iu" for scale in scales) and difference.error is None


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
    Known("nothing is picked", "to be mended: reductions of nothing raise", nothing_picked),
    Known("scales of whole numbers", "to be mended: f8 for the type that xarray makes of them", whole_scale),
]


def explained(case, difference):
    """The entry that explains a difference, or None."""
    return next((known for known in KNOWN if known.is_that(case, difference)), None)
