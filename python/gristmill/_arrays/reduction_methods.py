"""Methods of NumPy's arrays that reduce axes. They run where the data is stored, if possible."""

from __future__ import annotations

from typing import Any

from .reductions import reduction


class ReductionMethods:
    """The reductions of :class:`gristmill.Array`."""

    __slots__ = ()

    def mean(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        """Returns the mean, as :func:`numpy.mean` does. :func:`numpy.nanmean` leaves out missing elements.

        It is float32 for float32, and float64 for other types.

        >>> a.mean(axis=1)
        array([1.5, 5.5, 9.5])
        """
        return reduction("mean", self, axis, dtype=dtype, keepdims=keepdims, **more)

    def sum(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        """Returns the sum, as :func:`numpy.sum` does. :func:`numpy.nansum` leaves out missing elements.

        A sum of floats has their type, and a sum of integers has 64 bits.

        Raises :class:`DataError` if a sum of integers does not fit.

        >>> a.sum(axis=0)
        array([12., 15., 18., 21.])
        """
        return reduction("sum", self, axis, dtype=dtype, keepdims=keepdims, **more)

    def std(self, axis: Any = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, **more: Any) -> Any:
        """Returns the standard deviation, as :func:`numpy.std` does. :func:`numpy.nanstd` leaves out missing elements.

        It is float32 for float32, and float64 for other types. ``ddof`` is subtracted from the number of elements.

        >>> a.std(axis=1).round(3)
        array([1.118, 1.118, 1.118])
        """
        return reduction("std", self, axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **more)

    def var(self, axis: Any = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, **more: Any) -> Any:
        """Returns the variance, as :func:`numpy.var` does. :func:`numpy.nanvar` leaves out missing elements.

        It is float32 for float32, and float64 for other types. ``ddof`` is subtracted from the number of elements.

        >>> a.var(axis=1)
        array([1.25, 1.25, 1.25])
        """
        return reduction("var", self, axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **more)

    def min(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        """Returns the minimum, as :func:`numpy.min` does. :func:`numpy.nanmin` leaves out missing elements.

        It has the type of the elements. Raises ``ValueError`` if there are none.

        >>> a.min(axis=1)
        array([0., 4., 8.])
        """
        return reduction("min", self, axis, keepdims=keepdims, **more)

    def max(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        """Returns the maximum, as :func:`numpy.max` does. :func:`numpy.nanmax` leaves out missing elements.

        It has the type of the elements. Raises ``ValueError`` if there are none.

        >>> a.max(axis=1)
        array([ 3.,  7., 11.])
        """
        return reduction("max", self, axis, keepdims=keepdims, **more)

    def argmin(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        """Returns the position of the minimum, as :func:`numpy.argmin` does. :func:`numpy.nanargmin` leaves out
        missing elements.

        Positions are int64. ``axis`` is one axis, or ``None`` for the position among all elements. Raises
        ``ValueError`` if there are no elements.

        >>> a.argmin(axis=1)
        array([0, 0, 0])
        """
        return reduction("argmin", self, axis, keepdims=keepdims, **more)

    def argmax(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        """Returns the position of the maximum, as :func:`numpy.argmax` does. :func:`numpy.nanargmax` leaves out
        missing elements.

        Positions are int64. ``axis`` is one axis, or ``None`` for the position among all elements. Raises
        ``ValueError`` if there are no elements.

        >>> a.argmax(axis=1)
        array([3, 3, 3])
        """
        return reduction("argmax", self, axis, keepdims=keepdims, **more)

    def any(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        """Returns whether any element is true, as bool, as :func:`numpy.any` does.

        >>> (a > 8).any(axis=1)
        array([False, False,  True])
        """
        return reduction("any", self, axis, keepdims=keepdims, **more)

    def all(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        """Returns whether all elements are true, as bool, as :func:`numpy.all` does.

        >>> (a > 3).all(axis=1)
        array([False,  True,  True])
        """
        return reduction("all", self, axis, keepdims=keepdims, **more)
