"""Methods of NumPy's arrays that change axes and shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import shapes
from .properties import ArrayProperties

if TYPE_CHECKING:
    from .array import Array


class ShapeMethods(ArrayProperties):
    """Methods of :class:`gristmill.Array` that change its axes or its shape."""

    __slots__ = ()

    @property
    def T(self) -> Array:  # noqa: N802
        """The array with its axes in reverse order, an :class:`Array`."""
        return self.transpose()

    def transpose(self, *axes: Any) -> Array:
        """Returns the array with its axes in another order, the reverse order if none is given.

        ``axes`` are the numbers of all axes, or one sequence of them.

        >>> a.transpose(1, 0).shape
        (4, 3)

        Raises ``ValueError`` if an axis is missing or given twice.
        """
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return shapes.transpose(cast("Array", self), tuple(order) if order else None)

    def reshape(self, *shape: Any, order: str = "C") -> Array:
        """Returns the array in another shape. ``shape`` has lengths, or is one tuple of them.

        >>> a.reshape(3, 2, 2).shape
        (3, 2, 2)

        Raises ``ValueError`` if the number of elements differs.
        """
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        return shapes.reshape(cast("Array", self), wanted, order)

    def ravel(self, order: str = "C") -> Array:
        """Returns the array with one axis of all elements: its shape is ``(size,)``.

        >>> a.ravel().shape
        (12,)
        """
        return self.reshape((self.size,), order=order)

    def flatten(self, order: str = "C") -> Array:
        """Returns the array with one axis of all elements: its shape is ``(size,)``.

        >>> a.flatten().shape
        (12,)
        """
        return self.ravel(order)

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Returns the array with two axes exchanged.

        >>> a.swapaxes(0, 1).shape
        (4, 3)
        """
        order = list(range(self.ndim))
        one, other = shapes.normalize_axes((axis1, axis2), self.ndim)
        order[one], order[other] = order[other], order[one]
        return self.transpose(order)

    def take(self, indices: Any, axis: Any = None) -> Any:
        """Returns the elements of an axis at these indices, an integer or an array of integers of one axis.

        Without ``axis`` the elements are read, and the result is an array of NumPy.

        >>> np.asarray(a.take([2, 0], axis=0)[:, 1])
        array([9., 1.])

        Raises ``IndexError`` if an index is outside the axis.
        """
        return shapes.take(self, indices, axis)

    def squeeze(self, axis: Any = None) -> Array:
        """Returns the array without axes of length 1, or without those that ``axis`` names.

        >>> a[:1].squeeze().shape
        (4,)

        Raises ``ValueError`` if ``axis`` names a longer axis.
        """
        return shapes.squeeze(cast("Array", self), axis)
