"""Options of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._errors import Usage

#: Values of ``fallback``.
FALLBACKS = ("read", "warn", "error")

#: Values of ``place``.
PLACES = ("auto", "storage", "client")

#: Default of ``max_constant``, in bytes.
MAX_CONSTANT = 64 << 10

#: Default of ``cache_bytes``.
CACHE_BYTES = 256 << 20


@dataclass
class Options:
    """Values of the options; see :class:`set_options`."""

    fallback: str = "read"
    max_constant: int = MAX_CONSTANT
    cache_bytes: int = CACHE_BYTES
    progress: bool | str = "auto"
    place: str = "auto"


current = Options()


class set_options:  # noqa: N801
    """Sets options of arrays, for the whole process or for a ``with`` block.

    >>> import gristmill as gm
    >>> with gm.set_options(fallback="error"):
    ...     pass

    fallback
        Selects what happens to an operation that cannot run where the data is stored. ``"read"`` reads the elements and
        computes in this process. ``"warn"`` does the same with a :class:`PushdownWarning`. ``"error"`` raises
        :class:`PushdownError`.
    max_constant
        Most bytes of constants that are sent with a request, for example the weights of a mean or a mask. Storage nodes
        take up to 4 MiB.
    cache_bytes
        Most bytes of elements that are kept after they were read, so that they are not read twice.
    progress
        Selects whether a bar shows how far requests are, in a notebook or a terminal: ``True``, ``False``, or
        ``"auto"``. ``"auto"`` shows it in interactive sessions for requests that take longer than half a second. See
        :class:`progress`.
    place
        Selects where reductions of files on storage nodes run: ``"storage"`` on the nodes, ``"client"`` in this
        process over plain reads, or ``"auto"``. ``"auto"`` runs them on the nodes, except for work that busy nodes
        hand back. The numbers are the same. With ``"storage"`` medians and quantiles run on the nodes even if reading
        would be faster.

    Raises :class:`Usage` for an unknown option or value.
    """

    def __init__(self, **given: Any) -> None:
        self._before = {}
        for name, value in given.items():
            if not hasattr(current, name):
                known = "fallback, max_constant, cache_bytes, progress and place"
                raise Usage(f"there is no option {name!r}; there are {known}")
            if name == "fallback" and value not in FALLBACKS:
                raise Usage(f"fallback={value!r}; use one of {', '.join(FALLBACKS)}")
            if name in ("max_constant", "cache_bytes") and not (isinstance(value, int) and value >= 0):
                raise Usage(f"{name}={value!r}; use a number of bytes")
            if name == "progress" and not (isinstance(value, bool) or value == "auto"):
                raise Usage(f"progress={value!r}; use True, False or 'auto'")
            if name == "place" and value not in PLACES:
                raise Usage(f"place={value!r}; use one of {', '.join(PLACES)}")
            self._before[name] = getattr(current, name)
        for name, value in given.items():
            setattr(current, name, value)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            setattr(current, name, value)
