"""Smallest and largest elements, their places, and truth."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import DataError
from .._expressions.nodes import Const, Node, cast
from . import anomalies
from .asking import ask, has_picked_cells, reduced_axes
from .canonical import Canonical, canonical
from .found_moments import ask_all_moments, drop_widening, find_moments, nan_where
from .not_pushed import NotPushed
from .patterns import match_call, match_isnan, match_notnan

if TYPE_CHECKING:
    from numpy.typing import NDArray


def reduce_ends(which: str) -> Callable[..., NDArray[Any]]:
    def extreme(node: Node, axes: tuple[int, ...], skipna: bool, _: float = 0) -> NDArray[Any]:
        filled = _filled_cells(node, axes)
        if filled is not None and filled[2] == filled[2]:
            fill, inner, value = filled
            return np.where(fill, np.asarray(value, node.dtype), extreme(inner, axes, skipna))
        try:
            what = canonical(drop_widening(node), np.dtype(np.int8) if node.dtype == bool else None)
        except NotPushed as error:
            try:
                return anomalies.end_of_anomalies(node, axes, lambda inner: extreme(inner, axes, skipna))
            except NotPushed:
                raise error from None
        have = ask_all_moments(node, axes, remembered=not what.masks) if what.masks or not what.leaf.blocks else None
        if have is not None:
            values: NDArray[Any] = getattr(have, which)
            values = values if skipna else nan_where(values, have.n < have.size)
        else:
            values = ask(what, which, *reduced_axes(what, axes), skipna=skipna)[which]
        if skipna and node.dtype.kind == "f" and np.any(np.isnan(values)):
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=5)
        return values.astype(node.dtype)

    return extreme


def reduce_truth(name: str, node: Node, axes: tuple[int, ...]) -> NDArray[Any]:
    if (of := match_isnan(node)) is not None:
        have = find_moments(of, axes)
        return have.n == 0 if name == "all" else have.n < have.size
    if (of := match_notnan(node)) is not None:
        have = find_moments(of, axes)
        return have.n > 0 if name == "any" else have.n == have.size
    what = canonical(node)
    if what.masks:
        raise NotPushed("what is masked is asked for its truth")
    return ask(what, name, *reduced_axes(what, axes), skipna=False)[name]


def _filled_cells(node: Node, axes: tuple[int, ...]) -> tuple[NDArray[Any], Node, Any] | None:
    """Matches ``where(C, E, c)`` with a constant condition that is the same within each cell.

    Returns where it is false, ``E`` and ``c``, or ``None``.
    """
    args = match_call(node, "where")
    if not args or not isinstance(args[0], Const) or not isinstance(args[2], Const) or args[0].weak:
        return None
    there = np.broadcast_to(args[0].value, (1,) * (node.ndim - args[0].value.ndim) + args[0].value.shape)
    if there.dtype != bool or args[1].shape != node.shape or args[2].scalar is None:
        return None
    if any(there.shape[axis] != 1 for axis in axes):
        return None
    return ~there.squeeze(axes), cast(args[1], node.dtype), args[2].scalar


def reduce_place(name: str, node: Node, axes: tuple[int, ...], skipna: bool) -> NDArray[Any]:
    """Returns the position of the minimum or maximum. xarray fills cells whose elements are all missing first."""
    fill = None
    if (filled := _filled_cells(node, axes)) is not None and filled[2] == filled[2]:
        fill, node, _ = filled
    what = canonical(node)
    if what.masks or any(what.split):
        raise NotPushed("places are not told within windows or masks")
    order = [axis for axis in (what.leaf.axes[at] for at in axes) if axis is not None]
    if order != sorted(order):
        raise NotPushed("places are counted in the order of the file")
    if fill is None or not fill.any():
        try:
            return ask(what, name, set(axes), skipna=skipna)[name]
        except DataError as error:
            raise ValueError("All-NaN slice encountered") from error
        except NotPushed:
            # All elements of a cell between the selected cells may be missing.
            if not skipna or not has_picked_cells(what.leaf, set(axes)):
                raise
    nowhere: Any = False if fill is None else fill
    # A missing element loses against all others, so that cells without elements have an answer, too.
    worst = "inf" if name == "argmin" else "(-inf)"
    text = what.text or "x"
    have = find_moments(node, axes)
    # If a cell has only infinities, their sum is infinite.
    if np.any(np.isinf(have.sum) & (have.n < have.size)) or not skipna:
        raise NotPushed("an infinity cannot be told from what is missing")
    if np.any((have.n == 0) & ~np.asarray(nowhere)):
        raise ValueError("All-NaN slice encountered")
    text = f"where(isnan({text}), {worst}, {text})"
    lost = Canonical(what.leaf, text, what.dtype, {}, what.split, what.inputs)
    return np.where(nowhere, 0, ask(lost, name, set(axes), skipna=False)[name])
