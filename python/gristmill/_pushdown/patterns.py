"""Patterns in trees.

xarray and dask express reductions that leave out missing elements by such patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._expressions.nodes import Apply, Const, Node, cast

if TYPE_CHECKING:
    from numpy.typing import NDArray


def match_call(node: Node, *names: str) -> tuple[Node, ...] | None:
    """Returns the arguments of a node if it is one of these operations, else ``None``."""
    return node.args if isinstance(node, Apply) and node.name in names else None


def keeps_numbers(before: np.dtype[Any], after: np.dtype[Any]) -> bool:
    """Returns whether a cast changes no number: it converts a float to a float that is at least as wide."""
    return before.kind == after.kind == "f" and after.itemsize >= before.itemsize


def match_isnan(node: Node) -> Node | None:
    """Returns ``D`` of ``isnan(D)``, or ``None``."""
    args = match_call(node, "isnan")
    return args[0] if args else None


def match_notnan(node: Node) -> Node | None:
    """Returns ``D`` of ``~isnan(D)``, or ``None``."""
    args = match_call(node, "logical_not", "invert")
    return match_isnan(args[0]) if args else None


def match_filled(node: Node) -> Node | None:
    """Returns ``D`` of ``where(isnan(D), 0, D)`` and ``where(~isnan(D), D, 0)``, or ``None``.

    xarray and dask sum these arrays to leave out missing elements.
    """
    if (wider := match_call(node, "cast")) and keeps_numbers(wider[0].dtype, node.dtype):
        of_wider = match_filled(wider[0])
        return None if of_wider is None else cast(of_wider, node.dtype)
    args = match_call(node, "where")
    if not args:
        return None
    condition, a, b = args
    for of, zero, found in ((match_isnan(condition), a, b), (match_notnan(condition), b, a)):
        if of is not None and isinstance(zero, Const) and zero.scalar == 0 and found.key == of.key:
            return of if of.dtype == node.dtype else None
    return None


def match_mask(node: Node) -> tuple[int, NDArray[Any], Node] | None:
    """Matches ``where(C, E, nan)`` with a constant condition ``C`` that varies along one axis.

    Returns the axis, the condition, and ``E`` in the type of the node, or ``None``. Casts of floats around it are
    applied to ``E``.
    """
    if (cast_of := match_call(node, "cast")) and node.dtype.kind == cast_of[0].dtype.kind == "f":
        masked = match_mask(cast_of[0])
        return None if masked is None else (*masked[:2], cast(masked[2], node.dtype))
    args = match_call(node, "where")
    if not args:
        return None
    condition, of, other = args
    if not isinstance(condition, Const) or condition.scalar is not None or condition.dtype != bool:
        return None
    if not isinstance(other, Const) or other.scalar is None or other.scalar == other.scalar:
        return None
    if of.shape != node.shape:
        return None
    varies = condition.varies()
    if len(varies) != 1:
        return None
    return node.ndim - condition.ndim + varies[0], condition.value.reshape(-1), cast(of, node.dtype)


def match_squared_distance(node: Node) -> tuple[Node, Const] | None:
    """Returns ``D`` and ``C`` of ``(D - C)**2`` with a constant array ``C``, or ``None``."""
    # Squares have one sign. So rounding each of them changes the sum by no more than rounding the sum does.
    width = node.dtype.itemsize
    while (cast_of := match_call(node, "cast")) and cast_of[0].dtype.kind == node.dtype.kind == "f":
        if not 4 <= width <= node.dtype.itemsize:
            break
        node = cast_of[0]
    args = match_call(node, "power", "square", "multiply")
    if not args:
        return None
    if len(args) == 2:
        power = isinstance(node, Apply) and node.name == "power"
        if power and not (isinstance(args[1], Const) and args[1].scalar == 2):
            return None
        if not power and args[0].key != args[1].key:
            return None
    distance = match_call(args[0], "subtract")
    if not distance or not isinstance(distance[1], Const) or distance[1].weak:
        return None
    of, centre = distance[0], distance[1]
    return (of, centre) if of.shape == node.shape and of.dtype.kind == "f" else None
