"""Arrays whose elements stay where they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._expressions.blocks import Blocks
from .._expressions.evaluation import evaluate
from .._expressions.indexing import index
from .._expressions.nodes import MAX_DEPTH, Const, Leaf, Node, apply, cast
from .._requests import tracing
from . import descriptions, functions, html
from .groupby_loops import mark_groups_of_loop
from .reading_methods import ReadingMethods
from .reduction_methods import ReductionMethods
from .scalar_methods import ScalarMethods
from .shape_methods import ShapeMethods

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._variables.variable import Variable


class Array(ReadingMethods, ScalarMethods, ShapeMethods, ReductionMethods, np.lib.mixins.NDArrayOperatorsMixin):
    """An array of a file, or an expression of such arrays. NumPy's functions take it.

    Slices and elementwise operations are recorded, and compute nothing. Reductions (``mean``, ``std``, ``argmax``
    ...) run where the data is stored, and give an array or a scalar of NumPy. All other operations, and
    ``numpy.asarray``, read the elements; the option ``fallback`` of :class:`set_options` can report or refuse that.

    Operations that send requests raise :class:`Stale` if the file was replaced, :class:`Denied`, :class:`DataError`
    if the data allow no answer, and :class:`Unavailable` if a node does not answer.

    A reduction takes ``axis`` (an integer, a tuple of integers, or ``None`` for all axes) and ``keepdims``. The result
    has the shape without these axes, or with length 1 for them if ``keepdims`` is true. Without any axis it is a
    scalar. Further arguments are those of NumPy's function. An axis that the array does not have raises
    ``IndexError``.

    >>> import gristmill as gm, numpy as np
    >>> np.save("field.npy", np.arange(12.0).reshape(3, 4))
    >>> a = gm.open_arrays("field.npy")["data"]
    >>> a
    <gristmill.Array (3, 4) float64>
    [[ 0.  1.  2.  3.]
     [ 4.  5.  6.  7.]
     [ 8.  9. 10. 11.]]
    >>> float((a[1:] * 2).mean())
    15.0
    >>> np.nanmax(a, axis=0)
    array([ 8.,  9., 10., 11.])
    >>> a.shape, a.ndim, a.size, a.dtype, a.itemsize, a.nbytes
    ((3, 4), 2, 12, dtype('float64'), 8, 96)
    >>> a.dims, a.storage_chunks
    (('dim_0', 'dim_1'), (3, 4))
    >>> a.T.shape, float(a.real.max()), float(a.imag.max())
    ((4, 3), 11.0, 0.0)

    The examples of the methods use this ``a``.
    """

    __slots__ = ()
    # Higher than arrays of NumPy, lower than classes of xarray.
    __array_priority__ = 20

    def __init__(self, node: Node) -> None:
        if node.depth > MAX_DEPTH:
            tracing.record_fallback("expression", f"more than {MAX_DEPTH} operations are nested")
            node = Const(evaluate(node))
        self._node = node

    @classmethod
    def _from_variable(cls, variable: Variable) -> Array:
        """Makes the array of a whole variable."""
        return cls(Leaf.whole(variable))

    def in_blocks(self, chunks: tuple[tuple[int, ...], ...]) -> Array:
        """Returns the array for dask, with blocks of these lengths along each axis.

        ``chunks`` has a tuple of lengths for each axis. Shape and type stay. A request about one block is then sent
        for its neighbours, too. An expression is returned as it is.

        >>> a.in_blocks(((2, 1), (4,))).shape
        (3, 4)
        """
        node = self._node
        if not isinstance(node, Leaf) or node.axes != tuple(range(len(node.takes))):
            return self
        starts = [take[0] for take in node.takes if isinstance(take, tuple) and take[2] == 1]
        if len(starts) != self.ndim:
            return self
        return Array(Leaf(node.variable, node.takes, node.axes, Blocks(chunks, starts)))

    @property
    def real(self) -> Array:
        """The real part, an :class:`Array` of the same shape."""
        return elementwise("real", np.real, self) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self._write("setitem", lambda values: setattr(values, "real", value))

    @property
    def imag(self) -> Array:
        """The imaginary part, an :class:`Array` of the same shape. It is 0 for real numbers.

        Setting it raises ``TypeError`` for real numbers.
        """
        if self.dtype.kind == "c":
            return elementwise("imag", np.imag, self)
        return Array(Const(np.broadcast_to(np.zeros((), self.dtype), self.shape)))

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError(f"elements of {self.dtype} have no imaginary part to set")
        self._write("setitem", lambda values: setattr(values, "imag", value))

    def conj(self) -> Array:
        """Returns the complex conjugate, an array of the same shape and type. Real numbers stay as they are.

        >>> np.asarray(a[0].conj())
        array([0., 1., 2., 3.])
        """
        return elementwise("conjugate", np.conjugate, self) if self.dtype.kind == "c" else self

    conjugate = conj

    def __repr__(self) -> str:
        return descriptions.short_text(self)

    def __str__(self) -> str:
        return descriptions.facts_text(descriptions.array_facts(self), "gristmill.Array")

    def _repr_html_(self) -> str:
        return html.array_page(self)

    def _repr_inline_(self, max_width: int) -> str:
        # xarray calls this for its tables.
        return descriptions.inline_text(self, max_width)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        # One request reads all elements.
        return iter(self._read("iteration"))

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, Array):
            key = key._read("getitem")
        elif isinstance(key, tuple):
            key = tuple(one._read("getitem") if isinstance(one, Array) else one for one in key)
        node = index(self._node, key, lambda: self.dims)
        mark_groups_of_loop(self._node, node)
        return Array(node)

    def _write(self, operation: str, write: Callable[[NDArray[Any]], Any]) -> None:
        values = np.array(self._read(operation))
        write(values)
        self._node = Const(values)

    def _read(self, operation: str) -> NDArray[Any]:
        """Returns the values, for an operation that needs them.

        Raises :class:`PushdownError` if the option ``fallback`` is ``"error"``.
        """
        if 0 not in self.shape and next(self._node.leaves(), None) is not None:
            tracing.record_fallback(operation, "it needs the elements")
        return evaluate(self._node)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("the elements are not in memory, so a copy cannot be avoided; leave out copy=False")
        values = self._read("asarray")
        # A copy, because callers must not write to the cache.
        return np.array(values, dtype=dtype)

    def __pow__(self, other: Any) -> Any:
        if self.dtype == bool and type(other) is int and other == 2:
            # NumPy's operator computes a square, whose type differs from that of the power.
            return elementwise("square", np.square, self)
        return super().__pow__(other)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return functions.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return functions.call_function(function, args, kwargs)

    def astype(self, dtype: Any, order: str = "K", **_: Any) -> Any:
        """Returns the values in another type, as an array of the same shape.

        The result is an array of NumPy for text, and for ``order="C"`` or ``"F"``, which is an order in memory.

        >>> a.astype("float32").dtype
        dtype('float32')

        Raises ``TypeError`` if NumPy has no such type.
        """
        if order in ("C", "F") or np.dtype(dtype).kind in "OSU":
            return np.asarray(self).astype(dtype, order=order)  # type: ignore[call-overload]
        node = cast(self._node, np.dtype(dtype))
        return self if node is self._node else Array(node)

    def copy(self, order: str = "C") -> Array:
        """Returns another array with the same expression, shape and type. No element is read.

        >>> a.copy() is a, a.copy().shape
        (False, (3, 4))
        """
        return Array(self._node)

    def view(self, dtype: Any = None) -> NDArray[Any]:
        """Reads the elements and returns an array of NumPy with their bytes as another type.

        Writers such as zarr need this. The last axis has another length if the type has another size.

        >>> a.view("uint8").shape
        (3, 32)
        """
        return np.asarray(self).view(self.dtype if dtype is None else dtype)

    def round(self, decimals: int = 0) -> Array:
        """Returns the values, rounded to a number of decimals, as an array of the same shape and type.

        >>> np.asarray((a[0] / 3).round(1))
        array([0. , 0.3, 0.7, 1. ])
        """
        return functions.round_array(self, decimals)

    def clip(self, min: Any = None, max: Any = None) -> Array:
        """Returns the values, limited to a minimum and a maximum, as an array of the same shape.

        The limits are numbers or arrays that broadcast to the shape; ``None`` is no limit.

        >>> np.asarray(a[0].clip(1, 2))
        array([1., 1., 2., 2.])
        """
        return functions.clip(self, min, max)


def node_of(value: Any) -> Node:
    """Returns the node of an argument of an operation."""
    return value._node if isinstance(value, Array) else Const.copied(value)


def elementwise(name: str, function: Any, *args: Any) -> Array:
    """An elementwise operation, not computed."""
    return Array(apply(name, function, [node_of(arg) for arg in args]))
