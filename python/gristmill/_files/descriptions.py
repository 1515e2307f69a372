"""Descriptions of files and directories."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from .. import _gristmill


@dataclass(frozen=True, repr=False)
class FileInfo:
    """The description of a file.

    >>> import gristmill
    >>> info = gristmill.put(b"abcdef", cluster.path("described"), record=2)
    >>> info.url == cluster.path("described"), info.length, info.is_dir
    (True, 6, False)
    >>> info.stripe_unit, info.targets, info.record, oct(info.mode), info.owner
    (1048576, (0, 1), 2, '0o644', 'anonymous')
    >>> info.created.tzname(), len(info.id)
    ('UTC', 32)
    """

    #: URL of a file of a cluster, or path of a file of this machine.
    url: str
    #: Size in bytes.
    length: int
    #: Bytes of a stripe; ``None`` for a plain file.
    stripe_unit: int | None
    #: Targets in the order of the layout: numbers in a cluster, descriptions on this machine. Empty for a plain file.
    targets: tuple[int | str, ...]
    #: Permission bits, as ``0o644``.
    mode: int
    #: When the file became visible. For a file of this machine, when it was last changed. ``None`` for a file of an object store or of a
    #: web server.
    created: datetime | None
    #: Owner of a file of a cluster.
    owner: str | None = None
    #: Bytes of a record, if the file was stored with records. A stripe holds a whole number of them.
    record: int | None = None
    #: Identity of the contents of a file of a cluster. It changes when the file is replaced.
    id: str | None = None

    @property
    def is_dir(self) -> bool:
        """``False``: see :class:`FolderInfo`."""
        return False

    def __repr__(self) -> str:
        text = f"FileInfo(url={self.url!r}, length={self.length}, stripe_unit={self.stripe_unit}"
        text += f", targets={self.targets}, mode=0o{self.mode:o}"
        if self.created is not None:
            text += f", created='{self.created:%Y-%m-%d %H:%M:%S} UTC'"
        if self.owner is not None:
            text += f", owner={self.owner!r}"
        if self.record is not None:
            text += f", record={self.record}"
        return text + ")"


@dataclass(frozen=True)
class FolderInfo:
    """The description of a directory of a cluster, with all files below it.

    >>> import gristmill
    >>> file = gristmill.put(b"abc", cluster.path("folder/abc"))
    >>> info = gristmill.stat(cluster.path("folder"))
    >>> info.url == cluster.path("folder"), info.files, info.length, info.unread, info.is_dir
    (True, 1, 3, 0, True)
    >>> info.changed == file.created
    True
    """

    #: URL of the directory.
    url: str
    #: Number of files below the directory.
    files: int
    #: Bytes of these files.
    length: int
    #: When the newest of these files became visible. ``None`` for a directory of an attached tree.
    changed: datetime | None
    #: Number of files and directories of an attached tree that may not be read. They are not counted.
    unread: int = 0

    @property
    def is_dir(self) -> bool:
        """``True``: see :class:`FileInfo`."""
        return True


@dataclass(frozen=True)
class DiskUsage:
    """The size of a file, or of all files below a directory.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("used/abc"))
    >>> usage = gristmill.disk_usage(cluster.path("used"))
    >>> usage.files, usage.bytes, usage.unread
    (1, 3, 0)
    """

    #: Number of files.
    files: int
    #: Bytes of these files.
    bytes: int
    #: Number of files and directories of an attached tree that may not be read. They are not counted.
    unread: int = 0


@dataclass(frozen=True)
class Entry:
    """A name in a directory.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("listed/file"))
    >>> [entry] = gristmill.ls(cluster.path("listed"))
    >>> entry.name, entry.is_dir, entry.info.length, entry.url == entry.info.url, entry.unreadable
    ('file', False, 3, True, None)
    """

    #: Last component of the name.
    name: str
    #: URL. The URL of a directory ends in ``/``.
    url: str
    #: Description of the file. ``None`` for a directory.
    info: FileInfo | None = None
    #: Why it cannot be read, if it is a name of an attached tree, an object store or a web server that cannot be.
    unreadable: str | None = None

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory, as bool."""
        return self.info is None and self.unreadable is None


def root_url(connection: _gristmill.Connection) -> str:
    entry = connection.entry
    socket = entry.removeprefix("unix:")
    return f"grist://{entry}" if socket == entry else f"grist+unix://{socket}:"


def file_info(found: dict[str, Any], connection: _gristmill.Connection | None) -> FileInfo:
    """Makes a description out of the dictionary that the extension module gives."""
    path, created = found.pop("path"), found["created"]
    return FileInfo(
        **{
            **found,
            "url": os.fsdecode(path) if connection is None else root_url(connection) + path,
            "targets": tuple(found["targets"]),
            "created": None if created is None else datetime.fromtimestamp(created, timezone.utc),
        }
    )
