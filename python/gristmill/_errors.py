"""Exceptions. Each says what was wrong and what to do; ``kind`` is the sort of failure as the storage nodes name it."""

from __future__ import annotations

import errno as _errno


class GristmillError(Exception):
    """Anything that went wrong in Gristmill.

    >>> import gristmill
    >>> try:
    ...     gristmill.run("sum", "nowhere.f64", type="f64")
    ... except gristmill.GristmillError as error:
    ...     print(error.kind, "-", error)
    not-found - cannot open nowhere.f64: there is no such file; check the path
    """

    kind: str = "failed"


class NotFound(GristmillError, FileNotFoundError):
    """There is no such file."""

    kind = "not-found"
    errno = _errno.ENOENT


class Denied(GristmillError, PermissionError):
    """Whoever asks may not do this."""

    kind = "denied"
    errno = _errno.EACCES


class Usage(GristmillError, ValueError):
    """The request makes no sense, whatever the data."""

    kind = "usage"


class Stale(GristmillError, OSError):
    """The file changed or was replaced meanwhile; the request can be made again."""

    kind = "stale"
    errno = _errno.ESTALE


class Conflict(GristmillError, FileExistsError):
    """There is something of this name already, or somebody else is at it."""

    kind = "conflict"
    errno = _errno.EEXIST


class Busy(GristmillError, OSError):
    """Too much at once; the request can be made again later."""

    kind = "busy"
    errno = _errno.EBUSY


class Unavailable(GristmillError, ConnectionError):
    """A storage node does not answer."""

    kind = "unavailable"
    errno = _errno.EHOSTUNREACH


class NoSpace(GristmillError, OSError):
    """A disk is full."""

    kind = "no-space"
    errno = _errno.ENOSPC


class DataError(GristmillError, ArithmeticError):
    """The data does not allow an answer, for example the mean of nothing."""

    kind = "data"


class TimedOut(GristmillError, TimeoutError):
    """There was no answer within the ``timeout`` that was given."""

    kind = "timed-out"
    errno = _errno.ETIMEDOUT


_BY_KIND: dict[str, type[GristmillError]] = {
    one.kind: one
    for one in (NotFound, Denied, Usage, Stale, Conflict, Busy, Unavailable, NoSpace, DataError, TimedOut)
}


def of(kind: str, message: str) -> GristmillError:
    """The exception for a failure of this kind."""
    return _BY_KIND.get(kind, GristmillError)(message)
