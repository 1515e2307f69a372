"""Options of arrays, and traces of what they did."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field
from typing import Any

from ._errors import PushdownError, PushdownWarning, Usage

#: What may happen to an operation that cannot run where the data is stored.
FALLBACKS = ("read", "warn", "error")

#: Where reductions of files on storage nodes may run.
PLACES = ("auto", "storage", "client")

#: Most bytes of a constant that travels with a request.
MAX_CONSTANT = 64 << 10

#: Bytes of elements that were read and are kept.
CACHE_BYTES = 256 << 20


@dataclass
class Options:
    """What :class:`set_options` sets."""

    fallback: str = "read"
    max_constant: int = MAX_CONSTANT
    cache_bytes: int = CACHE_BYTES
    progress: bool | str = "auto"
    place: str = "auto"


current = Options()
_lock = threading.Lock()
_traces: list[Trace] = []


class set_options:  # noqa: N801
    """Sets options of arrays, for good or for a ``with``.

    >>> import gristmill as gm
    >>> with gm.set_options(fallback="error"):
    ...     pass

    fallback
        What happens to an operation that cannot run where the data is stored: ``"read"`` reads the elements and computes
        here, ``"warn"`` says so, ``"error"`` raises :class:`PushdownError`.
    max_constant
        Most bytes of constants, the weights of a mean or a mask of a map for example, that travel with a request. Storage
        nodes take up to 4 MiB.
    cache_bytes
        Bytes of elements that were read and are kept, so that none is read twice.
    progress
        Whether to show how far requests are, in a notebook or a terminal: ``True``, ``False``, or ``"auto"``, which does
        where a person works in a session, once a request took half a second. See :class:`progress`.
    place
        Where reductions of files on storage nodes run: ``"storage"`` on the nodes, ``"client"`` here, over plain reads, or
        ``"auto"``: on the nodes, but for what nodes that have more to do than this process hand back. The numbers are the same.
        With ``"storage"`` medians and quantiles are passes over what is stored also where reading would be faster.
    """

    def __init__(self, **given: Any) -> None:
        self._before = {}
        for name, value in given.items():
            if not hasattr(current, name):
                raise Usage(f"there is no option {name!r}; there are fallback, max_constant, cache_bytes, progress and place")
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


@dataclass
class Trace:
    """What arrays did in a ``with gm.trace() as t``, in all threads."""

    #: Reductions that ran where the data is stored.
    requests: int = 0
    #: Hyperslabs that were read, coordinates included.
    reads: int = 0
    #: Bytes that came here: answers over a network, and the stored bytes of what was read.
    bytes_in: int = 0
    #: Stored bytes that reductions were given, where they lie.
    bytes_folded: int = 0
    #: Operations that could not run where the data is stored.
    fallbacks: list[str] = field(default_factory=list)

    def __enter__(self) -> Trace:
        with _lock:
            _traces.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            _traces[:] = [one for one in _traces if one is not self]


def trace() -> Trace:
    """Watches what arrays ask for.

    >>> import gristmill as gm
    >>> with gm.trace() as t:
    ...     pass
    >>> t.requests, t.fallbacks
    (0, [])
    """
    return Trace()


def note(*, requests: int = 0, reads: int = 0, bytes_in: int = 0, bytes_folded: int = 0) -> None:
    """Counts for all traces."""
    with _lock:
        for one in _traces:
            one.requests += requests
            one.reads += reads
            one.bytes_in += bytes_in
            one.bytes_folded += bytes_folded


def fell_back(operation: str, why: str) -> None:
    """An operation is about to read its elements."""
    if current.fallback == "error":
        raise PushdownError(f"{operation} cannot run where the data is stored: {why}")
    with _lock:
        for one in _traces:
            one.fallbacks.append(operation)
    if current.fallback == "warn":
        warnings.warn(f"{operation} reads its elements: {why}", PushdownWarning, stacklevel=4)
