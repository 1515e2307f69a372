"""Numbers of bytes: as callers give them, and as people read them."""

from __future__ import annotations

from typing import Union

from .._errors import Usage

_PRINTED_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size_text(size: float) -> str:
    """Formats a number of bytes for people.

    >>> size_text(122400), size_text(7)
    ('119.53 KiB', '7 B')
    """
    if size < 1024:
        return f"{size:.0f} B"
    for unit in _PRINTED_UNITS:
        size /= 1024
        if size < 1024 or unit == _PRINTED_UNITS[-1]:
            break
    return f"{size:.2f} {unit}"


#: A number of bytes, or text such as ``"64KiB"``.
Size = Union[int, str]
_PARSED_UNITS = {
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "PiB": 1 << 50,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "B": 1,
}


def parse_size(given: Size, name: str) -> int:
    """Returns a number of bytes from 0 to 2**64 - 1. ``name`` is the keyword that messages mention.

    Raises :class:`Usage` for anything else.
    """
    wrong = Usage(f"{name}={given!r} is not a size; give bytes, as 4096, or text, as '64KiB', '1MiB', '2GiB'")
    if isinstance(given, str):
        text = given.strip()
        unit = next((unit for unit in _PARSED_UNITS if text.endswith(unit)), "")
        digits = text.removesuffix(unit).rstrip()
        if not (digits.isascii() and digits.isdigit()):
            raise wrong
        number = int(digits) * _PARSED_UNITS.get(unit, 1)
    else:
        number = parse_integer(given, name)
    if not 0 <= number < 1 << 64:
        raise wrong
    return number


def parse_integer(given: object, name: str) -> int:
    """Returns an integer of Python or NumPy as ``int``.

    Raises :class:`Usage` for anything else, booleans too.
    """
    if not isinstance(given, bool) and hasattr(given, "__index__"):
        return int(given.__index__())
    raise Usage(f"{name}={given!r} is not an integer")
