"""Inputs of an expression: its lead variable, further variables, and arrays that are sent with the request."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .._expressions.evaluation import read_leaf
from .._expressions.nodes import Const, Leaf, Node
from .._expressions.takes import IndexList
from .._requests import options
from .not_pushed import NotPushed

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most inputs of an expression, as ``array::MAX_INPUTS``.
MAX_INPUTS = 16

#: The variable has at least this many times the bytes of the constants. Otherwise reading is better.
MIN_RATIO = 4

#: Names of element types in requests.
TYPES = {
    np.dtype(bool): "bool",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
} | {np.dtype(f"{kind}{size}"): f"{kind}{8 * size}" for kind in "iu" for size in (1, 2, 4, 8)}


@dataclass(frozen=True)
class SentArray:
    """An array that is sent: the values of a small node, which are read when they are needed."""

    node: Node
    #: As many axes as the lead has, with length 1 where the array is repeated along an axis.
    shape: tuple[int, ...]
    #: Slices of axes, applied one after the other.
    parts: tuple[tuple[int, slice], ...] = ()

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.node.dtype.itemsize

    def take(self, axis: int, part: slice) -> SentArray:
        """Selects a part of an axis."""
        if self.shape[axis] == 1:
            return self
        length = len(range(self.shape[axis])[part])
        shape = (*self.shape[:axis], length, *self.shape[axis + 1 :])
        return SentArray(self.node, shape, (*self.parts, (axis, part)))

    def values(self) -> NDArray[Any]:
        node = self.node
        value = np.asarray(read_leaf(node) if isinstance(node, Leaf) else node.value)  # type: ignore[attr-defined]
        value = value.reshape((1,) * (len(self.shape) - value.ndim) + value.shape)
        for axis, part in self.parts:
            value = value[(slice(None),) * axis + (part,)]
        return value


@dataclass
class Inputs:
    """The inputs of an expression over leaves of one shape. Axes are those of the lead, whose name is ``x``."""

    lead: Leaf
    #: Further variables with the same selection, by their names in the expression.
    others: dict[str, Leaf] = field(default_factory=dict)
    #: Constant arrays, by their names in the expression. They may be repeated along axes.
    constants: dict[str, SentArray] = field(default_factory=dict)
    _names: dict[Hashable, str] = field(default_factory=dict)

    def name(self, node: Node) -> str:
        """Returns the name of a leaf or a constant array in the expression, and adds it to the inputs.

        Raises :class:`NotPushed` if it cannot be an input.
        """
        if node.key == self.lead.key:
            return "x"
        if node.key not in self._names:
            self._names[node.key] = self._add(node)
        return self._names[node.key]

    def _add(self, node: Node) -> str:
        if len(self.others) + len(self.constants) + 1 >= MAX_INPUTS:
            raise NotPushed(f"it is made of more than {MAX_INPUTS} parts of variables and arrays")
        if isinstance(node, Leaf) and node.shape == self.lead.shape:
            self._check_same_elements(node)
            name = f"y{len(self.others) + 1}"
            self.others[name] = node
            return name
        name = f"c{len(self.constants) + 1}"
        self.constants[name] = self._as_constant(node)
        return name

    def _check_same_elements(self, leaf: Leaf) -> None:
        """Raises :class:`NotPushed` for a leaf whose elements are not at the positions of the lead's elements."""
        one, other = self.lead.variable, leaf.variable
        names = ", ".join(sorted({one.name, other.name}))
        if one.source.origin != other.source.origin:
            raise NotPushed(f"it is made of variables of several files: {names}")
        if (one.shape, _takes_key(self.lead)) != (other.shape, _takes_key(leaf)):
            raise NotPushed(f"it is made of several parts of variables: {names}")

    def _as_constant(self, node: Node) -> SentArray:
        """Makes a constant array over the axes of the lead.

        Raises :class:`NotPushed` if it is too large to be sent.
        """
        if node.dtype not in TYPES:
            raise NotPushed(f"{node.dtype} is no type that storage nodes compute in")
        shape = node.value.shape if isinstance(node, Const) else node.shape
        sent = SentArray(node, (1,) * (self.lead.ndim - len(shape)) + shape)
        size = sent.nbytes + sum(other.nbytes for other in self.constants.values())
        if size > options.current.max_constant:
            raise NotPushed("it is made of an array that is here and larger than max_constant")
        if size * MIN_RATIO > prod(self.lead.shape) * self.lead.variable.stored.itemsize:
            raise NotPushed("it is made of an array that is here and not much smaller than what is stored")
        return sent

    def take(self, axis: int, part: slice) -> Inputs:
        """Selects a part of an axis of all inputs."""
        return Inputs(
            self.lead.take(axis, part),
            {name: leaf.take(axis, part) for name, leaf in self.others.items()},
            {name: sent.take(axis, part) for name, sent in self.constants.items()},
        )

    def variables(self) -> list[tuple[str, str, bool]]:
        """Returns the further variables for a request: name in the expression, name in the file, whether it is
        decoded."""
        return [(name, leaf.variable.name, leaf.variable.decoded) for name, leaf in self.others.items()]

    def sent_constants(self) -> list[tuple[str, str, list[int], bytes]]:
        """Returns the constants for a request: name, type, shape and little-endian bytes.

        Their axes are the axes of the file that no integer selects, in the order of the file.
        """
        return [(name, *self._sent_constant(sent.values())) for name, sent in self.constants.items()]

    def _sent_constant(self, array: NDArray[Any]) -> tuple[str, list[int], bytes]:
        lead = self.lead
        for axis, of_file in enumerate(lead.axes):
            take = None if of_file is None else lead.takes[of_file]
            if array.shape[axis] == 1 or not isinstance(take, IndexList):
                continue
            # The request selects a slice that contains all indices. Results for elements in between are dropped.
            start, stop, _ = take.hull()
            at = take.indices - start
            if len(np.unique(at)) != len(at):
                raise NotPushed("an element is picked several times")
            wide = np.zeros((*array.shape[:axis], stop - start, *array.shape[axis + 1 :]), array.dtype)
            wide[(slice(None),) * axis + (at,)] = array
            array = wide
        there = [axis for axis, of_file in enumerate(lead.axes) if of_file is not None]
        there.sort(key=lambda axis: lead.axes[axis])  # type: ignore[arg-type, return-value]
        array = array.transpose(there + [axis for axis in range(array.ndim) if axis not in there])
        array = array.reshape(array.shape[: len(there)])
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        return TYPES[array.dtype], list(array.shape), little.tobytes()

    @property
    def key(self) -> Hashable:
        """Equal for equal inputs, if the leads are equal."""
        given = [(name, dtype, tuple(shape), sha256(raw).digest()) for name, dtype, shape, raw in self.sent_constants()]
        return tuple(self.variables()), tuple(given)


def _takes_key(leaf: Leaf) -> Hashable:
    """Returns a key of the selection of a leaf, for any variable."""
    return tuple(take.key if isinstance(take, IndexList) else take for take in leaf.takes), leaf.axes


def find_inputs(node: Node) -> Inputs:
    """Returns the inputs of a tree. The lead is the first leaf that has the shape of the tree.

    Raises :class:`NotPushed` if there is no such leaf.
    """
    leaves = {leaf.key: leaf for leaf in node.leaves()}
    lead = next((leaf for leaf in leaves.values() if leaf.shape == node.shape), None)
    if lead is None:
        raise NotPushed("it is repeated along an axis" if leaves else "it is made of arrays that are here")
    return Inputs(lead)
