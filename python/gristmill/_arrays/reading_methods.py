"""Methods of NumPy's arrays that read the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Methods that call the function of NumPy with the same name.
READING = (
    ["argpartition", "argsort", "choose", "cumprod", "cumsum", "diagonal", "dot", "nonzero", "prod", "repeat"]
    + ["searchsorted", "trace"]
)  # fmt: skip

#: Methods that change the array.
WRITING = ("fill", "partition", "put", "sort")


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
        """Reads the elements and returns their bytes."""
        return self._read("tobytes").tobytes(order)

    def tolist(self) -> Any:
        """Reads the elements and returns them as nested lists."""
        return self._read("tolist").tolist()

    def compress(self, condition: Any, axis: Any = None) -> Any:
        """Reads the elements and returns those for which the condition is true."""
        return np.compress(condition, self, axis)  # type: ignore[call-overload]


def _reading(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: ReadingMethods, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"Reads the elements and calls :func:`numpy.{name}`."
    return method


def _writing(name: str) -> Callable[..., None]:
    def method(self: ReadingMethods, *args: Any, **kwargs: Any) -> None:
        self._write(name, lambda values: getattr(values, name)(*args, **kwargs))

    method.__name__ = name
    method.__doc__ = f"Reads the elements and changes them in memory, as :meth:`numpy.ndarray.{name}` does."
    return method


for _name in READING:
    setattr(ReadingMethods, _name, _reading(_name))
for _name in WRITING:
    setattr(ReadingMethods, _name, _writing(_name))
