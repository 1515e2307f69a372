"""Indexing of trees. Slices are applied to the leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index as index_of
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from .nodes import Apply, Const, Leaf, Node, Opaque

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The key of an axis of a tree. ``None`` is a new axis.
Key = Union[int, slice, "NDArray[Any]", None]

#: Returns the names of the axes. Only a message about an error needs them.
Names = Callable[[], Sequence[str]]


def _no_names() -> Sequence[str]:
    return ()


def keys_by_axis(shape: tuple[int, ...], key: Any, dims: Names = _no_names) -> list[Key] | None:
    """Splits a key of NumPy into one key for each axis, with ``None`` for new axes.

    Returns ``None`` for keys that select points. Raises ``IndexError`` as NumPy does; its message names the axis, with its
    name in what ``dims`` returns.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(one, (bool, np.bool_)) for one in keys):
        return None
    arrays = [i for i, one in enumerate(keys) if isinstance(one, (list, np.ndarray)) and np.ndim(one) > 0]
    for i in arrays:
        if (found := _to_indices(keys[i], shape, _axis_of(keys, i, len(shape)), dims)) is None:
            return None
        keys[i] = found
    if len(arrays) > 1:
        # Arrays as np.ix_ makes them: each varies along its own axis, in order.
        if any(keys[i].ndim != len(arrays) for i in arrays) or arrays != list(range(arrays[0], arrays[-1] + 1)):
            return None
        for n, i in enumerate(arrays):
            if keys[i].size != keys[i].shape[n]:
                return None
            keys[i] = keys[i].reshape(-1)
    elif arrays and keys[arrays[0]].ndim > 1:
        return None
    if arrays:
        # NumPy treats integers next to arrays as arrays, and moves their axes to the front if they are not adjacent.
        advanced = [i for i, one in enumerate(keys) if not (one is None or one is Ellipsis or isinstance(one, slice))]
        if advanced != list(range(advanced[0], advanced[-1] + 1)):
            return None
    named = sum(one is not None and one is not Ellipsis for one in keys)
    if named > len(shape):
        raise IndexError(f"too many indices: the array has {len(shape)} axes, and {named} are given")
    rest = [slice(None)] * (len(shape) - named)
    place = [i for i, one in enumerate(keys) if one is Ellipsis]
    if place:
        keys[place[0] : place[0] + 1] = rest
    else:
        keys += rest
    out: list[Key] = []
    axes = iter(range(len(shape)))
    for one in keys:
        if one is None:
            out.append(None)
            continue
        axis = next(axes)
        out.append(_check_key(one, shape[axis], axis, dims))
    return out


def _axis_text(axis: int, dims: Names) -> str:
    """The number of an axis, and its name if it has one of its own."""
    names = dims()
    if axis < len(names) and names[axis] != f"dim_{axis}":
        return f"axis {axis} ({names[axis]})"
    return f"axis {axis}"


def _axis_of(keys: Sequence[Any], at: int, ndim: int) -> int:
    """Returns the axis of a key. It is too large if there are too many keys."""
    before = sum(one is not None and one is not Ellipsis for one in keys[:at])
    if not any(one is Ellipsis for one in keys[:at]):
        return before
    return ndim - sum(one is not None for one in keys[at:])


def _to_indices(given: Any, shape: tuple[int, ...], axis: int, dims: Names) -> NDArray[Any] | None:
    """Turns a list or an array into indices of an axis. Returns ``None`` for a mask of several axes."""
    array = np.asarray(given)
    if array.dtype != bool:
        if array.dtype.kind not in "iu" and (isinstance(given, np.ndarray) or array.size):
            raise IndexError(f"indices are integers or booleans; these are of {array.dtype}")
        return array
    if array.ndim != 1:
        return None
    if 0 <= axis < len(shape) and len(array) != shape[axis]:
        where = _axis_text(axis, dims)
        raise IndexError(f"a mask has {len(array)} elements, and its {where} has {shape[axis]}; give one for each")
    return np.flatnonzero(array)


