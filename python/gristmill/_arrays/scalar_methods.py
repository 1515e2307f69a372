"""Conversions of arrays with one element to numbers of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .properties import ArrayProperties

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ScalarMethods(ArrayProperties):
    """The conversions of :class:`gristmill.Array` to a number. They read the element."""

    __slots__ = ()

    def _read(self, operation: str) -> NDArray[Any]:
        raise NotImplementedError

    def _scalar(self, name: str) -> Any:
        """Returns the only element, for an operation of this name.

        Raises ``TypeError`` if there are several elements.
        """
        if self.size != 1:
            raise TypeError(f"an array of {self.size} elements is no {name}")
        return self._read(name).reshape(-1)[0]

    def item(self) -> Any:
        """Returns the only element as a number of Python.

        >>> a[2, 3].item()
        11.0

        Raises ``TypeError`` if there are several elements or none.
        """
        return self._scalar("item").item()

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
