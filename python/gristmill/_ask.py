"""Requests to reduce what trees became, and answers in the order of their axes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _batches, _groups
from ._box import most_cells
from ._canonical import Canonical, NotPushed
from ._error_free import distance
from ._errors import DataError
from ._expr import Leaf, Picked
from ._request import Request, labels, placed

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Moments:
    """What one request tells about each cell; see ``array::Op::Totals``, and ``Moments`` for those that are ``None`` of it."""

    #: Elements of a cell, missing ones too.
    size: int
    n: NDArray[Any]
    sum: NDArray[Any]
    m2: Any = None
    min: Any = None
    max: Any = None
    #: What the rounding of the sum left.
    sum_low: Any = None

    @property
    def mean(self) -> NDArray[Any]:
        """The mean, f64; NaN of nothing."""
        with np.errstate(all="ignore"):
            return np.asarray(self.sum.astype(np.float64) / self.n)

    def from_centre(self, centre: NDArray[Any]) -> NDArray[Any]:
        """The sum of the distances of all elements from a number for each cell, f64."""
        return distance(self.sum, 0.0 if self.sum_low is None else self.sum_low, self.n, centre)


def reduced_axes(what: Canonical, axes: tuple[int, ...]) -> tuple[set[int], dict[int, int]]:
    """Which axes of the leaf are reduced, and which are cut into windows of which length, for axes of the whole node."""
    reduced, windows, at = set(), {}, 0
    for axis, window in enumerate(what.split):
        if window is None:
            if at in axes:
                reduced.add(axis)
            at += 1
            continue
        match at in axes, at + 1 in axes:
            case True, True:
                reduced.add(axis)
            case False, True:
                windows[axis] = window
            case _:
                raise NotPushed("windows are not reduced to one number each")
        at += 2
    return reduced, windows


def ask(
    what: Canonical,
    op: str,
    reduced: set[int],
    windows: dict[int, int] | None = None,
    *,
    skipna: bool = True,
    weights: dict[int, NDArray[Any]] | None = None,
    numbers: tuple[float, ...] = (),
) -> dict[str, NDArray[Any]]:
    """The arrays of an answer: axes that are kept, in the order of the leaf. Axes in ``windows`` have a number for each
    window. ``numbers`` are shares of quantiles, of which each is an array, by its place among them."""
    found = _asked(what, op, reduced, windows or {}, skipna, weights or {}, False, numbers)
    assert found is not None
    return found


def known(what: Canonical, op: str, reduced: set[int], windows: dict[int, int]) -> dict[str, NDArray[Any]] | None:
    """The same answer, if it is remembered."""
    return _asked(what, op, reduced, windows, True, {}, True, ())


def _asked(
    what: Canonical,
    op: str,
    reduced: set[int],
    windows: dict[int, int],
    skipna: bool,
    weights: dict[int, NDArray[Any]],
    remembered: bool,
    numbers: tuple[float, ...],
) -> dict[str, NDArray[Any]] | None:
    leaf = what.leaf
    if 0 in leaf.shape:
        raise NotPushed("there is nothing to reduce")
    if leaf.blocks is not None and leaf.member is None and not weights and not numbers:
        of_blocks = _batches.known if remembered else _batches.of_block
        if (found := of_blocks(what, op, reduced, windows, skipna)) is not None:
            return found
    kept = [axis for axis in range(leaf.ndim) if axis not in reduced]
    lengths = {axis: leaf.shape[axis] // windows.get(axis, 1) for axis in kept}
    if prod(lengths.values()) > most_cells(op):
        plain = [axis for axis in kept if axis not in windows and leaf.axes[axis] is not None]
        longest = max(plain, key=lambda axis: lengths[axis], default=None)
        if longest is not None and lengths[longest] > 1:
            half = lengths[longest] // 2
            parts = []
            for part in (slice(0, half), slice(half, lengths[longest])):
                answer = _asked(what.take(longest, part), op, reduced, windows, skipna, weights, remembered, numbers)
                if answer is None:
                    return None
                parts.append(answer)
            at = kept.index(longest)
            return {name: np.concatenate([part[name] for part in parts], at) for name in parts[0]}
    try:
        return _ask(what, op, reduced, windows, skipna, weights, remembered, numbers)
    except DataError:
        if leaf.member is None:
            raise
    # Perhaps the elements of another group allow no answer.
    return _ask(what, op, reduced, windows, skipna, weights, remembered, numbers, alone=True)


def _ask(
    what: Canonical,
    op: str,
    reduced: set[int],
    windows: dict[int, int],
    skipna: bool,
    weights: dict[int, NDArray[Any]],
    remembered: bool,
    numbers: tuple[float, ...],
    *,
    alone: bool = False,
) -> dict[str, NDArray[Any]] | None:
    leaf = what.leaf
    has = [axis for axis, take in enumerate(leaf.takes) if not isinstance(take, int)]
    place = {axis: at for at, axis in enumerate(has)}
    taken = [take.hull() if isinstance(take, Picked) else take for take in leaf.takes]
    groups, axes, of_windows = [], [], []
    grouped: dict[int, int] = {}
    cells = prod(n // windows.get(i, 1) for i, n in enumerate(leaf.shape) if i not in reduced)
    question = what.text, op, tuple(sorted(reduced)), skipna, tuple(what.inputs.variables()), numbers
    # What is sent with one group is for that group.
    of_one = alone or weights or what.inputs.constants
    together = None if of_one else _groups.together(leaf, op, reduced, what.masks, cells, question)
    for i, axis in enumerate(leaf.axes):
        if axis is None:
            if i in what.masks or i in windows or i in weights:
                raise NotPushed("an axis that the file does not have is masked, weighted or cut into windows")
            continue
        take = leaf.takes[axis]
        if i in windows:
            if isinstance(take, Picked):
                raise NotPushed("windows of what is picked")
            of_windows.append((place[axis], windows[i]))
        elif together is not None and i == together.axis:
            grouped[axis], taken[axis] = together.number, together.taken
            groups.append((place[axis], together.labels, together.count))
        elif i in reduced and (isinstance(take, Picked) or i in what.masks):
            if i in weights:
                raise NotPushed("weights of what is picked")
            groups.append((place[axis], labels(take, what.masks.get(i)), 1))
            grouped[axis] = 0
        elif i in reduced:
            axes.append(place[axis])
    request = Request(
        leaf.variable,
        tuple(taken),
        what.text,
        op,
        skipna,
        tuple(sorted(axes)),
        tuple(groups),
        tuple(of_windows),
        tuple((place[axis], values) for i, values in weights.items() if (axis := leaf.axes[i]) is not None),
        numbers,
        what.inputs,
    )
    try:
        found = request.known() if remembered else request.send()
    except DataError as error:
        if picked_cells(leaf, reduced):
            raise NotPushed(f"elements between those that are picked are asked for with them, and {error}") from error
        raise
    if found is None:
        return None
    if numbers:
        found = {str(at): values for at, values in enumerate(found[op])}
    gone = {has[at] for at in axes}
    left = [axis for axis in has if axis not in gone]
    return {name: placed(values, what, left, grouped, reduced) for name, values in found.items()}


def picked_cells(leaf: Leaf, reduced: set[int]) -> bool:
    """Whether an answer is of more cells than were picked: those that lie between them are asked for as well."""
    takes = (leaf.takes[axis] for at, axis in enumerate(leaf.axes) if axis is not None and at not in reduced)
    return any(isinstance(take, Picked) for take in takes)


def moments(
    what: Canonical, op: str, axes: tuple[int, ...], shape: tuple[int, ...], *, remembered: bool = False
) -> Moments | None:
    """The totals or the moments of a node of this shape over some of its axes; ``None`` if only those that are remembered
    are wanted, and there are none."""
    reduced, windows = reduced_axes(what, axes)
    found = known(what, op, reduced, windows) if remembered else ask(what, op, reduced, windows)
    if found is None:
        return None
    found = _unmasked(what, found, reduced)
    more = (found.get(name) for name in ("m2", "min", "max", "sum_low"))
    return Moments(prod(shape[axis] for axis in axes), found["n"], found["sum"], *more)


@dataclass(frozen=True)
class Comoments:
    """What one request tells about the pairs of each cell; see ``array::Op::Comoments``."""

    #: Pairs of a cell, those that are missing too.
    size: int
    n: NDArray[Any]
    x: NDArray[Any]
    x_low: NDArray[Any]
    y: NDArray[Any]
    y_low: NDArray[Any]
    xy: NDArray[Any]


def comoments(what: Canonical, axes: tuple[int, ...], shape: tuple[int, ...]) -> Comoments:
    """The comoments of the two factors of a node of this shape over some of its axes."""
    reduced, windows = reduced_axes(what, axes)
    found = _unmasked(what, ask(what, "comoments", reduced, windows), reduced)
    return Comoments(
        prod(shape[axis] for axis in axes), *(found[name] for name in ("n", "x", "x_low", "y", "y_low", "xy"))
    )


def _unmasked(what: Canonical, found: dict[str, NDArray[Any]], reduced: set[int]) -> dict[str, NDArray[Any]]:
    """An answer whose cells outside the masks of axes that are kept are of nothing."""
    at = 0
    for axis in range(what.leaf.ndim):
        if axis in reduced:
            continue
        if axis in what.masks:
            found = _without(found, what.masks[axis], at)
        at += 1
    return found


def _without(found: dict[str, NDArray[Any]], mask: NDArray[Any], at: int) -> dict[str, NDArray[Any]]:
    """Moments where cells outside a mask of an axis are of nothing."""
    count = found["n"].ndim
    there = mask.reshape([-1 if axis == at else 1 for axis in range(count)])
    return {
        name: np.where(there, values, np.asarray(np.nan if name in ("min", "max") else 0, values.dtype))
        for name, values in found.items()
    }
