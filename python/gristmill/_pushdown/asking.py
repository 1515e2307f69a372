"""Requests for canonical forms: splitting, groups, masks, windows, and answers in the order of the leaf."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import DataError
from .._expressions import groupings
from .._expressions.nodes import Leaf
from .._expressions.takes import IndexList
from . import batches
from .canonical import Canonical
from .not_pushed import NotPushed
from .request import Request, arrange_answer, group_labels
from .request_limits import most_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray


def reduced_axes(what: Canonical, axes: tuple[int, ...]) -> tuple[set[int], dict[int, int]]:
    """Returns the axes of the leaf that are reduced, and the length of the windows of the others.

    ``axes`` are axes of the node, in which a cut axis counts twice. Raises :class:`NotPushed` if a window is not
    reduced.
    """
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
    """Reduces a canonical form and returns the arrays of the answer by name.

    The arrays have the axes that are not reduced, in the order of the leaf. An axis in ``windows`` has an element for
    each window. ``numbers`` are fractions of quantiles; the name of each array is then the position of its fraction.

    Raises :class:`NotPushed` if storage nodes do not support it, and :class:`DataError` if the data allow no answer.
    """
    found = _answer(what, op, reduced, windows or {}, skipna, weights or {}, False, numbers)
    assert found is not None
    return found


def ask_memory(what: Canonical, op: str, reduced: set[int], windows: dict[int, int]) -> dict[str, NDArray[Any]] | None:
    """Returns the answer of :func:`ask` if it is in the cache, else ``None``. Nothing is sent."""
    return _answer(what, op, reduced, windows, True, {}, True, ())


def _answer(
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
    if leaf.blocks is not None and leaf.group is None and not weights and not numbers:
        of_blocks = batches.remembered_answer if remembered else batches.answer_for_block
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
                answer = _answer(what.take(longest, part), op, reduced, windows, skipna, weights, remembered, numbers)
                if answer is None:
                    return None
                parts.append(answer)
            at = kept.index(longest)
            return {name: np.concatenate([part[name] for part in parts], at) for name in parts[0]}
    try:
        return _ask(what, op, reduced, windows, skipna, weights, remembered, numbers)
    except DataError:
        if leaf.group is None:
            raise
    # The elements of another group may be those that allow no answer.
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
    taken = [take.hull() if isinstance(take, IndexList) else take for take in leaf.takes]
    groups, axes, of_windows = [], [], []
    grouped: dict[int, int] = {}
    cells = prod(n // windows.get(i, 1) for i, n in enumerate(leaf.shape) if i not in reduced)
    question = what.text, op, tuple(sorted(reduced)), skipna, tuple(what.inputs.variables()), numbers
    # Weights and constants that are sent belong to one group.
    of_one = alone or weights or what.inputs.constants
    together = None if of_one else groupings.find_group_batch(leaf, op, reduced, what.masks, cells, question)
    for i, axis in enumerate(leaf.axes):
        if axis is None:
            if i in what.masks or i in windows or i in weights:
                raise NotPushed("an axis that the file does not have is masked, weighted or cut into windows")
            continue
        take = leaf.takes[axis]
        if i in windows:
            if isinstance(take, IndexList):
                raise NotPushed("windows of what is picked")
            of_windows.append((place[axis], windows[i]))
        elif together is not None and i == together.axis:
            grouped[axis], taken[axis] = together.number, together.taken
            groups.append((place[axis], together.labels, together.count))
        elif i in reduced and (isinstance(take, IndexList) or i in what.masks):
            if i in weights:
                raise NotPushed("weights of what is picked")
            groups.append((place[axis], group_labels(take, what.masks.get(i)), 1))
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
        found = request.remembered_answer() if remembered else request.send()
    except DataError as error:
        if has_picked_cells(leaf, reduced):
            raise NotPushed(f"elements between those that are picked are asked for with them, and {error}") from error
        raise
    if found is None:
        return None
    if numbers:
        found = {str(at): values for at, values in enumerate(found[op])}
    gone = {has[at] for at in axes}
    left = [axis for axis in has if axis not in gone]
    return {name: arrange_answer(values, what, left, grouped, reduced) for name, values in found.items()}


def has_picked_cells(leaf: Leaf, reduced: set[int]) -> bool:
    """Returns whether an axis that is not reduced is selected by indices.

    The request then has cells in between, too.
    """
    takes = (leaf.takes[axis] for at, axis in enumerate(leaf.axes) if axis is not None and at not in reduced)
    return any(isinstance(take, IndexList) for take in takes)
