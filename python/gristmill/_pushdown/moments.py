"""Counts, sums and moments of the cells of a reduction, by one request."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .asking import ask, ask_memory, reduced_axes
from .canonical import Canonical
from .error_free import distance

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Moments:
    """The answer of a request for each cell, as ``array::Op::Moments``.

    Fields that are ``None`` are not in ``Totals``.
    """

    #: Number of elements of a cell, including missing ones.
    size: int
    n: NDArray[Any]
    sum: NDArray[Any]
    m2: Any = None
    min: Any = None
    max: Any = None
    #: Rounding error of the sum.
    sum_low: Any = None

    @property
    def mean(self) -> NDArray[Any]:
        """The mean as f64. NaN for a cell without elements."""
        with np.errstate(all="ignore"):
            return np.asarray(self.sum.astype(np.float64) / self.n)

    def from_centre(self, centre: NDArray[Any]) -> NDArray[Any]:
        """Returns the sum of all elements minus ``centre``, which has a number for each cell, as f64."""
        return distance(self.sum, 0.0 if self.sum_low is None else self.sum_low, self.n, centre)


def ask_moments(
    what: Canonical, op: str, axes: tuple[int, ...], shape: tuple[int, ...], *, remembered: bool = False
) -> Moments | None:
    """Returns the totals or the moments of a node of this shape over some of its axes.

    With ``remembered`` nothing is sent; the result is ``None`` if the answer is not in the cache.
    """
    reduced, windows = reduced_axes(what, axes)
    found = ask_memory(what, op, reduced, windows) if remembered else ask(what, op, reduced, windows)
    if found is None:
        return None
    found = _clear_masked_cells(what, found, reduced)
    more = (found.get(name) for name in ("m2", "min", "max", "sum_low"))
    return Moments(prod(shape[axis] for axis in axes), found["n"], found["sum"], *more)


@dataclass(frozen=True)
class Comoments:
    """The answer of a request for the pairs of each cell, as ``array::Op::Comoments``."""

    #: Number of pairs of a cell, including missing ones.
    size: int
    n: NDArray[Any]
    x: NDArray[Any]
    x_low: NDArray[Any]
    y: NDArray[Any]
    y_low: NDArray[Any]
    xy: NDArray[Any]
    x_m2: NDArray[Any]
    y_m2: NDArray[Any]

    def swapped(self) -> Comoments:
        """Returns the comoments of y and x."""
        x, y = (self.x, self.x_low), (self.y, self.y_low)
        return Comoments(self.size, self.n, *y, *x, self.xy, self.y_m2, self.x_m2)


def ask_comoments(
    what: Canonical, axes: tuple[int, ...], shape: tuple[int, ...], *, remembered: bool = False
) -> Comoments | None:
    """Returns the comoments of the two factors of a node of this shape over some of its axes.

    With ``remembered`` nothing is sent; the result is ``None`` if the answer is not in the cache.
    """
    reduced, windows = reduced_axes(what, axes)
    op = "comoments"
    found = ask_memory(what, op, reduced, windows) if remembered else ask(what, op, reduced, windows)
    if found is None:
        return None
    found = _clear_masked_cells(what, found, reduced)
    names = ("n", "x", "x_low", "y", "y_low", "xy", "x_m2", "y_m2")
    return Comoments(prod(shape[axis] for axis in axes), *(found[name] for name in names))


def _clear_masked_cells(what: Canonical, found: dict[str, NDArray[Any]], reduced: set[int]) -> dict[str, NDArray[Any]]:
    """Clears the cells that are masked along axes that are not reduced."""
    at = 0
    for axis in range(what.leaf.ndim):
        if axis in reduced:
            continue
        if axis in what.masks:
            found = _clear_cells(found, what.masks[axis], at)
        at += 1
    return found


def _clear_cells(found: dict[str, NDArray[Any]], mask: NDArray[Any], at: int) -> dict[str, NDArray[Any]]:
    """Clears the cells outside a mask of an axis, as if they had no elements."""
    count = found["n"].ndim
    there = mask.reshape([-1 if axis == at else 1 for axis in range(count)])
    return {
        name: np.where(there, values, np.asarray(np.nan if name in ("min", "max") else 0, values.dtype))
        for name, values in found.items()
    }
