"""Axes and shapes: what changes them is not computed before it is needed."""

from __future__ import annotations

from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from ._expr import Apply, Const, Leaf, Node, Opaque, Windows
from ._here import array_type, computed_here
from ._indexing import index
from ._join import joined
from ._reduce import normal_axes

if TYPE_CHECKING:
    from ._array import Array


def transpose(a: Array, axes: Any = None) -> Array:
    """Axes in another order."""
    order = tuple(range(a.ndim))[::-1] if axes is None else tuple(int(axis) % a.ndim for axis in axes)
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"axes {axes} are not those of an array with {a.ndim}")
    return array_type()(transposed(a._node, order))


def transposed(node: Node, order: tuple[int, ...]) -> Node:
    """A node with its axes in another order."""
    if order == tuple(range(node.ndim)):
        return node
    if isinstance(node, Leaf):
        return node.with_(node.takes, [node.axes[axis] for axis in order])
    if isinstance(node, Const):
        return Const(np.broadcast_to(node.value, node.shape).transpose(order))
    if isinstance(node, Apply):
        args = [transposed(_padded(arg, node.ndim), order) if arg.ndim else arg for arg in node.args]
        return Apply(node.name, node.function, args, node.dtype)
    return Opaque("transpose", methodcaller("transpose", order), [node], tuple(node.shape[axis] for axis in order))


def _padded(node: Node, ndim: int) -> Node:
    """A node with axes of length 1 before its own."""
    return index(node, (None,) * (ndim - node.ndim) + (Ellipsis,)) if node.ndim < ndim else node


def reshape(a: Array, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Array:
    """Another shape: later, if it only cuts axes, or adds or drops some of length 1."""
    wanted = np.broadcast_to(np.empty((), np.int8), a.shape).reshape(newshape if shape is None else shape).shape
    node = a._node
    if wanted == a.shape:
        return a
    if 0 in wanted:
        return array_type()(Const(np.empty(wanted, a.dtype)))
    if order == "C" and (split := _split(a.shape, wanted)) is not None:
        return array_type()(Windows(node, split))
    if order == "C" and [n for n in wanted if n != 1] == [n for n in a.shape if n != 1]:
        keys = tuple(0 if n == 1 else slice(None) for n in a.shape)
        return array_type()(index(index(node, keys), tuple(None if n == 1 else slice(None) for n in wanted)))
    return array_type()(Opaque("reshape", methodcaller("reshape", wanted, order=order), [node], wanted))


def _split(before: tuple[int, ...], after: tuple[int, ...]) -> list[int | None] | None:
    """The windows into which axes are cut; ``None`` if something else is done to them."""
    split: list[int | None] = []
    at = 0
    for length in before:
        if at < len(after) and after[at] == length and (len(before) - len(split)) <= len(after) - at:
            whole = after[at + 1 :]
            # An axis that stays, unless it is cut into windows of one element.
            if len(whole) >= len(before) - len(split) - 1:
                split.append(None)
                at += 1
                continue
        if at + 1 < len(after) and after[at] * after[at + 1] == length:
            split.append(after[at + 1])
            at += 2
            continue
        return None
    return split if at == len(after) and any(split) else None


def take(a: Any, indices: Any, axis: Any = None, **more: Any) -> Any:
    """Elements of an axis."""
    if axis is None or more or not isinstance(a, array_type()) or np.ndim(indices) > 1:
        return computed_here(np.take, "take", "it is flattened", (a, indices), {"axis": axis, **more})
    at = int(axis) % a.ndim
    # As NumPy takes them here: True is 1, and no mask.
    numbers = np.take(np.arange(a.shape[at]), indices)
    return a[(slice(None),) * at + (int(numbers) if numbers.ndim == 0 else numbers,)]


def squeeze(a: Array, axis: Any = None) -> Array:
    """Without axes of length 1."""
    axes = [at for at, n in enumerate(a.shape) if n == 1] if axis is None else normal_axes(axis, a.ndim)
    if any(a.shape[at] != 1 for at in axes):
        raise ValueError("an axis that is squeezed is longer than 1")
    return a[tuple(0 if at in axes else slice(None) for at in range(a.ndim))]


def expand_dims(a: Any, axis: Any) -> Any:
    count = a.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    axes = normal_axes(axis, count)
    return a[tuple(None if at in axes else slice(None) for at in range(count))]


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    wanted = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if wanted == array.shape:
        return array
    return array_type()(Opaque("broadcast_to", partial(np.broadcast_to, shape=wanted), [array._node], wanted))


def concatenate(arrays: Any, axis: Any = 0, **more: Any) -> Any:
    """Arrays one behind the other, later."""
    if axis is None or more:
        return computed_here(np.concatenate, "concatenate", "it is flattened", (arrays, axis), more)
    from ._array import node_of

    arrays = list(arrays)
    at = int(axis) % arrays[0].ndim
    if len(arrays) == 1:
        return arrays[0]
    empty = [np.broadcast_to(np.empty((), np.int8), one.shape) for one in arrays]
    for one in empty[1:]:
        if one.ndim != empty[0].ndim or any(
            a != b for i, (a, b) in enumerate(zip(one.shape, empty[0].shape)) if i != at
        ):
            raise ValueError("shapes of what is concatenated do not fit together")
    length = sum(one.shape[at] for one in empty)
    shape = (*empty[0].shape[:at], length, *empty[0].shape[at + 1 :])
    nodes = [node_of(one) for one in arrays]
    if len({one.dtype for one in nodes}) == 1 and (whole := joined(nodes, at)) is not None:
        return array_type()(whole)
    return array_type()(Opaque("concatenate", partial(_concatenated, at), nodes, shape))


def _concatenated(axis: int, *values: Any) -> Any:
    return np.concatenate(values, axis)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    from_, to = (list(normal(one, a.ndim)) for one in (source, destination))
    rest = [axis for axis in range(a.ndim) if axis not in from_]
    for place, axis in sorted(zip(to, from_)):
        rest.insert(place, axis)
    return transpose(a, rest)


def normal(axis: Any, ndim: int) -> list[int]:
    return [int(one) % ndim for one in np.atleast_1d(axis)]
