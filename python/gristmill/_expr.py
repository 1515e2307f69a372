"""Expressions over variables, before anything is computed: trees of what is taken and of what is made of it.

A tree is made by slicing and by elementwise operations of :class:`gristmill.Array`; its nodes never change. Slices go
down to the leaves, so a tree reads only what its result needs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Union

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._blocks import Blocks
    from ._groups import Grouping
    from ._source import Variable

#: What is taken of an axis of a file: an index, a slice, or the elements at some indices.
Take = Union[int, tuple[int, int, int], "Picked"]


class Picked:
    """The elements of an axis at these indices, in this order."""

    def __init__(self, indices: NDArray[Any]) -> None:
        self.indices = indices
        self.key = ("picked", indices.tobytes())

    def __len__(self) -> int:
        return len(self.indices)

    def hull(self) -> tuple[int, int, int]:
        """The slice that holds all of them."""
        return int(self.indices.min()), int(self.indices.max()) + 1, 1


#: Most operations one in the other that are kept for later.
MAX_DEPTH = 200


class Node:
    """A part of a tree, with the shape and the type of its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: Operations one in the other.
    depth = 0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def key(self) -> Hashable:
        """Equal for nodes with equal values."""
        raise NotImplementedError

    def children(self) -> tuple[Node, ...]:
        return ()

    def leaves(self) -> Iterator[Leaf]:
        """The variables it is made of, each as often as it occurs."""
        for child in self.children():
            yield from child.leaves()


def count(take: Take) -> int:
    """How many elements are taken."""
    if isinstance(take, Picked):
        return len(take)
    if isinstance(take, int):
        return 1
    return len(range(*take))


class Leaf(Node):
    """Something of a variable. ``axes`` says for each axis which one of the file it is, or ``None`` for one of length 1 that
    the file does not have."""

    def __init__(
        self, variable: Variable, takes: Sequence[Take], axes: Sequence[int | None], blocks: Blocks | None = None
    ) -> None:
        self.variable = variable
        #: The blocks of the array of dask that it is of.
        self.blocks = blocks
        #: The groups of which one is taken of an axis, and which.
        self.member: tuple[Grouping, int] | None = None
        self.takes = tuple(takes)
        self.axes = tuple(axes)
        self.shape = tuple(1 if axis is None else count(self.takes[axis]) for axis in self.axes)
        self.dtype = variable.dtype

    @classmethod
    def whole(cls, variable: Variable) -> Leaf:
        return cls(variable, [(0, length, 1) for length in variable.shape], range(len(variable.shape)))

    @property
    def key(self) -> Hashable:
        takes = tuple(take.key if isinstance(take, Picked) else take for take in self.takes)
        return "leaf", self.variable.key, takes, self.axes

    def leaves(self) -> Iterator[Leaf]:
        yield self

    def with_(self, takes: Sequence[Take], axes: Sequence[int | None]) -> Leaf:
        """Something else of the same array."""
        leaf = Leaf(self.variable, takes, axes, self.blocks)
        if self.member is not None and takes[self.member[0].of_file] is self.takes[self.member[0].of_file]:
            leaf.member = self.member
        return leaf

    def take(self, axis: int, key: int | slice | NDArray[Any]) -> Leaf:
        """Less of one axis; an integer drops it."""
        if isinstance(key, slice) and key == slice(0, self.shape[axis], 1):
            return self
        at = self.axes[axis]
        axes, takes = list(self.axes), list(self.takes)
        if at is None:
            # An axis of length 1: whole or dropped, by whoever calls.
            if isinstance(key, int):
                del axes[axis]
            return self.with_(takes, axes)
        before = takes[at]
        assert not isinstance(before, int)
        if isinstance(before, Picked):
            picked = before.indices[key]
            takes[at] = int(picked) if isinstance(key, int) else Picked(picked)
        elif isinstance(key, int):
            takes[at] = range(*before)[key]
        elif isinstance(key, slice):
            taken = range(*before)[key]
            takes[at] = (taken.start, max(taken.stop, taken.start), taken.step)
        else:
            start, _, step = before
            takes[at] = Picked(start + step * key)
        if isinstance(key, int):
            del axes[axis]
        return self.with_(takes, axes)


class Const(Node):
    """Values that are known. A Python number is *weak*: it takes the type of what it is beside, as in NumPy. Axes along which
    an array does not vary have length 1 in ``value``."""

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
    def kept(cls, value: Any) -> Const:
        """Values that whoever gave them may change later."""
        made = cls(value)
        if not made.weak:
            made.value = made.value.copy()
        return made

    @property
    def scalar(self) -> Any:
        """The one value that it has, a Python number if it is weak; ``None`` if it has several."""
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
        """Its values as NumPy takes them: of the whole shape, without taking memory for it."""
        return self.value if self.weak else np.broadcast_to(self.value, self.shape)

    def varies(self) -> tuple[int, ...]:
        """The axes along which its values differ."""
        return () if self.weak else tuple(i for i, length in enumerate(self.value.shape) if length > 1)


class Apply(Node):
    """An elementwise operation: ``function`` of the arguments, broadcast as NumPy does."""

    def __init__(self, name: str, function: Callable[..., Any], args: Sequence[Node], dtype: np.dtype[Any]) -> None:
        self.name = name
        self.function = function
        self.args = tuple(args)
        self.dtype = dtype
        self.shape = np.broadcast_shapes(*(arg.shape for arg in self.args))
        self.depth = 1 + max(arg.depth for arg in self.args)

    @property
    def key(self) -> Hashable:
        # Casts are told by their type; of all others one name may stand for several functions.
        function = None if self.name == "cast" else self.function
        return self.name, function, self.dtype.str, tuple(arg.key for arg in self.args)

    def children(self) -> tuple[Node, ...]:
        return self.args


class Opaque(Node):
    """What NumPy makes of the values of some nodes as a whole: computed when they are needed."""

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
    """A node with some axes cut into windows, as ``coarsen`` reshapes arrays. ``split`` gives for each axis of the node the
    length of a window, or ``None`` for an axis that stays."""

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
    """An elementwise operation, with the type that NumPy gives it. Of constants it is computed at once."""
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
    """The type of what a function makes of arrays of these types, and of Python numbers, which come with their own type."""
    given = [arg[1] if isinstance(arg, tuple) else np.empty((0,), arg) for arg in args]
    with np.errstate(all="ignore"):
        return np.asarray(function(*given)).dtype


def cast(node: Node, dtype: np.dtype[Any]) -> Node:
    """The same values in another type."""
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
