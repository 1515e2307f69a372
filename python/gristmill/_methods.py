"""Methods of NumPy's arrays that need the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Methods that are functions of NumPy by the same name.
READING = (
    ["argpartition", "argsort", "choose", "cumprod", "cumsum", "diagonal", "dot", "nonzero", "prod", "repeat"]
    + ["searchsorted", "trace"]
)  # fmt: skip

#: Methods that write into the array.
WRITING = ("fill", "partition", "put", "sort")


class Methods:
    """What :class:`gristmill.Array` does as NumPy's arrays do it, with elements that are read."""

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
        """Writes into the elements, which are here from then on."""
        raise NotImplementedError

    def __setitem__(self, key: Any, value: Any) -> None:
        """Reads all elements: from now on the array is here. What was made of it before stays what it was."""
        self._write("setitem", lambda values: values.__setitem__(key, value))

    def tobytes(self, order: Any = "C") -> bytes:
        return self._read("tobytes").tobytes(order)

    def tolist(self) -> Any:
        return self._read("tolist").tolist()

    def compress(self, condition: Any, axis: Any = None) -> Any:
        return np.compress(condition, self, axis)  # type: ignore[call-overload]


def _reading(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: Methods, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"As :func:`numpy.{name}`: reads the elements."
    return method


def _writing(name: str) -> Callable[..., None]:
    def method(self: Methods, *args: Any, **kwargs: Any) -> None:
        self._write(name, lambda values: getattr(values, name)(*args, **kwargs))

    method.__name__, method.__doc__ = name, f"As :meth:`numpy.ndarray.{name}`: the elements are read, and here from now on."
    return method


for _name in READING:
    setattr(Methods, _name, _reading(_name))
for _name in WRITING:
    setattr(Methods, _name, _writing(_name))
