"""Arrays whose elements stay where they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _functions, _html, _options, _shapes, _shown
from ._blocks import Blocks
from ._evaluate import evaluate
from ._expr import MAX_DEPTH, Const, Leaf, Node, apply, cast
from ._groups import announce
from ._indexing import index
from ._methods import Methods
from ._reductions import reduction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._source import Variable


class Array(Methods, np.lib.mixins.NDArrayOperatorsMixin):
    """An array of a file, or what is made of some: NumPy's functions take it.

    Slices and elementwise operations compute nothing. Reductions (``mean``, ``std``, ``argmax`` ...) run where the data is
    stored and give an array of NumPy. Everything else, ``numpy.asarray`` above all, reads the elements; see
    :class:`set_options` for how to hear of that.

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
    """

    __slots__ = ("_node",)
    # Before arrays of NumPy, and before nothing of xarray.
    __array_priority__ = 20

    def __init__(self, node: Node) -> None:
        if node.depth > MAX_DEPTH:
            _options.fell_back("expression", f"more than {MAX_DEPTH} operations are one in the other")
            node = Const(evaluate(node))
        self._node = node

    @classmethod
    def of(cls, variable: Variable) -> Array:
        """A whole variable."""
        return cls(Leaf.whole(variable))

    def in_blocks(self, chunks: tuple[tuple[int, ...], ...]) -> Array:
        """The same for dask, which asks for it block by block: lengths of the blocks along each axis. What is asked about
        one block is asked about neighbours with it, ahead."""
        node = self._node
        if not isinstance(node, Leaf) or node.axes != tuple(range(len(node.takes))):
            return self
        starts = [take[0] for take in node.takes if isinstance(take, tuple) and take[2] == 1]
        if len(starts) != self.ndim:
            return self
        return Array(Leaf(node.variable, node.takes, node.axes, Blocks(chunks, starts)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self._node.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._node.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of its axes in the file."""
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
        """Lengths of a chunk of the file, for each axis."""
        leaf = next(self._node.leaves(), None)
        if leaf is None or leaf.ndim != self.ndim:
            return self.shape
        chunks = leaf.variable.chunks
        return tuple(1 if axis is None else min(chunks[axis], length) for axis, length in zip(leaf.axes, self.shape))

    @property
    def T(self) -> Array:  # noqa: N802
        return self.transpose()

    @property
    def real(self) -> Array:
        return elementwise("real", np.real, self) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self._write("setitem", lambda values: setattr(values, "real", value))

    @property
    def imag(self) -> Array:
        if self.dtype.kind == "c":
            return elementwise("imag", np.imag, self)
        return Array(Const(np.broadcast_to(np.zeros((), self.dtype), self.shape)))

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError(f"elements of {self.dtype} have no imaginary part to set")
        self._write("setitem", lambda values: setattr(values, "imag", value))

    def conj(self) -> Array:
        return elementwise("conjugate", np.conjugate, self) if self.dtype.kind == "c" else self

    conjugate = conj

    def __repr__(self) -> str:
        return _shown.in_short(self)

    def __str__(self) -> str:
        return _shown.text(_shown.of_array(self), "gristmill.Array")

    def _repr_html_(self) -> str:
        return _html.array(self)

    def _repr_inline_(self, max_width: int) -> str:
        # In the tables of xarray.
        return _shown.inline(self, max_width)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        # With one question, not one for each element.
        return iter(self._read("iteration"))

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, Array):
            key = key._read("getitem")
        elif isinstance(key, tuple):
            key = tuple(one._read("getitem") if isinstance(one, Array) else one for one in key)
        node = index(self._node, key)
        announce(self._node, node)
        return Array(node)

    def _write(self, operation: str, write: Callable[[NDArray[Any]], Any]) -> None:
        values = np.array(self._read(operation))
        write(values)
        self._node = Const(values)

    def _read(self, operation: str) -> NDArray[Any]:
        """The values, for an operation that cannot do without."""
        if 0 not in self.shape and next(self._node.leaves(), None) is not None:
            _options.fell_back(operation, "it needs the elements")
        return evaluate(self._node)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("the elements are not here, so they cannot be had without a copy")
        values = self._read("asarray")
        # What is kept for later must not be written to.
        return np.array(values, dtype=dtype)

    def _scalar(self, name: str) -> Any:
        if self.size != 1:
            raise TypeError(f"an array of {self.size} elements is no {name}")
        return self._read(name).reshape(-1)[0]

    def __format__(self, spec: str) -> str:
        return format(self._scalar("format"), spec) if spec else str(self)

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __index__(self) -> int:
        return int(self._scalar("index").__index__())

    def item(self) -> Any:
        """The one element that there is."""
        return self._scalar("item").item()

    def __pow__(self, other: Any) -> Any:
        if self.dtype == bool and type(other) is int and other == 2:
            # NumPy's operator makes a square of it, whose type is another one than that of its power.
            return elementwise("square", np.square, self)
        return super().__pow__(other)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _functions.ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _functions.function(function, args, kwargs)

    def astype(self, dtype: Any, order: str = "K", **_: Any) -> Any:
        """The same values in another type. An array of NumPy with ``order="C"`` or ``"F"``, as elements have an order in
        memory, and of text."""
        if order in ("C", "F") or np.dtype(dtype).kind in "OSU":
            return np.asarray(self).astype(dtype, order=order)  # type: ignore[call-overload]
        node = cast(self._node, np.dtype(dtype))
        return self if node is self._node else Array(node)

    def copy(self, order: str = "C") -> Array:
        return Array(self._node)

    def view(self, dtype: Any = None) -> NDArray[Any]:
        """The elements in memory, their bytes taken for those of another type: for who writes them, as zarr does."""
        return np.asarray(self).view(self.dtype if dtype is None else dtype)

    def transpose(self, *axes: Any) -> Array:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return _shapes.transpose(self, tuple(order) if order else None)

    def reshape(self, *shape: Any, order: str = "C") -> Array:
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        return _shapes.reshape(self, wanted, order)

    def ravel(self, order: str = "C") -> Array:
        """One axis of all elements."""
        return self.reshape((self.size,), order=order)

    def flatten(self, order: str = "C") -> Array:
        return self.ravel(order)

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        order = list(range(self.ndim))
        order[axis1], order[axis2] = order[axis2], order[axis1]
        return self.transpose(order)

    def take(self, indices: Any, axis: Any = None) -> Any:
        """Elements of an axis."""
        return _shapes.take(self, indices, axis)

    def squeeze(self, axis: Any = None) -> Array:
        return _shapes.squeeze(self, axis)

    def round(self, decimals: int = 0) -> Array:
        return _functions.rounded(self, decimals)

    def clip(self, min: Any = None, max: Any = None) -> Array:
        return _functions.clip(self, min, max)

    def mean(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        """The mean, NaN where an element is NaN; :func:`numpy.nanmean` leaves these out."""
        return reduction("mean", self, axis, dtype=dtype, keepdims=keepdims, **more)

    def sum(self, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        return reduction("sum", self, axis, dtype=dtype, keepdims=keepdims, **more)

    def std(self, axis: Any = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, **more: Any) -> Any:
        return reduction("std", self, axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **more)

    def var(self, axis: Any = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, **more: Any) -> Any:
        return reduction("var", self, axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **more)

    def min(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        return reduction("min", self, axis, keepdims=keepdims, **more)

    def max(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        return reduction("max", self, axis, keepdims=keepdims, **more)

    def argmin(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        return reduction("argmin", self, axis, keepdims=keepdims, **more)

    def argmax(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        return reduction("argmax", self, axis, keepdims=keepdims, **more)

    def any(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        return reduction("any", self, axis, keepdims=keepdims, **more)

    def all(self, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Any:
        return reduction("all", self, axis, keepdims=keepdims, **more)


def node_of(value: Any) -> Node:
    """What an argument of an operation is in a tree."""
    return value._node if isinstance(value, Array) else Const.kept(value)


def elementwise(name: str, function: Any, *args: Any) -> Array:
    """An elementwise operation, not computed."""
    return Array(apply(name, function, [node_of(arg) for arg in args]))
