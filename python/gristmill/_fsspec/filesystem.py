"""Clusters as a file system of fsspec: ``fsspec.open("grist://HOST:PORT/PATH")``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from glob import has_magic
from typing import Any

from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.utils import isfilelike, stringify_path

from .._files.get import get
from .._files.moving import move, remove
from .._files.open_files import FileReader, open
from .._files.put import put
from .files import PUT_OPTIONS, CompressedFile, GristmillFile, TextFile
from .names import NamedFileSystem, remote

#: Most ranges that are read at once.
MAX_THREADS = 8


class GristmillFileSystem(NamedFileSystem):
    """Files on storage nodes as a file system of fsspec.

    >>> import fsspec
    >>> with fsspec.open(cluster.path("words"), "w") as file:
    ...     _ = file.write("some words")
    >>> fsspec.filesystem("grist").cat(cluster.path("words"), start=-5)
    b'words'

    A path is a URL without ``grist://``: ``HOST:PORT/a/b``, ``/a/b`` in the cluster of ``GRISTMILL_CLUSTER``, or
    ``unix:SOCKET:/a/b``. One file system serves all clusters. ``GRISTMILL_TOKEN``, ``GRISTMILL_TOKEN_FILE`` and
    ``GRISTMILL_CA`` set the identity of the client.

    There are no empty directories: a directory exists as long as there are files in it, and making one does nothing.
    A file is replaced as a whole, when the new file is closed; files cannot be appended to. Nothing is stored if a
    ``with fs.open(...)`` or ``with fsspec.open(...)`` block ends with an exception. New files take the options of
    :func:`gristmill.put`: ``stripe``, ``record``, ``targets`` and ``on``.

    Methods raise the exceptions of the functions of this package, for example :class:`gristmill.NotFound`.
    """

    # Reading.

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Returns bytes of a file. Negative positions count from its end."""
        if start is None and end is None:
            return get(self._file(path))
        reader = FileReader(self._file(path))
        return reader.read_range(*_range(reader.length, start, end))

    def cat_ranges(
        self,
        paths: list[str],
        starts: int | Sequence[int | None] | None,
        ends: int | Sequence[int | None] | None,
        max_gap: int | None = None,
        on_error: str = "return",
        **_: Any,
    ) -> list[Any]:
        """Reads ranges of files, several at once. Each file is opened once.

        With ``on_error="return"`` an exception takes the place of its range.
        """
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
            opened = {path: pool.submit(FileReader, self._file(path)) for path in dict.fromkeys(paths)}

            def read(path: str, start: int | None, end: int | None) -> bytes:
                reader = opened[path].result()
                return reader.read_range(*_range(reader.length, start, end))

            # The reads come after all opens in the pool, because they wait for these.
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
        """Copies a file to this machine. The copy appears when it is whole."""
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
        """Opens a file; see :meth:`fsspec.AbstractFileSystem.open`.

        A new file becomes visible when it is closed. Nothing is stored if a ``with`` block ends with an exception.
        """
        how: dict[str, Any] = {"block_size": block_size, "cache_options": cache_options}
        if "b" not in mode:
            text = {name: more.pop(name) for name in ("encoding", "errors", "newline") if name in more}
            binary = self.open(path, mode.replace("t", "") + "b", compression=compression, **how, **more)
            return TextFile(binary, **text)
        if compression is None or "r" in mode:
            return super().open(path, mode, compression=compression, **how, **more)
        return CompressedFile(super().open(path, mode, **how, **more), path, compression)

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
        put(value, self._file(path), **_put_options(options))

    def put_file(
        self, lpath: Any, rpath: str, callback: Any = DEFAULT_CALLBACK, mode: str = "overwrite", **options: Any
    ) -> None:
        """Copies a file of this machine to storage nodes."""
        self._refuse_existing(rpath, mode == "create")
        if os.path.isdir(lpath):
            return
        info = put(os.fspath(lpath), self._file(rpath), **_put_options(options))
        callback.set_size(info.length)
        callback.absolute_update(info.length)

    def _refuse_existing(self, path: str, exclusive: bool) -> None:
        if exclusive and self.exists(path):
            raise FileExistsError(f"{path} is there already; choose another name, or mode 'overwrite'")

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        """Copies a file with its stripes and its mode, and does nothing for a directory. The bytes pass through this
        machine."""
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
        """Moves a file or a directory in one step.

        Files of a pattern, and files that go to another cluster, are copied and then removed.
        """
        one, other = self._strip_protocol(path1), self._strip_protocol(path2)
        # Two spellings of one name: a copy onto itself would end with its removal.
        if one == other:
            return
        if not isinstance(one, str) or has_magic(one) or maxdepth is not None or not self._one_cluster(one, other):
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **more)
            return
        slash = "/" if stringify_path(path2).endswith("/") else ""
        move(self._file(one), self._file(other).rstrip("/") + slash)

    def _one_cluster(self, one: str, other: str) -> bool:
        (here, _), (there, _) = remote(self._file(one)), remote(self._file(other))
        return here.entry == there.entry

    def rm_file(self, path: str) -> None:
        """Removes a file."""
        remove(self._file(path))

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes files, or with ``recursive`` directories. A directory vanishes with its last file."""
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
        """Does nothing, because a directory exists when there are files in it."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Does nothing. Raises ``FileExistsError`` if the directory exists and ``exist_ok`` is false."""
        if not exist_ok:
            self._refuse_existing(path, True)

    def rmdir(self, path: str) -> None:
        """Always raises an exception, because an existing directory has files in it."""
        if not self.isdir(path):
            raise FileNotFoundError(f"{path} is no directory")
        raise OSError(f"{path} has files in it; remove them, and it is gone: rm(path, recursive=True)")


def _range(length: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Turns positions that may be negative or missing into positions in a file of this length."""
    first, last, _ = slice(start, end).indices(length)
    return first, last


def _put_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in PUT_OPTIONS if name in options}
