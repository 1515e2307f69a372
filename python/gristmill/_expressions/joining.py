"""Joining parts of one array, which dask cut out of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Optional

import numpy as np

from .nodes import Apply, Const, Leaf, Node
from .takes import IndexList, Take

#: Joins leaves along an axis. Returns ``None`` if that is not possible.
JoinLeaves = Callable[[list[Leaf], int], Optional[Leaf]]


def join(parts: Sequence[Node], axis: int, join_leaves: JoinLeaves | None = None) -> Node | None:
    """Returns the node that consists of these parts along an axis.

    ``join_leaves`` joins parts of variables; by default they are parts of one variable. Returns ``None`` if the parts do not
    come from one array by the same operations.
    """
    first = parts[0]
    if any(type(part) is not type(first) or part.ndim != first.ndim or part.dtype != first.dtype for part in parts):
        return None
    if isinstance(first, Leaf):
        return (join_leaves or _leaf)([part for part in parts if isinstance(part, Leaf)], axis)
    if isinstance(first, Const):
        return _const([part for part in parts if isinstance(part, Const)], axis)
    if not isinstance(first, Apply):
        return None
    nodes = [part for part in parts if isinstance(part, Apply)]
    if any(not _same_operation(node, first) for node in nodes):
        return None
    args = []
    for several in zip(*(node.args for node in nodes)):
        # An argument with fewer axes lacks the first ones.
        at = axis - (first.ndim - several[0].ndim)
        same = all(arg.key == several[0].key for arg in several)
        if at < 0 or (same and several[0].shape[at] == 1):
            one = several[0] if same else None
        else:
            wide = [_repeated(arg, at, node.shape[axis]) for arg, node in zip(several, nodes)]
            one = join(wide, at, join_leaves)
        if one is None:
            return None
        args.append(one)
    try:
        made = Apply(first.name, first.function, args, first.dtype)
    except ValueError:
        # A stored argument is repeated along the axis in one part only.
        return None
    return made if made.shape[axis] == sum(node.shape[axis] for node in nodes) else None


def _repeated(node: Node, axis: int, length: int) -> Node:
    """Repeats a constant along an axis, because it may not be repeated in other parts."""
    if not isinstance(node, Const) or node.weak or node.shape[axis] == length:
        return node
    return Const(np.broadcast_to(node.array(), (*node.shape[:axis], length, *node.shape[axis + 1 :])))


def _same_operation(node: Apply, other: Apply) -> bool:
    if node.name != other.name or len(node.args) != len(other.args):
        return False
    if any(a.ndim != b.ndim for a, b in zip(node.args, other.args)):
        return False
    return node.function is other.function or node.name == "cast"


def _const(parts: list[Const], axis: int) -> Const | None:
    if any(part.weak for part in parts):
        return None
    length = sum(part.shape[axis] for part in parts)
    if all(part.scalar is not None and part.key == parts[0].key for part in parts):
        shape = (*parts[0].shape[:axis], length, *parts[0].shape[axis + 1 :])
        return Const(np.broadcast_to(parts[0].value.reshape(-1)[0], shape))
    # A part may be repeated along another axis, and then has length 1 there.
    rest = np.broadcast_shapes(*((*part.shape[:axis], 1, *part.shape[axis + 1 :]) for part in parts))
    wide = [np.broadcast_to(part.array(), (*rest[:axis], part.shape[axis], *rest[axis + 1 :])) for part in parts]
    return Const(np.concatenate(wide, axis))


def _leaf(parts: list[Leaf], axis: int) -> Leaf | None:
    first = parts[0]
    of_file = first.axes[axis]
    if of_file is None:
        return None
    rest = _other_takes(first, of_file)
    if any(part.axes != first.axes or _other_takes(part, of_file) != rest for part in parts):
        return None
    takes: list[Take] = list(first.takes)
    takes[of_file] = _concatenate_takes([part.takes[of_file] for part in parts])
    # The parts may belong to different arrays of dask.
    keys = {None if part.blocks is None else part.blocks.key for part in parts}
    return Leaf(first.variable, takes, first.axes, first.blocks if len(keys) == 1 else None)


def _other_takes(leaf: Leaf, of_file: int) -> tuple[object, ...]:
    """Returns a key of the variable and of the selections of its other axes."""
    rest = (take.key if isinstance(take, IndexList) else take for at, take in enumerate(leaf.takes) if at != of_file)
    return leaf.variable.key, *rest


def _concatenate_takes(takes: list[Take]) -> Take:
    slices = [take for take in takes if not isinstance(take, int)]
    indices = [take.indices if isinstance(take, IndexList) else np.arange(*take) for take in slices]
    every = np.concatenate(indices)
    steps = np.diff(every)
    if len(steps) and steps[0] > 0 and (steps == steps[0]).all():
        return int(every[0]), int(every[-1]) + 1, int(steps[0])
    if len(every) == 1:
        return int(every[0]), int(every[0]) + 1, 1
    return IndexList(every)
