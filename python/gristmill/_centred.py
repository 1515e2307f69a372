"""Distances from numbers of each cell, where these are too many to travel: anomalies, and the products of anomalies that
``cov`` and ``corr`` of xarray add.

What is subtracted from all elements of a cell moves its sum and its ends and nothing else, so it need not be sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ._ask import Moments
from ._canonical import called, same_numbers
from ._expr import Const, Node, apply, cast
from ._inputs import NotPushed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    class Found(Protocol):
        """Finds how many elements a node has, and their sum; all moments if ``spread``."""

        def __call__(self, node: Node, axes: tuple[int, ...], *, spread: bool = False) -> Moments: ...


#: How many times larger than their difference two sums may be whose difference is told, by the type of the result: it is
#: known to some 2^-36 of the largest that it can be, of f32 to more than that has.
CANCELS = {np.dtype(np.float64): 2.0**16, np.dtype(np.float32): 2.0**26}

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
    with np.errstate(all="ignore"):
        total = np.where(n > 0, have.sum - have.n * centre, 0.0)
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


def products(node: Node, axes: tuple[int, ...], found: Found) -> Sums:
    """The sum of ``(A - a) * (B - b)``, for numbers ``a`` and ``b`` of each cell, from the sums of three arrays without them.

    Raises :class:`NotPushed` for anything else, and where too much would cancel.
    """
    args = called(_plain(node), "multiply")
    parts = [_distance(_plain(arg), axes) for arg in args] if args and len(args) == 2 else [None]
    first, second = parts[0], parts[-1]
    if first is None or second is None:
        raise NotPushed("it is no product of distances from numbers of each cell")
    (a, at_a), (b, at_b) = first, second
    # About the middle of all cells, so that little cancels.
    near_a, middle_a = _about(a, at_a)
    near_b, middle_b = _about(b, at_b)
    both = found(apply("multiply", np.multiply, [near_a, near_b]), axes)
    only_a = found(_where_there(b, near_a), axes, spread=True)
    only_b = found(_where_there(a, near_b), axes, spread=True)
    n = np.where(np.isnan(at_a) | np.isnan(at_b), 0, both.n)
    with np.errstate(all="ignore"):
        if not np.isfinite(np.where(n > 0, both.sum + only_a.sum + only_b.sum, 0.0)).all():
            raise NotPushed("there are infinities")
        about_means = only_a.sum * only_b.sum / n
        most = np.sqrt(only_a.m2 * only_b.m2)
        lost = np.maximum(np.abs(both.sum), np.abs(about_means)) > CANCELS.get(node.dtype, 0.0) * most
        if np.any(lost & (n > 0) & (most > 0)):
            raise NotPushed("sums of products would cancel")
        together = np.clip(both.sum - about_means, -most, most)
        apart = (only_a.sum / n + middle_a - at_a) * (only_b.sum / n + middle_b - at_b)
        return Sums(n, np.where(n > 0, together + n * apart, 0.0), both.size)


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


def _about(node: Node, centre: NDArray[Any]) -> tuple[Node, float]:
    """A node, as f64, less the mean of the numbers of all cells; and that."""
    there = centre[~np.isnan(centre)]
    middle = float(there.mean()) if there.size else 0.0
    return apply("subtract", np.subtract, [cast(node, F64), Const(middle)]), middle


def _where_there(other: Node, node: Node) -> Node:
    """A node where another is not missing."""
    missing = apply("isnan", np.isnan, [other])
    return apply("where", np.where, [missing, Const(np.float64(np.nan)), node])
