"""Element types as NumPy and as Gristmill name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._errors import Usage

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

NAMES = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64")

#: Names that mean bits to one and bytes to the other.
_AMBIGUOUS = {"i8": ("int8", "int64"), "u8": ("uint8", "uint64")}


def name_of(given: DTypeLike) -> tuple[str, bool | None]:
    """Gristmill's name of an element type, and whether it is big-endian where the type says so.

    >>> name_of("f64"), name_of(">f4"), name_of("<i8")
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

    wrong = f"type={given!r} is no element type; use one of {' '.join(NAMES)}, or a NumPy dtype of these"
    try:
        dtype = np.dtype(given)
    except TypeError as error:
        raise Usage(wrong) from error
    name = f"{dtype.kind}{8 * dtype.itemsize}"
    if name not in NAMES:
        raise Usage(wrong)
    # '=' is native and says nothing unless it was asked for by sign; '|' is one byte.
    explicit = isinstance(given, str) and given[:1] in "<>"
    if dtype.byteorder == ">":
        return name, True
    return name, False if explicit and dtype.itemsize > 1 else None


def numpy_code(name: str) -> str:
    """NumPy's code of a little-endian element type: ``<f8`` for ``f64``."""
    return f"<{name[0]}{int(name[1:]) // 8}"
