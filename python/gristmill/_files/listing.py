"""Descriptions, names and sizes of files and directories."""

from __future__ import annotations

import os
from datetime import datetime, timezone

from .. import _gristmill
from .._errors import NotFound, Usage
from .._requests.locations import Location, locate
from .descriptions import DiskUsage, Entry, FileInfo, FolderInfo, file_info, root_url


def is_folder(connection: _gristmill.Connection, path: str) -> bool:
    try:
        return _gristmill.usage(connection, path)[3]
    except NotFound:
        return False


#: Permission bits of a file of an object store or a web server.
_READ_ONLY = 0o444


def stat(url: Location) -> FileInfo | FolderInfo:
    """Returns the description of a file, or of a directory of a cluster.

    ``url`` may also be the path of a file of this machine, or the URL of a file of an object store or of a web server. A file gives a :class:`FileInfo`, and a directory a
    :class:`FolderInfo`.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("some/abc"))
    >>> gristmill.stat(cluster.path("some/abc")).length, gristmill.stat(cluster.path("some")).is_dir
    (3, True)

    Raises :class:`NotFound`, :class:`Denied`, :class:`Usage` for a directory of this machine, and :class:`Unavailable`
    if a node does not answer.
    """
    connection, path = locate(url)
    try:
        return stat_file(url)
    except NotFound:
        if connection is None:
            raise
        files, length, changed, is_directory, unread = _gristmill.usage(connection, path)
        if not is_directory:
            raise
        when = None if changed is None else datetime.fromtimestamp(changed, timezone.utc)
        return FolderInfo(root_url(connection) + path, files, length, when, unread)


def stat_file(url: Location) -> FileInfo:
    """Returns the description of a file.

    Raises :class:`NotFound` for a directory, too.
    """
    connection, path = locate(url)
    found = _gristmill.stat(connection, path)
    if connection is None and "://" in path:
        found |= {"targets": [], "mode": _READ_ONLY, "created": None}
    elif connection is None:
        state = os.stat(path)
        if found["stripe_unit"] is None:
            found["targets"] = []
        found |= {"mode": state.st_mode & 0o777, "created": state.st_mtime}
    return file_info(found, connection)


def ls(url: Location) -> list[Entry]:
    """Returns the names in a directory of a cluster, of an object store or of a web server, in ascending order. For a
    file it returns the file itself.

    ``url`` names a directory or a file: ``grist://HOST:PORT/PATH``, ``s3://BUCKET/PREFIX`` or ``https://HOST/PATH``. The
    result is a list of :class:`Entry`.

    >>> import gristmill
    >>> _ = gristmill.put(b"", cluster.path("runs/first"))
    >>> [(entry.name, entry.is_dir) for entry in gristmill.ls(cluster.path("runs/"))]
    [('first', False)]

    Raises :class:`Usage` for a directory of this machine, :class:`NotFound`, and :class:`Denied`.
    """
    connection, path = locate(url)
    if connection is None and "://" in path:
        return outside_names(path)[0]
    if connection is None:
        raise Usage(f"{path} is no directory of a cluster; write grist://HOST:PORT/PATH, or use os.listdir")
    entries = []
    for name, found, why in _gristmill.ls(connection, path):
        info = None if found is None else file_info(found, connection)
        whole = f"{root_url(connection)}{path.rstrip('/')}/{name}" if info is None else info.url
        is_directory = info is None and why is None
        entries.append(Entry(name, whole + "/" if is_directory else whole, info, why))
    return entries


def outside_names(url: str) -> tuple[list[Entry], bool]:
    """Returns the names in a folder of an object store or of a web server, and whether the URL is that of a file."""
    names, is_file = _gristmill.list_outside(url)
    entries = []
    for name, whole, length, why in names:
        info = None
        if length is not None:
            info = FileInfo(url=whole, length=length, stripe_unit=None, targets=(), mode=_READ_ONLY, created=None)
        is_directory = info is None and why is None
        entries.append(Entry(name, whole + "/" if is_directory else whole, info, why))
    return entries, is_file


def disk_usage(url: Location) -> DiskUsage:
    """Returns the size of a file of a cluster, or of all files below a directory, as a :class:`DiskUsage`.

    ``url`` names the file or the directory.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("sized/abc"))
    >>> gristmill.disk_usage(cluster.path("sized"))
    DiskUsage(files=1, bytes=3, unread=0)

    Raises :class:`NotFound`, :class:`Denied`, and :class:`Usage` for a file of this machine.
    """
    files, length, _, _, unread = _gristmill.usage(*in_cluster(url))
    return DiskUsage(files, length, unread)


def in_cluster(url: Location) -> tuple[_gristmill.Connection, str]:
    connection, path = locate(url)
    if connection is None:
        raise Usage(f"{path} is no file of a cluster; write grist://HOST:PORT/PATH")
    return connection, path
