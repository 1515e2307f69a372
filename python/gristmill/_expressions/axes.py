"""Axes: normalised axes of reductions, and the order of axes of nodes."""

from __future__ import annotations

from operator import index as index_of
from operator import methodcaller
from typing import Any

import numpy as np

from .indexing import index
from .nodes import Apply, Const, Leaf, Node, Opaque


def normal_axis(axis: Any, ndim: int) -> int:
    """Returns an axis from 0 on. Raises ``AxisError`` for an axis that does not exist."""
    at = index_of(axis)
    if not -ndim <= at < ndim:
        raise np.exceptions.AxisError(at, ndim)
    return at % ndim


def normal_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Returns sorted axes from 0 on, out of ``None``, an integer or several, as NumPy's reductions take them.

    Raises ``AxisError`` for an axis that does not exist, and ``ValueError`` for an axis that is given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list, np.ndarray)) else (axis,)
    axes = []
    for one in given:
        if ndim == 0 and int(one) in (-1, 0):
            # NumPy accepts axis 0 of a single number.
            continue
        axes.append(normal_axis(one, ndim))
    if len(set(axes)) != len(axes):
        raise ValueError("an axis is given twice")
    return tuple(sorted(axes))


def transpose_node(node: Node, order: tuple[int, ...]) -> Node:
    """Returns a node with its axes in another order."""
    if order == tuple(range(node.ndim)):
        return node
    if isinstance(node, Leaf):
        return node.with_takes(node.takes, [node.axes[axis] for axis in order])
    if isinstance(node, Const):
        return Const(np.broadcast_to(node.value, node.shape).transpose(order))
    if isinstance(node, Apply):
        args = [transpose_node(_add_leading_axes(arg, node.ndim), order) if arg.ndim else arg for arg in node.args]
        return Apply(node.name, node.function, args, node.dtype)
    return Opaque("transpose", methodcaller("transpose", order), [node], tuple(node.shape[axis] for axis in order))


def _add_leading_axes(node: Node, ndim: int) -> Node:
    """Returns a node with axes of length 1 before its own axes, up to ``ndim`` axes."""
    return index(node, (None,) * (ndim - node.ndim) + (Ellipsis,)) if node.ndim < ndim else node
