"""Sums, means and variances, made of moments."""

from __future__ import annotations

import warnings
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import DataError
from .._expressions.nodes import Const, Node, cast
from .asking import ask, reduced_axes
from .canonical import canonical
from .found_moments import find_moments, find_sums, nan_where
from .not_pushed import NotPushed
from .pairs import remembered_count
from .patterns import match_filled, match_isnan, match_notnan, match_squared_distance

if TYPE_CHECKING:
    from numpy.typing import NDArray


def reduce_sum(node: Node, axes: tuple[int, ...], skipna: bool, _: float = 0) -> NDArray[Any]:
    if (of := match_notnan(node)) is not None:
        return _count(of, axes)[0]
    if (count := remembered_count(node, axes)) is not None:
        return count
    if (of := match_isnan(node)) is not None:
        n, size = _count(of, axes)
        return np.asarray(size - n)
    if (of := match_filled(node)) is not None:
        return reduce_sum(of, axes, True)
    if (of_centre := _match_distance(node, axes)) is not None:
        return _squares(*of_centre, node, axes, skipna)
    have = find_sums(node, axes)
    total = have.sum.astype(node.dtype) if node.dtype.kind == "f" else have.sum
    return total if skipna else nan_where(total, have.n < have.size)


def _count(node: Node, axes: tuple[int, ...]) -> tuple[NDArray[Any], int]:
    """Returns the number of elements that are not missing, and the number of all elements.

    A squared distance is missing if the element or the number is missing.
    """
    of_centre = _match_distance(node, axes)
    if of_centre is None:
        have = find_sums(node, axes)
        return have.n, have.size
    of, centre = of_centre
    at = _numbers_of_cells(centre, node, axes)
    if np.isinf(at).any():
        raise NotPushed("infinities are subtracted")
    have = find_moments(of, axes)
    return np.where(np.isnan(at), 0, have.n), have.size


def _match_distance(node: Node, axes: tuple[int, ...]) -> tuple[Node, Const] | None:
    """Returns ``D`` and ``C`` of ``(D - C)**2`` if ``C`` has one number for each cell, else ``None``."""
    found = match_squared_distance(node)
    if found is None:
        return None
    centre = found[1].value
    differs = (centre.shape[axis - node.ndim] != 1 for axis in axes if node.ndim - axis <= centre.ndim)
    return None if any(differs) else found


def _numbers_of_cells(centre: Const, node: Node, axes: tuple[int, ...]) -> NDArray[Any]:
    """Returns the number of each cell as f64.

    Raises :class:`NotPushed` if there are several for a cell.
    """
    value = np.broadcast_to(centre.value, (1,) * (node.ndim - centre.value.ndim) + centre.value.shape)
    if any(value.shape[axis] != 1 for axis in axes):
        raise NotPushed("what is subtracted differs within a cell")
    return value.squeeze(axes).astype(np.float64)


def _squares(of: Node, centre: Const, node: Node, axes: tuple[int, ...], skipna: bool) -> NDArray[Any]:
    """Returns the sum of squared distances from a number for each cell: ``m2 + n (mean - centre)^2``."""
    at = _numbers_of_cells(centre, node, axes)
    if np.isinf(at).any():
        raise NotPushed("infinities are subtracted")
    have = find_moments(of, axes, spread=True)
    with np.errstate(all="ignore"):
        there = have.m2 + np.where(have.n > 0, have.from_centre(at) ** 2 / have.n, 0.0)
        # An infinity has no distance from the mean, and an infinite distance from other numbers.
        if have.min is not None:
            there = np.where(np.isinf(have.min) | np.isinf(have.max), np.inf, there)
        elif np.any(np.isnan(have.m2) & (have.n > 0)):
            raise NotPushed("there are infinities")
    # As in NumPy, a distance from NaN is missing.
    there = np.where(np.isnan(at) & (have.n > 0), 0.0 if skipna else np.nan, there)
    if not skipna:
        there = nan_where(there, have.n < have.size)
    return there.astype(node.dtype)


def reduce_mean(node: Node, axes: tuple[int, ...], skipna: bool, _: float = 0) -> NDArray[Any]:
    result = node.dtype if node.dtype.kind == "f" else np.dtype(np.float64)
    if (of_centre := _match_distance(node, axes)) is not None:
        of, centre = of_centre
        total = _squares(of, centre, node, axes, skipna)
        n: Any = _count(node, axes)[0] if skipna else prod(node.shape[axis] for axis in axes)
        with np.errstate(all="ignore"):
            return np.asarray(total.astype(np.float64) / n).astype(result)
    try:
        totals = find_sums(node, axes)
    except DataError:
        if node.dtype.kind not in "iu":
            raise
        # The sum overflows 64 bits, and the mean does not.
        what = canonical(node)
        return ask(what, "mean", *reduced_axes(what, axes))["mean"]
    mean = totals.mean
    if skipna and np.any(totals.n == 0):
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=5)
    return np.asarray(mean if skipna else nan_where(mean, totals.n < totals.size)).astype(result)


def reduce_var(node: Node, axes: tuple[int, ...], skipna: bool, ddof: float) -> NDArray[Any]:
    result = node.dtype if node.dtype.kind == "f" else np.dtype(np.float64)
    try:
        have = find_moments(node, axes, spread=True)
    except DataError:
        if node.dtype.kind not in "iu":
            raise
        # The sum overflows 64 bits, and the variance in f64 does not.
        have = find_moments(cast(node, np.dtype(np.float64)), axes, spread=True)
    with np.errstate(all="ignore"):
        if skipna:
            freedom = have.n - ddof
            var = np.where(freedom > 0, have.m2 / freedom, np.nan)
            if np.any(freedom <= 0):
                warnings.warn("Degrees of freedom <= 0 for slice.", RuntimeWarning, stacklevel=5)
        else:
            var = nan_where(have.m2 / np.maximum(have.n - ddof, 0), have.n < have.size)
    return var.astype(result)


def reduce_std(node: Node, axes: tuple[int, ...], skipna: bool, ddof: float) -> NDArray[Any]:
    if (node.dtype if node.dtype.kind == "f" else np.dtype(np.float64)) == np.float32:
        # Round once, at the end.
        have = find_moments(node, axes, spread=True)
        with np.errstate(all="ignore"):
            freedom = have.n - ddof if skipna else np.maximum(have.n - ddof, 0)
            root = np.sqrt(np.where(freedom > 0, have.m2 / freedom, np.nan) if skipna else have.m2 / freedom)
        return np.asarray(root if skipna else nan_where(root, have.n < have.size)).astype(np.float32)
    return np.asarray(np.sqrt(reduce_var(node, axes, skipna, ddof)))


def reduce_nonzero(node: Node, axes: tuple[int, ...], skipna: bool, _: float = 0) -> NDArray[Any]:
    return reduce_sum(cast(node, np.dtype(bool)), axes, False)
