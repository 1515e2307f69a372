"""Names of files, sizes, and the connections that are kept."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Union

from . import _gristmill
from ._errors import Usage

#: A URL (``grist://HOST:PORT/PATH``) or a path of this machine.
Location = Union[str, "os.PathLike[str]"]

#: A number of bytes, or text as ``"64KiB"``.
Size = Union[int, str]

#: Connections to clusters that are kept at once.
MAX_CONNECTIONS = 16

_UNITS = {
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

#: What a connection depends on besides its address.
_ENVIRONMENT = ("GRISTMILL_CLUSTER", "GRISTMILL_TOKEN", "GRISTMILL_TOKEN_FILE", "GRISTMILL_CA", "GRISTMILL_WAIT", "GRISTMILL_VERIFY")

_Key = tuple[Union[str, None], ...]
_connections: OrderedDict[_Key, _gristmill.Connection] = OrderedDict()
_lock = threading.Lock()


def size(given: Size, name: str) -> int:
    """A number of bytes from 0 to 2**64 - 1."""
    wrong = Usage(f"{name}={given!r} is no size; give bytes as 4096, or text as '64KiB', '1MiB', '2GiB'")
    if isinstance(given, str):
        text = given.strip()
        unit = next((unit for unit in _UNITS if text.endswith(unit)), "")
        digits = text.removesuffix(unit).rstrip()
        if not (digits.isascii() and digits.isdigit()):
            raise wrong
        number = int(digits) * _UNITS.get(unit, 1)
    else:
        number = integer(given, name)
    if not 0 <= number < 1 << 64:
        raise wrong
    return number


def integer(given: object, name: str) -> int:
    """An integer of Python or NumPy."""
    if not isinstance(given, bool) and hasattr(given, "__index__"):
        return int(given.__index__())
    raise Usage(f"{name}={given!r} is no integer")


def located(url: Location) -> tuple[_gristmill.Connection | None, str]:
    """A file as the extension takes it: its cluster, or ``None`` for this machine, and its path there."""
    text = os.fsdecode(url)
    found = _gristmill.parse(text) if "://" in text else None
    if found is None:
        return None, here(text)
    entry, path = found
    return connection(entry), path


def here(path: str | os.PathLike[str]) -> str:
    """A path of this machine as text, which no system takes with a NUL in it."""
    text = os.fsdecode(path)
    if "\0" in text:
        raise Usage(f"the path {text!r} is not allowed, it holds a NUL character: leave it out")
    return text


def connection(entry: str | None) -> _gristmill.Connection:
    """The connection to a cluster, kept for the next call."""
    # With the identity that the environment gives at present.
    key = (entry, *map(os.environ.get, _ENVIRONMENT))
    with _lock:
        kept = _connections.pop(key, None) or _gristmill.Connection(entry)
        _connections[key] = kept
        while len(_connections) > MAX_CONNECTIONS:
            _connections.popitem(last=False)
        return kept


def _after_fork() -> None:
    # Another thread may have held the lock; and the threads behind connections stayed with the parent.
    global _lock
    _lock = threading.Lock()
    _connections.clear()


os.register_at_fork(after_in_child=_after_fork)
