"""NumPy's functions that change axes and shapes. They are recorded, and computed when elements are needed."""

from __future__ import annotations

from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from .._expressions.axes import normal_axes, normal_axis, transpose_node
from .._expressions.indexing import index
from .._expressions.joining import join
from .._expressions.nodes import Const, Opaque, Windows
from .fallback import array_type, compute_here

if TYPE_CHECKING:
    from .array import Array


def transpose(a: Array, axes: Any = None) -> Array:
    """Returns an array with its axes in another order."""
    order = tuple(range(a.ndim))[::-1] if axes is None else tuple(normalize_axes(axes, a.ndim))
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"axes {axes} are not those of an array with {a.ndim} axes")
    return array_type()(transpose_node(a._node, order))


def reshape(a: Array, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Array:
    """Returns an array in another shape.

    It stays an expression if axes are only cut, or axes of length 1 are added or dropped.
    """
    wanted = np.broadcast_to(np.empty((), np.int8), a.shape).reshape(newshape if shape is None else shape).shape
    node = a._node
    if wanted == a.shape:
        return a
    if 0 in wanted:
        return array_type()(Const(np.empty(wanted, a.dtype)))
    if order == "C" and (split := _find_windows(a.shape, wanted)) is not None:
        return array_type()(Windows(node, split))
    if order == "C" and [n for n in wanted if n != 1] == [n for n in a.shape if n != 1]:
        keys = tuple(0 if n == 1 else slice(None) for n in a.shape)
        return array_type()(index(index(node, keys), tuple(None if n == 1 else slice(None) for n in wanted)))
    return array_type()(Opaque("reshape", methodcaller("reshape", wanted, order=order), [node], wanted))


def _find_windows(before: tuple[int, ...], after: tuple[int, ...]) -> list[int | None] | None:
    """Returns the lengths of the windows into which axes are cut, or ``None`` if the shape changes in another way."""
    split: list[int | None] = []
    at = 0
    for length in before:
        if at < len(after) and after[at] == length and (len(before) - len(split)) <= len(after) - at:
            whole = after[at + 1 :]
            # The axis stays, unless it is cut into windows of one element.
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
    """Returns the elements of an axis at these indices."""
    if axis is None or more or not isinstance(a, array_type()) or np.ndim(indices) > 1:
        return compute_here(np.take, "take", "it is flattened", (a, indices), {"axis": axis, **more})
    at = normal_axis(axis, a.ndim)
    # For take True is the index 1, not a mask.
    numbers = np.take(np.arange(a.shape[at]), indices)
    return a[(slice(None),) * at + (int(numbers) if numbers.ndim == 0 else numbers,)]


def squeeze(a: Array, axis: Any = None) -> Array:
    """Returns an array without axes of length 1."""
    axes = [at for at, n in enumerate(a.shape) if n == 1] if axis is None else normal_axes(axis, a.ndim)
    if any(a.shape[at] != 1 for at in axes):
        raise ValueError("an axis that is squeezed is longer than 1")
    return a[tuple(0 if at in axes else slice(None) for at in range(a.ndim))]


def expand_dims(a: Any, axis: Any) -> Any:
    """Returns an array with new axes of length 1."""
    count = a.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    axes = normal_axes(axis, count)
    return a[tuple(None if at in axes else slice(None) for at in range(count))]


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Returns an array that is repeated to a shape."""
    wanted = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if wanted == array.shape:
        return array
    return array_type()(Opaque("broadcast_to", partial(np.broadcast_to, shape=wanted), [array._node], wanted))


def concatenate(arrays: Any, axis: Any = 0, **more: Any) -> Any:
    """Joins arrays along an axis. Parts of one stored array become a selection of it."""
    if axis is None or more:
        return compute_here(np.concatenate, "concatenate", "it is flattened", (arrays, axis), more)
    from .array import node_of

    arrays = list(arrays)
    at = normal_axis(axis, arrays[0].ndim)
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
    if len({one.dtype for one in nodes}) == 1 and (whole := join(nodes, at)) is not None:
        return array_type()(whole)
    return array_type()(Opaque("concatenate", partial(_concatenated, at), nodes, shape))


def _concatenated(axis: int, *values: Any) -> Any:
    return np.concatenate(values, axis)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Returns an array with axes moved to other positions."""
    from_, to = (normalize_axes(one, a.ndim) for one in (source, destination))
    if len(from_) != len(to) or len(set(from_)) != len(from_) or len(set(to)) != len(to):
        raise ValueError(f"axes {source} cannot move to {destination}: give as many, each once")
    rest = [axis for axis in range(a.ndim) if axis not in from_]
    for place, axis in sorted(zip(to, from_)):
        rest.insert(place, axis)
    return transpose(a, rest)


def normalize_axes(axis: Any, ndim: int) -> list[int]:
    """Returns axes from 0 on, in the given order. Raises ``AxisError`` for an axis that does not exist."""
    return [normal_axis(one, ndim) for one in np.atleast_1d(axis)]
