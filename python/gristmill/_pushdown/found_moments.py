"""The choice between totals, moments, and answers that are in the cache."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._expressions.nodes import Node
from . import anomalies
from .canonical import canonical
from .moments import Moments, ask_moments
from .not_pushed import NotPushed
from .pairs import match_member, moments_of_member
from .patterns import match_call

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Types in which moments are requested. f32 becomes f64, so that sums in f64, as of dask, are the same request.
_MOMENT_TYPES: dict[Any, np.dtype[Any]] = {
    np.dtype(bool): np.dtype(np.int8),
    np.dtype(np.float32): np.dtype(np.float64),
}

#: Reductions of blocks that needed moments after totals. Requests for further blocks get the moments at once.
_spread_families: set[Hashable] = set()
MAX_SPREAD = 1024


def drop_widening(node: Node) -> Node:
    """Returns a node without a cast from f32 to f64.

    Totals of f32 are f64, and extremes are elements, so the cast is useless.
    """
    args = match_call(node, "cast")
    return args[0] if args and node.dtype == np.float64 and args[0].dtype == np.float32 else node


def find_moments(node: Node, axes: tuple[int, ...], *, spread: bool = False, with_ends: bool = False) -> Moments:
    """Returns the totals of a node, or with ``spread`` all its moments, which cost more.

    Moments in the cache serve for totals, too. Only with ``with_ends`` the moments certainly have the minimum and the maximum.
    Raises :class:`NotPushed` if storage nodes cannot compute them.
    """
    if not with_ends and match_member(node) is not None:
        found = _remembered_moments(node, axes) or moments_of_member(node, axes)
        if found is not None:
            return found
    try:
        return _find_moments(node, axes, spread)
    except NotPushed as error:
        try:
            return anomalies.moments_of_anomalies(node, axes, partial(find_moments, spread=True))
        except NotPushed:
            raise error from None


def _find_moments(node: Node, axes: tuple[int, ...], spread: bool) -> Moments:
    what = canonical(drop_widening(node))
    blocks = what.leaf.blocks
    of_blocks = blocks and (what.leaf.variable.key, blocks.key, what.text, axes)
    if of_blocks and spread:
        if len(_spread_families) >= MAX_SPREAD:
            _spread_families.clear()
        _spread_families.add(of_blocks)
    spread = spread or of_blocks in _spread_families
    have = ask_all_moments(node, axes, remembered=not spread) if spread or of_blocks is None else None
    have = have or ask_moments(what, "totals", axes, node.shape)
    assert have is not None
    return have


def _remembered_moments(node: Node, axes: tuple[int, ...]) -> Moments | None:
    try:
        return ask_all_moments(node, axes, remembered=True)
    except NotPushed:
        return None


def ask_all_moments(node: Node, axes: tuple[int, ...], *, remembered: bool) -> Moments | None:
    what = canonical(node, _MOMENT_TYPES.get(node.dtype))
    return ask_moments(what, "moments", axes, node.shape, remembered=remembered)


def find_sums(node: Node, axes: tuple[int, ...]) -> Moments | anomalies.Sums:
    """Returns the number of elements that are not missing, and their sum."""
    if (of_pair := anomalies.products_of_pair(node, axes)) is not None:
        return of_pair
    try:
        return find_moments(node, axes)
    except NotPushed as error:
        try:
            return anomalies.products_of_anomalies(node, axes)
        except NotPushed:
            raise error from None


def nan_where(values: NDArray[Any], missing: NDArray[Any]) -> NDArray[Any]:
    return np.where(missing, np.asarray(np.nan, values.dtype), values) if values.dtype.kind == "f" else values
