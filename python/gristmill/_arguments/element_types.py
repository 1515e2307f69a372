"""Names of element types in NumPy and in Gristmill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import Usage

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

NAMES = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64")

#: Names that count bits in Gristmill and bytes in NumPy.
_AMBIGUOUS = {"i8": ("int8", "int64"), "u8": ("uint8", "uint64")}


def element_type_name(given: DTypeLike) -> tuple[str, bool | None]:
    """Returns Gristmill's name of an element type, and whether it is big-endian, or ``None`` if the type does not say.

    Raises :class:`Usage` if Gristmill has no such type, or if the name is ambiguous.

    >>> element_type_name("f64"), element_type_name(">f4"), element_type_name("<i8")
    (('f64', None), ('f32', True), ('i64', False))
    """
    if isinstance(given, str):
        if given in _AMBIGUOUS:
            bits, bytes_ = _AMBIGUOUS[given]
            raise Usage(
                f"type={given!r} is eight bits to Gristmill and eight bytes to NumPy; "
                f"write {bits!r} or {bytes_!r}, or give a NumPy dtype"
            )
        if given in NAMES:
            return given, None
    import numpy as np

    wrong = f"type={given!r} is not an element type; use one of {' '.join(NAMES)}, or a NumPy dtype of these"
    try:
        dtype = np.dtype(given)
    except TypeError as error:
        raise Usage(wrong) from error
    name = f"{dtype.kind}{8 * dtype.itemsize}"
    if name not in NAMES:
        raise Usage(wrong)
    # '=' is the native order, which counts only if the caller wrote '<' or '>'. '|' is a type of one byte.
    explicit = isinstance(given, str) and given[:1] in "<>"
    if dtype.byteorder == ">":
        return name, True
    return name, False if explicit and dtype.itemsize > 1 else None


def numpy_code(name: str) -> str:
    """Returns NumPy's code of a little-endian element type: ``<f8`` for ``f64``."""
    return f"<{name[0]}{int(name[1:]) // 8}"
