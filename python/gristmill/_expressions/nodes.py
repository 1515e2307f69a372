"""Trees of slices and elementwise operations over variables, which are not computed yet.

:class:`gristmill.Array` makes the nodes, and nodes never change. Slices are applied to the leaves, so a tree reads only
the elements that its result needs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from .takes import IndexList, Take, take_length

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._variables.variable import Variable
    from .blocks import Blocks
    from .groupings import Grouping

#: Most nested operations in a tree. Deeper trees are computed.
MAX_DEPTH = 200


class Node:
    """A part of a tree, with the shape and the element type of its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: Number of nested operations.
    depth = 0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def key(self) -> Hashable:
        """A key that is equal only for nodes with equal values."""
        raise NotImplementedError

    def children(self) -> tuple[Node, ...]:
        return ()

    def leaves(self) -> Iterator[Leaf]:
        """Iterates over the leaves, each as often as it occurs."""
        for child in self.children():
            yield from child.leaves()


class Leaf(Node):
    """A selection of a variable.

    ``takes`` has the selection of each axis of the file. ``axes`` has for each axis of the node the axis of the file,
    or ``None`` for an axis of length 1 that the file does not have.
    """

    def __init__(
        self, variable: Variable, takes: Sequence[Take], axes: Sequence[int | None], blocks: Blocks | None = None
    ) -> None:
        self.variable = variable
        #: Blocks of the array of dask that this leaf is a part of.
        self.blocks = blocks
        #: The grouping of which this leaf is one group, and the number of the group.
        self.group: tuple[Grouping, int] | None = None
        self.takes = tuple(takes)
        self.axes = tuple(axes)
        self.shape = tuple(1 if axis is None else take_length(self.takes[axis]) for axis in self.axes)
        self.dtype = variable.dtype

    @classmethod
    def whole(cls, variable: Variable) -> Leaf:
        return cls(variable, [(0, length, 1) for length in variable.shape], range(len(variable.shape)))

    @property
    def key(self) -> Hashable:
        takes = tuple(take.key if isinstance(take, IndexList) else take for take in self.takes)
        return "leaf", self.variable.key, takes, self.axes

    def leaves(self) -> Iterator[Leaf]:
        yield self

    def with_takes(self, takes: Sequence[Take], axes: Sequence[int | None]) -> Leaf:
        """Returns another selection of the same array."""
        leaf = Leaf(self.variable, takes, axes, self.blocks)
        if self.group is not None and takes[self.group[0].of_file] is self.takes[self.group[0].of_file]:
            leaf.group = self.group
        return leaf

    def take(self, axis: int, key: int | slice | NDArray[Any]) -> Leaf:
        """Selects elements of one axis. An integer drops the axis."""
        if isinstance(key, slice) and key == slice(0, self.shape[axis], 1):
            return self
        at = self.axes[axis]
        axes, takes = list(self.axes), list(self.takes)
        if at is None:
            # The axis has length 1. Callers keep it whole or drop it.
            if isinstance(key, int):
                del axes[axis]
            return self.with_takes(takes, axes)
        before = takes[at]
        assert not isinstance(before, int)
        if isinstance(before, IndexList):
            picked = before.indices[key]
            takes[at] = int(picked) if isinstance(key, int) else IndexList(picked)
        elif isinstance(key, int):
            takes[at] = range(*before)[key]
        elif isinstance(key, slice):
            taken = range(*before)[key]
            takes[at] = (taken.start, max(taken.stop, taken.start), taken.step)
        else:
            start, _, step = before
            takes[at] = IndexList(start + step * key)
        if isinstance(key, int):
            del axes[axis]
        return self.with_takes(takes, axes)


class Const(Node):
    """Constant values.

    A Python number is *weak*: it takes the type of the other operand, as in NumPy. An axis along which an array does
    not vary has length 1 in ``value``.
    """

    def __init__(self, value: Any, shape: tuple[int, ...] | None = None) -> None:
        self.weak = type(value) in (int, float, bool, complex)
        array = np.asarray(value)
        self.shape = array.shape if shape is None else shape
        if array.ndim:
            still = tuple(
                slice(0, 1) if stride == 0 and length > 1 else slice(None)
                for stride, length in zip(array.strides, array.shape)
            )
            array = array[still]
        self.value: Any = value if self.weak else array
        self.dtype = array.dtype
        self._digest: bytes | None = None

    @classmethod
    def copied(cls, value: Any) -> Const:
        """Makes a constant of a copy, because the caller may change the array later."""
        made = cls(value)
        if not made.weak:
            made.value = made.value.copy()
        return made

    @property
    def scalar(self) -> Any:
        """The value of a constant with one value, a Python number if it is weak.

        ``None`` if there are several values.
        """
        if self.weak:
            return self.value
        return self.value.reshape(-1)[0] if self.value.size == 1 else None

    @property
    def key(self) -> Hashable:
        if self.weak:
            return "weak", type(self.value), repr(self.value)
        if self.value.size == 1:
            return "strong", self.dtype.str, self.value.tobytes()
        if self._digest is None:
            self._digest = blake2b(np.ascontiguousarray(self.value).data, digest_size=16).digest()
        return "const", self.dtype.str, self.value.shape, self.shape, self._digest

    def array(self) -> Any:
        """Returns the values for NumPy, broadcast to the whole shape without a copy."""
        return self.value if self.weak else np.broadcast_to(self.value, self.shape)

    def varies(self) -> tuple[int, ...]:
        """Returns the axes along which the values differ."""
        return () if self.weak else tuple(i for i, length in enumerate(self.value.shape) if length > 1)


