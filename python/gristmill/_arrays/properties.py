"""Properties of an array. They are known before any element is read."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from .._expressions.nodes import Node


class ArrayProperties:
    """The expression of a :class:`gristmill.Array`, and the properties that follow from it."""

    __slots__ = ("_node",)

    _node: Node

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis, as a tuple of integers."""
        return self._node.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements, a ``numpy.dtype``."""
        return self._node.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements in memory."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of an element in memory."""
        return self.dtype.itemsize

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes in the file, a tuple of text, with ``dim_N`` for axes without a name."""
        leaf = next(self._node.leaves(), None)
        if leaf is None or leaf.ndim != self.ndim:
            return tuple(f"dim_{axis}" for axis in range(self.ndim))
        names = leaf.variable.dims
        return tuple(
            names[axis] if axis is not None and axis < len(names) and names[axis] else f"dim_{at}"
            for at, axis in enumerate(leaf.axes)
        )

    @property
    def storage_chunks(self) -> tuple[int, ...]:
        """Length of a chunk of the file along each axis, as a tuple of integers."""
        leaf = next(self._node.leaves(), None)
        if leaf is None or leaf.ndim != self.ndim:
            return self.shape
        chunks = leaf.variable.chunks
        return tuple(1 if axis is None else min(chunks[axis], length) for axis, length in zip(leaf.axes, self.shape))
