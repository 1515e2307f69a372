"""Exceptions. Each says what was wrong and what to do; ``kind`` is the sort of failure as the storage nodes name it."""

from __future__ import annotations

import re
from errno import EACCES, EBUSY, EEXIST, EHOSTUNREACH, ENOENT, ENOSPC, ESTALE, ETIMEDOUT
from typing import Any, ClassVar

_BY_KIND: dict[str, type[GristmillError]] = {}


class GristmillError(Exception):
    """Anything that went wrong in Gristmill.

    >>> import gristmill
    >>> try:
    ...     gristmill.run("sum", "nowhere.f64", type="f64")
    ... except gristmill.GristmillError as error:
    ...     print(error.kind, "-", error)
    not-found - cannot open nowhere.f64: there is no such file; check the path
    """

    kind: ClassVar[str] = "failed"

    def __init_subclass__(cls, kind: str | None = None, errno: int | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if kind is not None:
            cls.kind = kind
            _BY_KIND[kind] = cls
        if errno is not None:
            # Of the class, for an OSError that is made with one sentence alone has none; its type differs by the base.
            setattr(cls, "errno", errno)


class NotFound(GristmillError, FileNotFoundError, kind="not-found", errno=ENOENT):
    """There is no such file."""


class Denied(GristmillError, PermissionError, kind="denied", errno=EACCES):
    """Whoever asks may not do this."""


class Usage(GristmillError, ValueError, kind="usage"):
    """The request makes no sense, whatever the data."""


class Stale(GristmillError, OSError, kind="stale", errno=ESTALE):
    """The file changed or was replaced meanwhile; the request can be made again."""


class Conflict(GristmillError, FileExistsError, kind="conflict", errno=EEXIST):
    """There is something of this name already, or somebody else is at it."""


class Busy(GristmillError, OSError, kind="busy", errno=EBUSY):
    """Too much at once; the request can be made again, ``retry_after`` seconds later if the node said so."""

    retry_after: int | None = None


class Unavailable(GristmillError, ConnectionError, kind="unavailable", errno=EHOSTUNREACH):
    """A storage node does not answer."""


class NoSpace(GristmillError, OSError, kind="no-space", errno=ENOSPC):
    """A disk is full."""


class DataError(GristmillError, ArithmeticError, kind="data"):
    """The data does not allow an answer, for example the mean of nothing."""


class TimedOut(GristmillError, TimeoutError, kind="timed-out", errno=ETIMEDOUT):
    """There was no answer within the ``timeout`` that was given."""


class PushdownError(GristmillError, kind="pushdown"):
    """An operation on an array cannot run where the data is stored, and ``fallback="error"`` was set."""


class PushdownWarning(UserWarning):
    """An operation on an array reads its elements, and ``fallback="warn"`` was set."""


#: Flags of the command that are keywords of :func:`gristmill.run` and of others.
_KEYWORDS = "type|record|skip|range|place|lanes|max-record|timeout|big-endian|stripe|targets|on|mode"

#: One in a sentence, and what it is given there.
_GIVEN = r"(?:[ =]((?:[A-Z]+|[0-9]\w*)(?::[A-Z]+)?(?!\w)|(?<=place.)(?:client|storage|auto)\b|\w+(?:\|\w+)+))?"
_FLAG = re.compile(rf"(?<![\w/-])--({_KEYWORDS})(?![\w-]){_GIVEN}")


#: The short option that is a keyword.
_RECURSIVE = re.compile(r"(?<![\w/-])-r(?![\w-])")

#: A parameter of a kernel, as it would be given; it ends the sentence.
_PARAMETER = re.compile(r"(?<![\w/-])--param (\w+)=(.+)$")


def _parameter(found: re.Match[str]) -> str:
    name, value = found.groups()
    parts = re.split("[:,]", value)
    if not value.startswith("'") and not all(re.fullmatch(r"-?\d+(\.\d+)?", part) for part in parts):
        return f"{name}={value!r}"
    if name == "range":
        # Beside the bytes of the file that run is to read.
        return f"params={{'range': ({', '.join(parts)})}}"
    if len(parts) == 1 or value.startswith("'"):
        return f"{name}={value}"
    return f"{name}=({', '.join(parts)})" if name == "shape" else f"{name}=[{', '.join(parts)}]"


def in_words(message: str) -> str:
    """A sentence of the command in the words of Python: its flags are keywords here.

    >>> in_words("say which with --type, or use --place client; give --range START:LENGTH")
    "say which with type=, or use place='client'; give range=(START, LENGTH)"
    >>> in_words("it needs the parameter 'q', for example --param q=0.05,0.5")
    "it needs the parameter 'q', for example q=[0.05, 0.5]"
    """

    def keyword(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2] or ""
        if "|" in value:
            return f"{name}= (one of {value.replace('|', ', ')})"
        if ":" in value:
            value = f"({', '.join(value.split(':'))})"
        return f"{name}={value!r}" if value.islower() and value.isalpha() else f"{name}={value}"

    return _PARAMETER.sub(_parameter, _FLAG.sub(keyword, _RECURSIVE.sub("recursive=True", message)))


def of(kind: str, message: str, retry_after: int | None = None) -> GristmillError:
    """The exception for a failure of this kind."""
    error = _BY_KIND.get(kind, GristmillError)(in_words(message))
    if isinstance(error, Busy):
        error.retry_after = retry_after
    return error
