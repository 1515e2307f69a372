"""Exceptions.

The message says what is wrong and what to do; ``kind`` is the name that storage nodes give to the failure.
"""

from __future__ import annotations

import re
from errno import EACCES, EBUSY, EEXIST, EHOSTUNREACH, ENOENT, ENOSPC, ESTALE, ETIMEDOUT
from typing import Any, ClassVar

_BY_KIND: dict[str, type[GristmillError]] = {}


class GristmillError(Exception):
    """Base class of all exceptions of Gristmill.

    Most of its classes are an exception of Python as well, and have its ``errno`` if that is an ``OSError``.

    >>> import gristmill
    >>> try:
    ...     gristmill.run("sum", "nowhere.f64", type="f64")
    ... except gristmill.GristmillError as error:
    ...     print(error.kind, "-", error)
    not-found - cannot open nowhere.f64: there is no such file; check the path
    """

    #: Name of the kind of failure, as nodes and the command have it.
    kind: ClassVar[str] = "failed"

    def __init_subclass__(cls, kind: str | None = None, errno: int | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if kind is not None:
            cls.kind = kind
            _BY_KIND[kind] = cls
        if errno is not None:
            # Set on the class: an OSError that is made with one argument has no errno. The attribute's type differs
            # by base.
            setattr(cls, "errno", errno)


class NotFound(GristmillError, FileNotFoundError, kind="not-found", errno=ENOENT):
    """The file or directory does not exist.

    >>> import gristmill
    >>> gristmill.stat("nowhere")
    Traceback (most recent call last):
        ...
    gristmill._errors.NotFound: cannot open nowhere: there is no such file; check the path
    """


class Denied(GristmillError, PermissionError, kind="denied", errno=EACCES):
    """The client is not permitted to do this.

    >>> import gristmill
    >>> issubclass(gristmill.Denied, PermissionError), gristmill.Denied.kind
    (True, 'denied')
    """


class Usage(GristmillError, ValueError, kind="usage"):
    """The request is invalid, whatever the data are.

    >>> import gristmill
    >>> gristmill.run("summ", "data.f64")
    Traceback (most recent call last):
        ...
    gristmill._errors.Usage: there is no kernel 'summ'; did you mean 'sum'?
    """


class Stale(GristmillError, OSError, kind="stale", errno=ESTALE):
    """The file was changed or replaced during the request. The request can be repeated.

    >>> import gristmill
    >>> from pathlib import Path
    >>> _ = Path("notes").write_bytes(b"old")
    >>> with gristmill.open("notes") as file:
    ...     _ = Path("notes").write_bytes(b"newer")
    ...     try:
    ...         file.read()
    ...     except gristmill.Stale as error:
    ...         print(str(error).partition(",")[0])
    notes was changed while it was read
    """


class Conflict(GristmillError, FileExistsError, kind="conflict", errno=EEXIST):
    """The name is taken already, or another client is changing the file.

    >>> import gristmill
    >>> issubclass(gristmill.Conflict, FileExistsError), gristmill.Conflict.kind
    (True, 'conflict')
    """


class Busy(GristmillError, OSError, kind="busy", errno=EBUSY):
    """The node has too many requests. The request can be repeated, after ``retry_after`` seconds if that is set.

    >>> import gristmill
    >>> error = gristmill.Busy("too many requests")
    >>> error.kind, error.retry_after
    ('busy', None)
    """

    #: Seconds after which the request can be repeated, if the node says so.
    retry_after: int | None = None


class Unavailable(GristmillError, ConnectionError, kind="unavailable", errno=EHOSTUNREACH):
    """A storage node does not answer.

    >>> import gristmill
    >>> try:
    ...     gristmill.stat("grist://127.0.0.1:1/data.f64")
    ... except gristmill.Unavailable as error:
    ...     print(str(error).partition(" (")[0])
    the entry node 127.0.0.1:1 does not answer
    """


class NoSpace(GristmillError, OSError, kind="no-space", errno=ENOSPC):
    """A disk is full.

    >>> import gristmill
    >>> issubclass(gristmill.NoSpace, OSError), gristmill.NoSpace.kind
    (True, 'no-space')
    """


class DataError(GristmillError, ArithmeticError, kind="data"):
    """The data allow no answer, for example the mean of no elements.

    >>> import gristmill
    >>> _ = gristmill.put(b"", cluster.path("empty.f64"))
    >>> gristmill.run("mean", cluster.path("empty.f64"), type="f64")
    Traceback (most recent call last):
        ...
    gristmill._errors.DataError: kernel 'mean' has no answer for an empty selection; a mean needs at least one value
    """


class TimedOut(GristmillError, TimeoutError, kind="timed-out", errno=ETIMEDOUT):
    """No answer came within the ``timeout`` of the request.

    >>> import gristmill
    >>> issubclass(gristmill.TimedOut, TimeoutError), gristmill.TimedOut.kind
    (True, 'timed-out')
    """


class PushdownError(GristmillError, kind="pushdown"):
    """An operation cannot run where the data is stored, and the option ``fallback`` is ``"error"``.

    >>> import gristmill as gm, numpy as np
    >>> np.save("line.npy", np.arange(4.0))
    >>> with gm.set_options(fallback="error"):
    ...     gm.open_arrays("line.npy")["data"].cumsum()
    Traceback (most recent call last):
        ...
    gristmill._errors.PushdownError: cumsum cannot run where the data is stored: there is no such kernel
    """


class PushdownWarning(UserWarning):
    """An operation reads the elements of an array, and the option ``fallback`` is ``"warn"``.

    >>> import gristmill as gm, numpy as np, warnings
    >>> np.save("line.npy", np.arange(4.0))
    >>> with gm.set_options(fallback="warn"), warnings.catch_warnings(record=True) as heard:
    ...     warnings.simplefilter("always")
    ...     sums = gm.open_arrays("line.npy")["data"].cumsum()
    >>> print(heard[0].message)
    cumsum reads its elements: there is no such kernel
    """


#: Flags of the command that are keywords of functions of this package.
_KEYWORDS = "type|record|skip|range|place|lanes|max-record|timeout|big-endian|stripe|targets|on|mode"

#: The value of a flag in a sentence, if the sentence gives one.
_GIVEN = r"(?:[ =]((?:[A-Z]+|[0-9]\w*)(?::[A-Z]+)?(?!\w)|(?<=place.)(?:client|storage|auto)\b|\w+(?:\|\w+)+))?"
_FLAG = re.compile(rf"(?<![\w/-])--({_KEYWORDS})(?![\w-]){_GIVEN}")


#: The short form of ``--recursive``.
_RECURSIVE = re.compile(r"(?<![\w/-])-r(?![\w-])")

#: A parameter of a kernel with its value, at the end of a sentence.
_PARAMETER = re.compile(r"(?<![\w/-])--param (\w+)=(.+)$")


def _parameter(found: re.Match[str]) -> str:
    name, value = found.groups()
    parts = re.split("[:,]", value)
    if not value.startswith("'") and not all(re.fullmatch(r"-?\d+(\.\d+)?", part) for part in parts):
        return f"{name}={value!r}"
    if name == "range":
        # run has a keyword range of its own.
        return f"params={{'range': ({', '.join(parts)})}}"
    if len(parts) == 1 or value.startswith("'"):
        return f"{name}={value}"
    return f"{name}=({', '.join(parts)})" if name == "shape" else f"{name}=[{', '.join(parts)}]"


def to_python_words(message: str) -> str:
    """Rewrites flags of the command in a message as keywords of Python.

    >>> to_python_words("say which with --type, or use --place client; give --range START:LENGTH")
    "say which with type=, or use place='client'; give range=(START, LENGTH)"
    >>> to_python_words("it needs the parameter 'q', for example --param q=0.05,0.5")
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


def error_for(kind: str, message: str, retry_after: int | None = None) -> GristmillError:
    """Makes the exception for a failure that the extension module reports.

    An unknown ``kind`` gives a :class:`GristmillError`. ``retry_after`` is in seconds.
    """
    error = _BY_KIND.get(kind, GristmillError)(to_python_words(message))
    if isinstance(error, Busy):
        error.retry_after = retry_after
    return error
