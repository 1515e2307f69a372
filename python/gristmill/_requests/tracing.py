"""Traces of what arrays asked for and read."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field

from .._errors import PushdownError, PushdownWarning
from .options import current

_lock = threading.Lock()
_traces: list[Trace] = []


@dataclass
class Trace:
    """Counts of what arrays did during ``with gm.trace() as t``, in all threads.

    >>> import gristmill as gm, numpy as np
    >>> np.save("traced.npy", np.arange(4.0))
    >>> _ = gm.put("traced.npy", cluster.path("traced.npy"))
    >>> line = gm.open_arrays(cluster.path("traced.npy"))["data"]
    >>> with gm.trace() as t:
    ...     mean, sums = line.mean(), line.cumsum()
    >>> t.requests, t.reads, t.fallbacks
    (1, 1, ['cumsum'])
    >>> t.bytes_folded, t.bytes_in > 32
    (32, True)
    """

    #: Reductions that ran where the data is stored.
    requests: int = 0
    #: Hyperslabs that were read, including coordinates.
    reads: int = 0
    #: Bytes that this process received: answers over a network, and the stored bytes of elements that were read.
    bytes_in: int = 0
    #: Stored bytes that reductions processed where they are stored.
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
    """Counts the requests and reads of arrays in a ``with`` block, and returns a :class:`Trace` with the counts.

    >>> import gristmill as gm
    >>> with gm.trace() as t:
    ...     pass
    >>> t.requests, t.fallbacks
    (0, [])
    """
    return Trace()


def add_to_traces(*, requests: int = 0, reads: int = 0, bytes_in: int = 0, bytes_folded: int = 0) -> None:
    """Adds to the counts of all open traces."""
    with _lock:
        for one in _traces:
            one.requests += requests
            one.reads += reads
            one.bytes_in += bytes_in
            one.bytes_folded += bytes_folded


def record_fallback(operation: str, why: str) -> None:
    """Records that an operation is going to read its elements, because of ``why``.

    Raises :class:`PushdownError` if the option ``fallback`` is ``"error"``.
    """
    if current.fallback == "error":
        raise PushdownError(f"{operation} cannot run where the data is stored: {why}")
    with _lock:
        for one in _traces:
            one.fallbacks.append(operation)
    if current.fallback == "warn":
        warnings.warn(f"{operation} reads its elements: {why}", PushdownWarning, stacklevel=4)
