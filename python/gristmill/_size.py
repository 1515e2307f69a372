"""Numbers of bytes for people."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def readable(size: float) -> str:
    """A number of bytes.

    >>> readable(122400), readable(7)
    ('119.53 KiB', '7 B')
    """
    if size < 1024:
        return f"{size:.0f} B"
    for unit in _UNITS:
        size /= 1024
        if size < 1024 or unit == _UNITS[-1]:
            break
    return f"{size:.2f} {unit}"
