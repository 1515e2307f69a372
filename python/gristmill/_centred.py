"""Distances from numbers of each cell, where these are too many to travel: anomalies, and the products of anomalies that
``cov`` and ``corr`` of xarray add.

What is subtracted from all elements of a cell moves its sum and its ends and nothing else, so it need not be sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._ask import Moments, comoments
from ._canonical import called, canonical, same_numbers
from ._error_free import distance
from ._expr import Const, Node, apply, cast
from ._inputs import NotPushed

if TYPE_CHECKING:
    from numpy.typing import NDArray

F64 = np.dtype(np.float64)


@dataclass(frozen=True)
class Sums:
    """How many elements each cell has, and their sum."""

    n: NDArray[Any]
    sum: NDArray[Any]
    #: Elements of a cell, missing ones too.
    size: int

    @property
    def mean(self) -> NDArray[Any]:
        """The mean, f64; NaN of nothing."""
        with np.errstate(all="ignore"):
            return np.asarray(self.sum / self.n)


def moved(node: Node, axes: tuple[int, ...], found: Callable[[Node, tuple[int, ...]], Moments]) -> Moments:
    """How many elements ``D - C`` has, their sum, and squares if these of ``D`` are found, from those of ``D``, for a ``C`` with one
    number for each cell.

    Raises :class:`NotPushed` for anything else.
    """
    distance = _distance(node, axes)
    if distance is None:
        raise NotPushed("it is no distance from numbers of each cell")
    of, centre = distance
    have = found(of, axes)
    n = np.where(np.isnan(centre), 0, have.n)
    total = np.where(n > 0, have.from_centre(centre), 0.0)
    return Moments(have.size, n, total, None if have.m2 is None else np.where(n > 0, have.m2, 0.0))


def end(node: Node, axes: tuple[int, ...], end_of: Callable[[Node], NDArray[Any]]) -> NDArray[Any]:
    """The smallest or the largest of ``D - C`` from that of ``D``, rounded as each element would be.

    Raises :class:`NotPushed` for anything else.
    """
    distance = _distance(node, axes)
    if distance is None:
        raise NotPushed("it is no distance from numbers of each cell")
    of, centre = distance
    # Each element is subtracted in the type of the difference, which may have been widened since.
    within = _plain(node).dtype
    return np.asarray(end_of(of).astype(within) - centre.astype(within)).astype(node.dtype)


def products(node: Node, axes: tuple[int, ...]) -> Sums:
    """The sum of ``(A - a) * (B - b)``, for numbers ``a`` and ``b`` of each cell, from the comoments of ``A`` and ``B``: what the
    centres add is the product of the distances of the means from them, which no other cell has a part in.

    Raises :class:`NotPushed` for anything else.
    """
    args = called(_plain(node), "multiply")
    parts = [_distance(_plain(arg), axes) for arg in args] if args and len(args) == 2 else [None]
    first, second = parts[0], parts[-1]
    if first is None or second is None:
        raise NotPushed("it is no product of distances from numbers of each cell")
    (a, at_a), (b, at_b) = first, second
    have = comoments(canonical(apply("multiply", np.multiply, [cast(a, F64), cast(b, F64)])), axes, node.shape)
    n = np.where(np.isnan(at_a) | np.isnan(at_b), 0, have.n)
    if not np.isfinite(np.where(n > 0, have.xy + have.x + have.y, 0.0)).all():
        raise NotPushed("there are infinities")
    with np.errstate(all="ignore"):
        apart = distance(have.x, have.x_low, have.n, at_a) * (distance(have.y, have.y_low, have.n, at_b) / have.n)
    return Sums(n, np.where(n > 0, have.xy + apart, 0.0), have.size)


def _plain(node: Node) -> Node:
    """A node without what changes no number of it."""
    while (args := called(node, "conjugate", "positive", "cast")) and same_numbers(args[0].dtype, node.dtype):
        node = args[0]
    return node


def _distance(node: Node, axes: tuple[int, ...]) -> tuple[Node, NDArray[Any]] | None:
    """``D`` and, as f64, ``C`` of ``D - C`` with an array ``C`` that is here and has one number for each cell."""
    args = called(_plain(node), "subtract")
    if not args or not isinstance(args[1], Const) or args[1].weak or args[0].dtype.kind != "f":
        return None
    of, centre = args[0], args[1].value
    if of.shape != node.shape or centre.dtype.kind not in "fiu":
        return None
    centre = centre.reshape((1,) * (node.ndim - centre.ndim) + centre.shape)
    if any(centre.shape[axis] != 1 for axis in axes) or np.isinf(centre).any():
        return None
    cells = tuple(length for axis, length in enumerate(node.shape) if axis not in axes)
    return of, np.broadcast_to(centre.squeeze(axes).astype(np.float64), cells)