def _check_key(one: Any, length: int, axis: int, dims: Names) -> Key:
    if isinstance(one, slice):
        return one
    if isinstance(one, np.ndarray) and one.ndim:
        if one.size and (one.min() < -length or one.max() >= length):
            wrong = one.max() if one.max() >= length else one.min()
            raise IndexError(f"index {wrong} is out of range for {_axis_text(axis, dims)} of length {length}")
        return np.where(one < 0, one + length, one).astype(np.int64)
    try:
        at = index_of(one)
    except TypeError as error:
        raise IndexError(f"{one!r} is not an index; use integers, slices, ..., None, or arrays of these") from error
    if not -length <= at < length:
        raise IndexError(f"index {at} is out of range for {_axis_text(axis, dims)} of length {length}")
    return at % length


def index(node: Node, key: Any, dims: Names = _no_names) -> Node:
    """Returns the node that NumPy's indexing with this key gives.

    Raises ``IndexError`` as NumPy does. Its message has the name of the axis that ``dims`` returns.
    """
    keys = keys_by_axis(node.shape, key, dims)
    if keys is None or any(isinstance(one, slice) and (one.step or 1) < 0 for one in keys):
        return Opaque("getitem", _Points(key), [node], _empty(node.shape)[key].shape)
    lengths = iter(node.shape)
    return _index(node, [None if one is None else _simplify_key(one, next(lengths)) for one in keys])


def _empty(shape: tuple[int, ...]) -> NDArray[Any]:
    """Returns an array of a shape that takes no memory."""
    return np.broadcast_to(np.empty((), np.int8), shape)


def _simplify_key(one: Key, length: int) -> Key:
    """Clips a slice to its axis, and replaces indices with constant steps by a slice."""
    if isinstance(one, slice):
        taken = range(*one.indices(length))
        return slice(taken.start, max(taken.stop, taken.start), taken.step)
    if isinstance(one, np.ndarray) and len(one):
        steps = np.diff(one)
        if not len(steps):
            return slice(int(one[0]), int(one[0]) + 1, 1)
        if steps[0] > 0 and (steps == steps[0]).all():
            return slice(int(one[0]), int(one[-1]) + 1, int(steps[0]))
    return one


class _Points:
    """A function that indexes as NumPy does."""

    def __init__(self, key: Any) -> None:
        each = key if isinstance(key, tuple) else (key,)
        kept = tuple(np.array(one) if isinstance(one, (list, np.ndarray)) else one for one in each)
        self.key = kept if isinstance(key, tuple) else kept[0]

    def __call__(self, values: Any) -> Any:
        return values[self.key]


class _Outer:
    """A function that indexes each axis on its own."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = keys

    def __call__(self, values: Any) -> Any:
        at = 0
        for one in self.keys:
            values = values[(slice(None),) * at + (one,)]
            at += not isinstance(one, int)
        return values


def _index(node: Node, keys: list[Key]) -> Node:
    if isinstance(node, Leaf) and (leaf := _leaf(node, keys)) is not None:
        return leaf
    if isinstance(node, Const):
        return node if node.weak else Const(_Outer(keys)(np.broadcast_to(node.value, node.shape)))
    if isinstance(node, Apply):
        args = [_index(arg, _keys_for_argument(arg, node, keys)) for arg in node.args]
        return Apply(node.name, node.function, args, node.dtype)
    return Opaque("getitem", _Outer(keys), [node], _Outer(keys)(_empty(node.shape)).shape)


def _leaf(leaf: Leaf, keys: list[Key]) -> Leaf | None:
    """Selects elements of a leaf. Returns ``None`` if that repeats or empties an axis that the file does not have."""
    at = 0
    for one in keys:
        if one is None:
            leaf = leaf.with_takes(leaf.takes, (*leaf.axes[:at], None, *leaf.axes[at:]))
            at += 1
            continue
        if leaf.axes[at] is None and not isinstance(one, int) and len(np.arange(1)[one]) != 1:
            return None
        leaf = leaf.take(at, one)
        at += not isinstance(one, int)
    return leaf


def _keys_for_argument(arg: Node, whole: Node, keys: Sequence[Key]) -> list[Key]:
    """Returns the keys for an argument of a node. The argument may have fewer axes, and axes of length 1."""
    if isinstance(arg, Const) and arg.weak:
        return []
    missing = whole.ndim - arg.ndim
    out: list[Key] = []
    axis = 0
    for one in keys:
        if one is None:
            if axis >= missing:
                out.append(None)
            continue
        if axis >= missing:
            if arg.shape[axis - missing] == 1 and whole.shape[axis] != 1:
                one = 0 if isinstance(one, int) else slice(0, 1, 1)
            out.append(one)
        axis += 1
    return out
