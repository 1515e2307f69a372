"""Anomalies: elements minus a number for each cell, and products of anomalies, as in ``cov`` and ``corr`` of xarray.

Subtracting a number from all elements of a cell only shifts its sum, its minimum and its maximum. So the numbers are
not sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import DataError
from .._expressions.nodes import Const, Node
from .error_free import distance
from .moments import Moments
from .not_pushed import NotPushed
from .pairs import are_pair, find_comoments, has_pair_cells
from .patterns import keeps_numbers, match_call

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Sums:
    """The number of elements of each cell, and their sum."""

    n: NDArray[Any]
    sum: NDArray[Any]
    #: Number of elements of a cell, including missing ones.
    size: int

    @property
    def mean(self) -> NDArray[Any]:
        """The mean as f64. NaN for a cell without elements."""
        with np.errstate(all="ignore"):
            return np.asarray(self.sum / self.n)


def moments_of_anomalies(
    node: Node, axes: tuple[int, ...], moments_of: Callable[[Node, tuple[int, ...]], Moments]
) -> Moments:
    """Returns the moments of ``D - C``, computed from the moments of ``D``, if ``C`` has one number for each cell.

    ``moments_of`` returns the moments of a node. Raises :class:`NotPushed` for other nodes.
    """
    distance = _match_distance(node, axes)
    if distance is None:
        raise NotPushed("it is no distance from numbers of each cell")
    of, centre = distance
    have = moments_of(of, axes)
    n = np.where(np.isnan(centre), 0, have.n)
    total = np.where(n > 0, have.from_centre(centre), 0.0)
    return Moments(have.size, n, total, None if have.m2 is None else np.where(n > 0, have.m2, 0.0))


def end_of_anomalies(node: Node, axes: tuple[int, ...], end_of: Callable[[Node], NDArray[Any]]) -> NDArray[Any]:
    """Returns the minimum or maximum of ``D - C``, computed from that of ``D``, rounded as each element would be.

    ``end_of`` returns the minimum or maximum of a node. Raises :class:`NotPushed` for other nodes.
    """
    distance = _match_distance(node, axes)
    if distance is None:
        raise NotPushed("it is no distance from numbers of each cell")
    of, centre = distance
    # Subtract in the type of the difference, which a cast may have widened later.
    within = _drop_neutral_operations(node).dtype
    return np.asarray(end_of(of).astype(within) - centre.astype(within)).astype(node.dtype)


def products_of_anomalies(node: Node, axes: tuple[int, ...]) -> Sums:
    """Returns the sum of ``(A - a) * (B - b)`` for numbers ``a`` and ``b`` of each cell.

    The sum is the comoment of ``A`` and ``B``, plus the product of the distances of the means from ``a`` and ``b``.

    Raises :class:`NotPushed` for other nodes.
    """
    distances = _match_product(node, axes)
    if distances is None:
        raise NotPushed("it is no product of distances from numbers of each cell")
    (a, at_a), (b, at_b) = distances
    have = find_comoments(a, b, axes, node.shape)
    n = np.where(np.isnan(at_a) | np.isnan(at_b), 0, have.n)
    if not np.isfinite(np.where(n > 0, have.xy + have.x + have.y, 0.0)).all():
        raise NotPushed("there are infinities")
    with np.errstate(all="ignore"):
        apart = distance(have.x, have.x_low, have.n, at_a) * (distance(have.y, have.y_low, have.n, at_b) / have.n)
    return Sums(n, np.where(n > 0, have.xy + apart, 0.0), have.size)


def products_of_pair(node: Node, axes: tuple[int, ...]) -> Sums | None:
    """Returns :func:`products_of_anomalies` for the members of a pair, whose comoments are probably in the cache.

    The result is ``None`` for other nodes, and if storage nodes cannot compute it.
    """
    distances = _match_product(node, axes)
    if distances is None or not are_pair(distances[0][0], distances[1][0]) or not has_pair_cells(node, axes):
        return None
    try:
        return products_of_anomalies(node, axes)
    except (NotPushed, DataError):
        return None


def _match_product(node: Node, axes: tuple[int, ...]) -> list[tuple[Node, NDArray[Any]]] | None:
    """Returns ``A``, ``a``, ``B`` and ``b`` of ``(A - a) * (B - b)``, as :func:`_match_distance` does, or ``None``."""
    args = match_call(_drop_neutral_operations(node), "multiply")
    if not args or len(args) != 2:
        return None
    found = [_match_distance(_drop_neutral_operations(arg), axes) for arg in args]
    distances = [distance for distance in found if distance is not None]
    return distances if len(distances) == 2 else None


def _drop_neutral_operations(node: Node) -> Node:
    """Returns a node without operations around it that change no number."""
    while (args := match_call(node, "conjugate", "positive", "cast")) and keeps_numbers(args[0].dtype, node.dtype):
        node = args[0]
    return node


def _match_distance(node: Node, axes: tuple[int, ...]) -> tuple[Node, NDArray[Any]] | None:
    """Returns ``D``, and ``C`` as f64, of ``D - C`` with a constant ``C`` that has one number for each cell, or
    ``None``."""
    args = match_call(_drop_neutral_operations(node), "subtract")
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
