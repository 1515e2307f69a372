"""Names of files, and the connections to the clusters that have them."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Union

from .. import _gristmill
from .._errors import Usage

#: A URL (``grist://HOST:PORT/PATH``) or a path of this machine.
Location = Union[str, "os.PathLike[str]"]

#: Most connections to clusters that are kept open.
MAX_CONNECTIONS = 16

#: Variables of the environment that a connection depends on, besides its address.
_ENVIRONMENT = (
    "GRISTMILL_CLUSTER",
    "GRISTMILL_TOKEN",
    "GRISTMILL_TOKEN_FILE",
    "GRISTMILL_SOURCE_ID",
    "GRISTMILL_SOURCE_SECRET",
    "GRISTMILL_SOURCE_TOKEN",
    "GRISTMILL_CA",
    "GRISTMILL_WAIT",
    "GRISTMILL_VERIFY",
)
_Key = tuple[Union[str, None], ...]
_connections: OrderedDict[_Key, _gristmill.Connection] = OrderedDict()
_lock = threading.Lock()


def locate(url: Location) -> tuple[_gristmill.Connection | None, str]:
    """Returns the connection to the cluster of a file, or ``None`` for this machine, and the path of the file there.

    Raises :class:`Usage` for a URL or a path that is not valid.
    """
    text = os.fsdecode(url)
    found = _gristmill.parse(text) if "://" in text else None
    if found is None:
        return None, local_path(text)
    entry, path = found
    return connect(entry), path


def local_path(path: str | os.PathLike[str]) -> str:
    """Returns a path of this machine as text.

    Raises :class:`Usage` for a path with a NUL character.
    """
    text = os.fsdecode(path)
    if "\0" in text:
        raise Usage(f"the path {text!r} is not allowed, it holds a NUL character: leave it out")
    return text


def connect(entry: str | None) -> _gristmill.Connection:
    """Returns the connection to a cluster, and keeps it for the next call."""
    # The environment may give another identity than at the last call.
    key = (entry, *map(os.environ.get, _ENVIRONMENT))
    with _lock:
        kept = _connections.pop(key, None) or _gristmill.Connection(entry)
        _connections[key] = kept
        while len(_connections) > MAX_CONNECTIONS:
            _connections.popitem(last=False)
        return kept


def _after_fork() -> None:
    # Another thread may have held the lock. The threads of the connections exist in the parent only.
    global _lock
    _lock = threading.Lock()
    _connections.clear()


os.register_at_fork(after_in_child=_after_fork)
