"""Pairs of arrays in which an element is missing in both if it is missing in one, as in ``cov`` and ``corr`` of xarray.

xarray computes the mean and the standard deviation of each array and the mean of their products by one reduction after
the other. The first of them requests the comoments of the pair. They answer the others, too. This is only done for several
cells. A single number is exact, which comoments are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import DataError
from .._expressions.nodes import Const, Node, apply, cast
from .canonical import Canonical, canonical
from .moments import Comoments, Moments, ask_comoments
from .not_pushed import NotPushed
from .patterns import keeps_numbers, match_call, match_notnan
from .request_limits import most_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


@dataclass(frozen=True)
class Member:
    """One of two arrays, where neither of them is missing: ``where(~isnan(A) & ~isnan(B), A, nan)``, or with ``B``."""

    a: Node
    b: Node
    #: Whether it is ``B``.
    is_b: bool


def match_both(node: Node) -> tuple[Node, Node] | None:
    """Returns ``A`` and ``B`` of ``~isnan(A) & ~isnan(B)``, or ``None``."""
    args = match_call(node, "logical_and", "bitwise_and")
    if not args or len(args) != 2:
        return None
    a, b = match_notnan(args[0]), match_notnan(args[1])
    if a is None or b is None or a.key == b.key or not a.shape == b.shape == node.shape:
        return None
    return (a, b) if a.dtype.kind == b.dtype.kind == "f" else None


def match_member(node: Node) -> Member | None:
    """Returns the member of a pair that a node is, without casts that change no number, or ``None``."""
    if node.dtype not in (F32, F64):
        return None
    while (wider := match_call(node, "cast")) and keeps_numbers(wider[0].dtype, node.dtype):
        node = wider[0]
    args = match_call(node, "where")
    if not args:
        return None
    condition, of, other = args
    pair = match_both(condition)
    if pair is None or not isinstance(other, Const) or other.scalar is None or other.scalar == other.scalar:
        return None
    keys = [one.key for one in pair]
    return Member(*pair, of.key == keys[1]) if of.key in keys else None


def are_pair(x: Node, y: Node) -> bool:
    """Returns whether two nodes are the two members of one pair."""
    of_x, of_y = match_member(x), match_member(y)
    if of_x is None or of_y is None or of_x.is_b == of_y.is_b:
        return False
    return (of_x.a.key, of_x.b.key) == (of_y.a.key, of_y.b.key)


def find_comoments(x: Node, y: Node, axes: tuple[int, ...], shape: tuple[int, ...]) -> Comoments:
    """Returns the comoments of two arrays of this shape. If they are a pair, they are also those of its members.

    Raises :class:`NotPushed` if storage nodes cannot compute them.
    """
    member = match_member(x)
    if member is None or not are_pair(x, y):
        return _ask(x, y, axes, shape)
    found = _ask(member.a, member.b, axes, shape)
    return found.swapped() if member.is_b else found


def moments_of_member(node: Node, axes: tuple[int, ...]) -> Moments | None:
    """Returns the moments of a member of a pair, by a request for the comoments of the pair.

    The result is ``None`` for other nodes, and if there is no such request: for a single number, for more cells than one request
    may have, and for elements that are too large to be squared.
    """
    member = match_member(node)
    if member is None or not has_pair_cells(node, axes):
        return None
    try:
        found = _ask(member.a, member.b, axes, node.shape)
    except (NotPushed, DataError):
        return None
    found = found.swapped() if member.is_b else found
    return Moments(found.size, found.n, found.x, found.x_m2, sum_low=found.x_low)


def remembered_count(node: Node, axes: tuple[int, ...]) -> NDArray[Any] | None:
    """Returns the number of true elements of ``~isnan(A) & ~isnan(B)`` if the comoments of the pair are in the cache."""
    pair = match_both(node)
    if pair is None or not has_pair_cells(node, axes):
        return None
    try:
        found = ask_comoments(_product(*pair), axes, node.shape, remembered=True)
    except (NotPushed, DataError):
        return None
    return None if found is None else found.n


def has_pair_cells(node: Node, axes: tuple[int, ...]) -> bool:
    """Returns whether the reduction has several cells, and no more than one request for comoments may have."""
    cells = prod(length for axis, length in enumerate(node.shape) if axis not in axes)
    return 1 < cells <= most_cells("comoments")


def _ask(a: Node, b: Node, axes: tuple[int, ...], shape: tuple[int, ...]) -> Comoments:
    found = ask_comoments(_product(a, b), axes, shape)
    assert found is not None
    return found


def _product(a: Node, b: Node) -> Canonical:
    return canonical(apply("multiply", np.multiply, [cast(a, F64), cast(b, F64)]))