class Apply(Node):
    """An elementwise operation: ``function`` of the arguments, which are broadcast as in NumPy."""

    def __init__(self, name: str, function: Callable[..., Any], args: Sequence[Node], dtype: np.dtype[Any]) -> None:
        self.name = name
        self.function = function
        self.args = tuple(args)
        self.dtype = dtype
        self.shape = np.broadcast_shapes(*(arg.shape for arg in self.args))
        self.depth = 1 + max(arg.depth for arg in self.args)

    @property
    def key(self) -> Hashable:
        # The type identifies a cast. Other names may stand for several functions.
        function = None if self.name == "cast" else self.function
        return self.name, function, self.dtype.str, tuple(arg.key for arg in self.args)

    def children(self) -> tuple[Node, ...]:
        return self.args


class Opaque(Node):
    """Any other function of the whole values of some nodes. It is computed when its values are needed."""

    def __init__(self, name: str, function: Callable[..., Any], args: Sequence[Node], shape: tuple[int, ...]) -> None:
        self.name = name
        self.function = function
        self.args = tuple(args)
        self.shape = shape
        self.dtype = np.result_type(*(arg.dtype for arg in self.args))
        self.depth = 1 + max(arg.depth for arg in self.args)

    @property
    def key(self) -> Hashable:
        return self.name, id(self)

    def children(self) -> tuple[Node, ...]:
        return self.args


class Windows(Node):
    """A node with some axes cut into windows, as ``coarsen`` reshapes arrays.

    ``split`` has for each axis of the node ``of`` the length of a window, or ``None`` for an axis that is not cut. A
    cut axis becomes two axes: windows, and elements of a window.
    """

    def __init__(self, of: Node, split: Sequence[int | None]) -> None:
        self.of = of
        self.split = tuple(split)
        self.shape = ()
        for length, window in zip(of.shape, self.split):
            self.shape += (length,) if window is None else (length // window, window)
        self.dtype = of.dtype
        self.depth = 1 + of.depth

    @property
    def key(self) -> Hashable:
        return "windows", self.split, self.of.key

    def children(self) -> tuple[Node, ...]:
        return (self.of,)


def apply(name: str, function: Callable[..., Any], args: Sequence[Node]) -> Node:
    """Makes the node of an elementwise operation, with NumPy's result type.

    An operation on constants is computed at once.
    """
    if all(isinstance(arg, Const) for arg in args):
        consts = [arg for arg in args if isinstance(arg, Const)]
        shape = np.broadcast_shapes(*(arg.shape for arg in args))
        value = np.asarray(function(*(arg.value for arg in consts)))
        return Const(np.broadcast_to(value, shape))
    weak = [(type(arg.value), arg.value) if isinstance(arg, Const) and arg.weak else None for arg in args]
    dtype = _type_of(function, tuple(one if one is not None else arg.dtype for one, arg in zip(weak, args)))
    return Apply(name, function, args, dtype)


@lru_cache(1024)
def _type_of(function: Callable[..., Any], args: tuple[Any, ...]) -> np.dtype[Any]:
    """Returns the result type of a function. An argument is a type, or a Python number with its type."""
    given = [arg[1] if isinstance(arg, tuple) else np.empty((0,), arg) for arg in args]
    with np.errstate(all="ignore"):
        return np.asarray(function(*given)).dtype


def cast(node: Node, dtype: np.dtype[Any]) -> Node:
    """Returns a node with the same values in another type."""
    if isinstance(node, Const):
        return Const(node.array().astype(dtype) if node.weak else np.broadcast_to(node.value.astype(dtype), node.shape))
    if node.dtype == dtype:
        return node
    return Apply("cast", _Cast(dtype), [node], dtype)


class _Cast:
    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def __call__(self, values: Any) -> Any:
        return np.asarray(values).astype(self.dtype)
