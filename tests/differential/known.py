"""Differences that have a reason: each as narrow as it can be said."""

from collections.abc import Callable
from dataclasses import dataclass

from .ways import OF_DASK


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


def values_of(*calls):
    """Whether numbers differ in a program with one of these calls."""

    def told(case, difference):
        return any("values:" in one for one in difference.said) and any(call in case.text for call in calls)

    return told


def nothing_picked(case, difference):
    here = raised("ValueError", "zero-size array to reduction", "remapped shapes")(case, difference)
    return here and any(call in case.text for call in (".weighted(", "xr.dot(", ".coarsen("))


def scalars_of_dask(case, difference):
    refused = raised("NotImplementedError", "only works along an axis")(case, difference)
    refused = refused or raised("ValueError", "Provided chunks have")(case, difference)
    return refused and difference.way in OF_DASK


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
    Known("scalars of dask", "to be mended: medians and quantiles of variables without dimensions raise", scalars_of_dask),
    Known(
        "correlations",
        "to be mended: cells with large numbers, and digits of deviations",
        values_of("xr.corr(", "xr.cov("),
    ),
    Known("deviations", "to be mended: digits of deviations of many cells", values_of(".std(", ".var(")),
]


def explained(case, difference):
    """The entry that explains a difference, or None."""
    return next((known for known in KNOWN if known.is_that(case, difference)), None)
