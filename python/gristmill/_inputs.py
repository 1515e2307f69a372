"""What an expression reads beside the leaf that leads it: further variables, and arrays that travel with the request."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _options
from ._evaluate import read
from ._expr import Const, Leaf, Node, Picked

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most inputs of an expression; see ``array::MAX_INPUTS``.
MAX_INPUTS = 16

#: How many times the bytes of constants the bytes of the variables are at least.
FAR_LESS = 4

#: Names that storage nodes have for the types of elements.
TYPES = {
    np.dtype(bool): "bool",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
} | {np.dtype(f"{kind}{size}"): f"{kind}{8 * size}" for kind in "iu" for size in (1, 2, 4, 8)}


class NotPushed(Exception):  # noqa: N818
    """Something cannot run where the data is stored; the message says why."""


@dataclass(frozen=True)
class Sent:
    """An array that travels: the values of a node that is here or small, read when they are needed."""

    node: Node
    #: With as many axes as the lead, and length 1 where it is repeated along one.
    shape: tuple[int, ...]
    #: What is taken of its axes, one after the other.
    parts: tuple[tuple[int, slice], ...] = ()

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.node.dtype.itemsize

    def take(self, axis: int, part: slice) -> Sent:
        """Less of an axis."""
        if self.shape[axis] == 1:
            return self
        length = len(range(self.shape[axis])[part])
        shape = (*self.shape[:axis], length, *self.shape[axis + 1 :])
        return Sent(self.node, shape, (*self.parts, (axis, part)))

    def values(self) -> NDArray[Any]:
        value = np.asarray(read(self.node) if isinstance(self.node, Leaf) else self.node.value)  # type: ignore[attr-defined]
        value = value.reshape((1,) * (len(self.shape) - value.ndim) + value.shape)
        for axis, part in self.parts:
            value = value[(slice(None),) * axis + (part,)]
        return value


@dataclass
class Inputs:
    """The inputs of an expression over leaves of one shape. Axes are those of the lead, which is called ``x``."""

    lead: Leaf
    #: Further variables, of which the same is taken, by their names in the expression.
    others: dict[str, Leaf] = field(default_factory=dict)
    #: Arrays that are repeated along some axes, by theirs.
    constants: dict[str, Sent] = field(default_factory=dict)
    _names: dict[Hashable, str] = field(default_factory=dict)

    def name(self, node: Node) -> str:
        """What an expression calls a leaf, or an array that is here; it is an input from now on."""
        if node.key == self.lead.key:
            return "x"
        if node.key not in self._names:
            self._names[node.key] = self._added(node)
        return self._names[node.key]

    def _added(self, node: Node) -> str:
        if len(self.others) + len(self.constants) + 1 >= MAX_INPUTS:
            raise NotPushed(f"it is made of more than {MAX_INPUTS} parts of variables and arrays")
        if isinstance(node, Leaf) and node.shape == self.lead.shape:
            self._same(node)
            name = f"y{len(self.others) + 1}"
            self.others[name] = node
            return name
        name = f"c{len(self.constants) + 1}"
        self.constants[name] = self._laid(node)
        return name

    def _same(self, leaf: Leaf) -> None:
        """Refuses a leaf whose elements do not lie where the lead's do."""
        one, other = self.lead.variable, leaf.variable
        names = ", ".join(sorted({one.name, other.name}))
        if one.source.origin != other.source.origin:
            raise NotPushed(f"it is made of variables of several files: {names}")
        if (one.shape, _taken(self.lead)) != (other.shape, _taken(leaf)):
            raise NotPushed(f"it is made of several parts of variables: {names}")

    def _laid(self, node: Node) -> Sent:
        """An array over the axes of the lead, small enough to travel."""
        if node.dtype not in TYPES:
            raise NotPushed(f"{node.dtype} is no type that storage nodes compute in")
        shape = node.value.shape if isinstance(node, Const) else node.shape
        sent = Sent(node, (1,) * (self.lead.ndim - len(shape)) + shape)
        size = sent.nbytes + sum(other.nbytes for other in self.constants.values())
        if size > _options.current.max_constant:
            raise NotPushed("it is made of an array that is here and larger than max_constant")
        if size * FAR_LESS > prod(self.lead.shape) * self.lead.variable.stored.itemsize:
            raise NotPushed("it is made of an array that is here and not much smaller than what is stored")
        return sent

    def take(self, axis: int, part: slice) -> Inputs:
        """The same over less of an axis."""
        return Inputs(
            self.lead.take(axis, part),
            {name: leaf.take(axis, part) for name, leaf in self.others.items()},
            {name: sent.take(axis, part) for name, sent in self.constants.items()},
        )

    def variables(self) -> list[tuple[str, str, bool]]:
        """The further variables as a request names them."""
        return [(name, leaf.variable.name, leaf.variable.decoded) for name, leaf in self.others.items()]

    def given(self) -> list[tuple[str, str, list[int], bytes]]:
        """The constants as a request has them: over the axes of the file that are taken, in its order."""
        return [(name, *self._given(sent.values())) for name, sent in self.constants.items()]

    def _given(self, array: NDArray[Any]) -> tuple[str, list[int], bytes]:
        lead = self.lead
        for axis, of_file in enumerate(lead.axes):
            take = None if of_file is None else lead.takes[of_file]
            if array.shape[axis] == 1 or not isinstance(take, Picked):
                continue
            # The request takes the slice that holds all that is picked; of what lies between nothing is kept.
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
        """Equal for equal inputs beside leads that are equal."""
        given = [(name, dtype, tuple(shape), sha256(raw).digest()) for name, dtype, shape, raw in self.given()]
        return tuple(self.variables()), tuple(given)


def _taken(leaf: Leaf) -> Hashable:
    """What is taken of a variable, whichever it is."""
    return tuple(take.key if isinstance(take, Picked) else take for take in leaf.takes), leaf.axes


def inputs_of(node: Node) -> Inputs:
    """The inputs of a tree, led by the first leaf that has its shape."""
    leaves = {leaf.key: leaf for leaf in node.leaves()}
    lead = next((leaf for leaf in leaves.values() if leaf.shape == node.shape), None)
    if lead is None:
        raise NotPushed("it is repeated along an axis" if leaves else "it is made of arrays that are here")
    return Inputs(lead)
