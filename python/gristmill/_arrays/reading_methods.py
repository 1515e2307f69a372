"""Methods of NumPy's arrays that read the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Methods that call the function of NumPy with the same name: what they return, and an example with the array ``a`` of
#: the class.
READING = {
    "argpartition": (
        "indices that bring an element to its place in the order, and lesser ones before it, as an array of int64",
        ">>> int((-a[0]).argpartition(0)[0])\n3",
    ),
    "argsort": ("indices that sort an axis, as an array of int64", ">>> (-a[0]).argsort()\narray([3, 2, 1, 0])"),
    "choose": (
        "values of the choices whose numbers are the elements, as an array of the same shape",
        ">>> (a[0] > 1).choose([7, 8])\narray([7, 7, 8, 8])",
    ),
    "cumprod": (
        "products of the elements up to each one, along an axis or of all elements in one axis",
        ">>> a[1].cumprod()\narray([  4.,  20., 120., 840.])",
    ),
    "cumsum": (
        "sums of the elements up to each one, along an axis or of all elements in one axis",
        ">>> a[0].cumsum()\narray([0., 1., 3., 6.])",
    ),
    "diagonal": (
        "diagonal of two axes, as an array with one axis instead of them",
        ">>> a.diagonal()\narray([ 0.,  5., 10.])",
    ),
    "dot": (
        "matrix product with another array, whose first axis has the length of the last axis",
        ">>> a.dot(np.ones(4))\narray([ 6., 22., 38.])",
    ),
    "nonzero": (
        "indices of the elements that are not zero, as a tuple with an array of int64 for each axis",
        ">>> (a > 9).nonzero()\n(array([2, 2]), array([2, 3]))",
    ),
    "prod": (
        "product, a scalar or an array without the axes of ``axis``",
        ">>> a.prod(axis=1)\narray([   0.,  840., 7920.])",
    ),
    "repeat": (
        "elements, each several times, along an axis or all in one axis",
        ">>> a[0, :2].repeat(2)\narray([0., 0., 1., 1.])",
    ),
    "searchsorted": (
        "indices where values belong in an array with one sorted axis, as int64 in the shape of the values",
        ">>> a[0].searchsorted([0.5, 2.5])\narray([1, 3])",
    ),
    "trace": ("sum of the diagonal of two axes, a scalar for two axes", ">>> float(a.trace())\n15.0"),
}

#: Methods that change the array: what they do, and an example with the array ``a`` of the class.
WRITING = {
    "fill": ("sets all of them to a scalar", ">>> a.fill(7)\n>>> float(a.max())\n7.0"),
    "partition": (
        "brings an element to its place in the order of an axis, and lesser ones before it",
        ">>> b = -a[0]\n>>> b.partition(0)\n>>> float(b[0])\n-3.0",
    ),
    "put": (
        "sets those at some indices of one axis of all elements",
        ">>> a.put([0, 1], 7)\n>>> np.asarray(a[0])\narray([7., 7., 2., 3.])",
    ),
    "sort": ("sorts an axis", ">>> b = -a[0]\n>>> b.sort()\n>>> np.asarray(b)\narray([-3., -2., -1., -0.])"),
}

#: The last paragraph of the documentation of a method.
_RAISES = 'Raises :class:`gristmill.PushdownError` if the option ``fallback`` is ``"error"``, and what NumPy raises.'


class ReadingMethods:
    """Methods of :class:`gristmill.Array` that equal those of NumPy's arrays. They read the elements."""

    __slots__ = ()

    argpartition: Callable[..., Any]
    argsort: Callable[..., Any]
    choose: Callable[..., Any]
    cumprod: Callable[..., Any]
    cumsum: Callable[..., Any]
    diagonal: Callable[..., Any]
    dot: Callable[..., Any]
    nonzero: Callable[..., Any]
    prod: Callable[..., Any]
    repeat: Callable[..., Any]
    searchsorted: Callable[..., Any]
    trace: Callable[..., Any]
    fill: Callable[..., None]
    partition: Callable[..., None]
    put: Callable[..., None]
    sort: Callable[..., None]

    def _read(self, operation: str) -> NDArray[Any]:
        raise NotImplementedError

    def _write(self, operation: str, write: Callable[[NDArray[Any]], Any]) -> None:
        """Reads the elements and changes them. The array holds them in memory from then on."""
        raise NotImplementedError

    def __setitem__(self, key: Any, value: Any) -> None:
        """Reads all elements and changes them in memory. Arrays that were made from this one before do not change."""
        self._write("setitem", lambda values: values.__setitem__(key, value))

    def tobytes(self, order: Any = "C") -> bytes:
        """Reads the elements and returns their bytes, in the order of C or, with ``order="F"``, of Fortran.

        >>> a[0, :2].tobytes() == np.arange(2.0).tobytes()
        True
        """
        return self._read("tobytes").tobytes(order)

    def tolist(self) -> Any:
        """Reads the elements and returns them as nested lists, one level for each axis, of numbers of Python.

        >>> a[:2, :2].tolist()
        [[0.0, 1.0], [4.0, 5.0]]
        """
        return self._read("tolist").tolist()

    def compress(self, condition: Any, axis: Any = None) -> Any:
        """Reads the elements and returns those at the places of an axis where ``condition``, a list of bool, is true.

        Without ``axis`` the condition is for all elements in one axis. The result is an array of NumPy.

        >>> a.compress([True, False, True], axis=0)
        array([[ 0.,  1.,  2.,  3.],
               [ 8.,  9., 10., 11.]])
        """
        return np.compress(condition, self, axis)  # type: ignore[call-overload]


def _reading(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: ReadingMethods, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    returned, example = READING[name]
    method.__name__ = name
    text = f"Reads the elements and returns the {returned}; see :func:`numpy.{name}`."
    method.__doc__ = f"{text}\n\n{example}\n\n{_RAISES}"
    return method


def _writing(name: str) -> Callable[..., None]:
    def method(self: ReadingMethods, *args: Any, **kwargs: Any) -> None:
        self._write(name, lambda values: getattr(values, name)(*args, **kwargs))

    method.__name__ = name
    done, example = WRITING[name]
    text = f"Reads the elements and {done}, in memory and not in the file; see :meth:`numpy.ndarray.{name}`."
    method.__doc__ = f"{text}\n\n{example}\n\n{_RAISES}"
    return method


for _name in READING:
    setattr(ReadingMethods, _name, _reading(_name))
for _name in WRITING:
    setattr(ReadingMethods, _name, _writing(_name))
