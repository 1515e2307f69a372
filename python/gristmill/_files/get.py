"""Copying files from storage nodes."""

from __future__ import annotations

import os
from typing import overload

from .. import _gristmill
from .._errors import NotFound
from .._requests.locations import Location, local_path, locate
from .._requests.watches import watching
from .listing import is_folder


@overload
def get(url: Location, path: None = None) -> bytes: ...
@overload
def get(url: Location, path: str | os.PathLike[str]) -> None: ...
def get(url: Location, path: str | os.PathLike[str] | None = None) -> bytes | None:
    """Copies a file to ``path``, or returns its bytes if there is no ``path``.

    ``url`` names a file or a directory of a cluster, or a file of this machine. The copy appears under its name when it
    is whole and durable. A directory of a cluster is copied to a new folder, with all files below it.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("abc"))
    >>> gristmill.get(cluster.path("abc"))
    b'abc'
    >>> gristmill.get(cluster.path("abc"), "abc")

    Raises :class:`NotFound`, :class:`Denied`, :class:`Usage` if the new folder exists already, :class:`Stale` if the
    file was replaced meanwhile, and :class:`Unavailable` if a node does not answer.
    """
    connection, name = locate(url)
    if path is None:
        return _gristmill.get_bytes(connection, name)
    destination = local_path(path)
    try:
        _gristmill.get(connection, name, destination)
    except NotFound:
        if connection is None or not is_folder(connection, name):
            raise
        with watching() as watch:
            _gristmill.get_folder(connection, name, destination, watch)
    return None
