"""Clusters as a file system of fsspec: ``fsspec.open("grist://HOST:PORT/PATH")``, and all that is built on it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from glob import has_magic
from typing import TYPE_CHECKING, Any

from fsspec import AbstractFileSystem
from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.utils import isfilelike, stringify_path

from . import _gristmill
from ._errors import NotFound, Usage
from ._files import FileInfo, described, get, move, put, remove, stat_file
from ._fsspec_file import PUT_OPTIONS, Compressed, GristmillFile, Text
from ._open import Stored, open
from ._place import located

if TYPE_CHECKING:
    from ._place import Location

#: Ranges that are read at once.
MAX_THREADS = 8

_TCP, _UNIX, _SOCKET = "grist://", "grist+unix://", "unix:"

#: They come from the environment: options of a file system are stored with it, in graphs and references for example.
_SECRETS = {"token": "GRISTMILL_TOKEN", "token_file": "GRISTMILL_TOKEN_FILE", "ca": "GRISTMILL_CA"}


class GristmillFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Files on storage nodes.

    >>> import fsspec
    >>> with fsspec.open(cluster.path("words"), "w") as file:
    ...     _ = file.write("some words")
    >>> fsspec.filesystem("grist").cat(cluster.path("words"), start=-5)
    b'words'

    A path is a URL without ``grist://``: ``HOST:PORT/a/b``, ``/a/b`` in the cluster of ``GRISTMILL_CLUSTER``, or
    ``unix:SOCKET:/a/b``; one file system serves all clusters. ``GRISTMILL_TOKEN``, ``GRISTMILL_TOKEN_FILE`` and ``GRISTMILL_CA``
    say who asks, as everywhere.

    There are no empty directories: one is there as long as files lie in it, and making one does nothing. A file is
    replaced whole, when what was written to it is closed; there is no appending. If a ``with fs.open(...)`` ends with an
    exception nothing is stored, nor if a ``with fsspec.open(...)`` does. Options when a file is written are those of :func:`gristmill.put`: ``stripe``, ``record``, ``targets``, ``on``.
    """

    protocol = ("grist", "grist+unix")
    root_marker = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        for name in _SECRETS.keys() & options.keys():
            text = "is no option of the file system, with which it would be stored"
            raise Usage(f"{name} {text}; set {_SECRETS[name]}")
        super().__init__(*args, **options)

    # Names.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, (list, tuple)):
            return [cls._strip_protocol(one) for one in path]
        text: str = stringify_path(path)
        if text.startswith(_UNIX):
            text = _SOCKET + text.removeprefix(_UNIX)
        return text.removeprefix(_TCP).rstrip("/")

    def unstrip_protocol(self, name: str) -> str:
        """The URL of a path."""
        text: str = self._strip_protocol(name)
        if not text.startswith(_SOCKET):
            return _TCP + (text or "/")
        return _UNIX + text.removeprefix(_SOCKET) + ("/" if text.endswith(":") else "")

    @classmethod
    def _parent(cls, path: str) -> str:
        stripped = cls._strip_protocol(path)
        above, slash, _ = stripped.rpartition("/")
        is_root = not slash or stripped.endswith(":")
        return str(stripped if is_root else above)

    # Finding files.

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What is known about a file or a directory."""
        path = self._strip_protocol(path)
        url = self.unstrip_protocol(path)
        connection, name = _remote(url)
        if name == "/":
            return _directory(path)
        try:
            return _described(path, stat_file(url))
        except NotFound:
            if not _gristmill.is_directory(connection, name):
                raise
        return _directory(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """The names of a directory, or of a file its own."""
        path = self._strip_protocol(path)
        connection, name = _remote(self.unstrip_protocol(path))
        prefix = path.removesuffix(name)
        found = []
        for last, about in _gristmill.ls(connection, name):
            if about is None:
                found.append(_directory(f"{path}/{last}"))
            else:
                found.append(_described(prefix + about["path"], described(about, connection)))
        return found if detail else [one["name"] for one in found]

    def exists(self, path: str, **_: Any) -> bool:
        """Whether there is a file or a directory of this name. If a node does not answer, that is raised."""
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def created(self, path: str) -> datetime:
        """When the file became visible."""
        return stat_file(self._file(path)).created

    #: Files are replaced whole.
    modified = created

    def ukey(self, path: str) -> str:
        """Changes whenever the file is replaced."""
        info = stat_file(self._file(path))
        return info.id or f"{info.length} {info.created}"

    def checksum(self, path: str) -> int:
        """As :meth:`ukey`, as a number."""
        return int(self.ukey(path), 16)

    # Reading.

    def _file(self, path: str) -> str:
        return self.unstrip_protocol(self._strip_protocol(path))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Bytes of a file; negative positions count from its end."""
        if start is None and end is None:
            return get(self._file(path))
        stored = Stored(self._file(path))
        return stored.all(*_range(stored.length, start, end))

    def cat_ranges(
        self,
        paths: list[str],
        starts: int | Sequence[int | None] | None,
        ends: int | Sequence[int | None] | None,
        max_gap: int | None = None,
        on_error: str = "return",
        **_: Any,
    ) -> list[Any]:
        """Ranges of files, several at once; each file is opened once."""
        if max_gap is not None:
            raise NotImplementedError("ranges are read as they are given; leave max_gap out")
        if not isinstance(paths, list):
            raise TypeError("give a list of paths")
        firsts = [starts] * len(paths) if isinstance(starts, int) or starts is None else list(starts)
        lasts = [ends] * len(paths) if isinstance(ends, int) or ends is None else list(ends)
        if not len(paths) == len(firsts) == len(lasts):
            raise ValueError(f"{len(paths)} paths, {len(firsts)} starts and {len(lasts)} ends; give as many of each")
        if not paths:
            return []
        with ThreadPoolExecutor(min(MAX_THREADS, len(paths))) as pool:
            opened = {path: pool.submit(Stored, self._file(path)) for path in dict.fromkeys(paths)}

            def read(path: str, start: int | None, end: int | None) -> bytes:
                stored = opened[path].result()
                return stored.all(*_range(stored.length, start, end))

            # Behind all that opens files, for which they wait.
            waiting = [pool.submit(read, *one) for one in zip(paths, firsts, lasts)]
            out: list[Any] = []
            for one in waiting:
                try:
                    out.append(one.result())
                except Exception as error:
                    if on_error != "return":
                        pool.shutdown(wait=False, cancel_futures=True)
                        raise
                    out.append(error)
            return out

    def get_file(
        self, rpath: str, lpath: Any = None, callback: Any = DEFAULT_CALLBACK, outfile: Any = None, **options: Any
    ) -> None:
        """Copies a file to this machine, where it appears when it is whole."""
        if outfile is not None or isfilelike(lpath):
            super().get_file(rpath, lpath, callback=callback, outfile=outfile, **options)
            return
        if self.isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
            return
        os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
        get(self._file(rpath), lpath)
        size = os.path.getsize(lpath)
        callback.set_size(size)
        callback.absolute_update(size)

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        **more: Any,
    ) -> Any:
        """Opens a file; see :meth:`fsspec.AbstractFileSystem.open`. What is written becomes visible when it is closed,
        and nothing of it if a ``with`` ends with an exception."""
        how: dict[str, Any] = {"block_size": block_size, "cache_options": cache_options}
        if "b" not in mode:
            text = {name: more.pop(name) for name in ("encoding", "errors", "newline") if name in more}
            binary = self.open(path, mode.replace("t", "") + "b", compression=compression, **how, **more)
            return Text(binary, **text)
        if compression is None or "r" in mode:
            return super().open(path, mode, compression=compression, **how, **more)
        return Compressed(super().open(path, mode, **how, **more), path, compression)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **more: Any,
    ) -> GristmillFile:
        return GristmillFile(self, path, mode, block_size, autocommit, cache_options=cache_options, **more)

    # Writing.

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **options: Any) -> None:
        """Stores bytes as a file."""
        self._refuse_existing(path, mode == "create")
        put(value, self._file(path), **_how(options))

    def put_file(
        self, lpath: Any, rpath: str, callback: Any = DEFAULT_CALLBACK, mode: str = "overwrite", **options: Any
    ) -> None:
        """Copies a file of this machine to storage nodes."""
        self._refuse_existing(rpath, mode == "create")
        if os.path.isdir(lpath):
            return
        info = put(os.fspath(lpath), self._file(rpath), **_how(options))
        callback.set_size(info.length)
        callback.absolute_update(info.length)

    def _refuse_existing(self, path: str, exclusive: bool) -> None:
        if exclusive and self.exists(path):
            raise FileExistsError(f"{path} is there already; choose another name, or mode 'overwrite'")

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        """Copies a file, with its stripes and its mode; of a directory there is nothing to copy. The bytes pass through
        this machine."""
        about = self.info(path1)
        if about["type"] == "directory":
            return
        how = {"stripe": about["stripe_unit"], "record": about["record"], "mode": about["mode"]}
        source, destination = self._file(path1), self._file(path2)
        with open(source) as file:
            put(file, destination, **{name: value for name, value in how.items() if value})

    def mv(
        self, path1: str, path2: str, recursive: bool = False, maxdepth: int | None = None, **more: Any
    ) -> None:
        """Moves a file or a directory in one step; files of a pattern, and to another cluster, by copying and removing."""
        one, other = self._strip_protocol(path1), self._strip_protocol(path2)
        # Under two names of the same file it would be removed at last.
        if one == other:
            return
        if not isinstance(one, str) or has_magic(one) or maxdepth is not None or not self._one_cluster(one, other):
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **more)
            return
        slash = "/" if stringify_path(path2).endswith("/") else ""
        move(self._file(one), self._file(other).rstrip("/") + slash)

    def _one_cluster(self, one: str, other: str) -> bool:
        (here, _), (there, _) = _remote(self._file(one)), _remote(self._file(other))
        return here.entry == there.entry

    def rm_file(self, path: str) -> None:
        """Removes a file."""
        remove(self._file(path))

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes files; directories go with the last file in them."""
        given = [path] if isinstance(path, (str, os.PathLike)) else path
        for one in given:
            if not recursive and self.isdir(one):
                raise IsADirectoryError(f"{one} is a directory; use recursive=True to remove all that lies in it")
        if recursive and maxdepth is None and not any(has_magic(stringify_path(one)) for one in given):
            for one in given:
                remove(self._file(stringify_path(one)), recursive=True)
            return
        for one in self.expand_path(given, recursive=recursive, maxdepth=maxdepth):
            if not (recursive and self.isdir(one)):
                self.rm_file(one)

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Does nothing: a directory is there when files lie in it."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Does nothing, but for a directory that must not be there yet."""
        if not exist_ok:
            self._refuse_existing(path, True)

    def rmdir(self, path: str) -> None:
        """Always refused: a directory that is there has files in it."""
        if not self.isdir(path):
            raise FileNotFoundError(f"{path} is no directory")
        raise OSError(f"{path} has files in it; remove them, and it is gone: rm(path, recursive=True)")


def _remote(url: Location) -> tuple[_gristmill.Connection, str]:
    connection, name = located(url)
    if connection is None:
        raise Usage(f"{url} is no file of a cluster; write grist://HOST:PORT/PATH")
    return connection, name


def _range(length: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Positions that may be negative or missing, as those of a file of this length."""
    first, last, _ = slice(start, end).indices(length)
    return first, last


def _how(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in PUT_OPTIONS if name in options}


def _directory(path: str) -> dict[str, Any]:
    return {"name": path, "size": 0, "type": "directory"}


def _described(path: str, info: FileInfo) -> dict[str, Any]:
    return {
        "name": path,
        "size": info.length,
        "type": "file",
        "created": info.created,
        "mtime": info.created.timestamp(),
        "mode": info.mode,
        "owner": info.owner,
        "id": info.id,
        "stripe_unit": info.stripe_unit,
        "record": info.record,
        "targets": info.targets,
    }


