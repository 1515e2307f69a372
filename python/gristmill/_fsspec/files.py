"""Open files of the file system for fsspec."""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
from typing import Any, cast

from fsspec.compression import compr
from fsspec.core import OpenFile, get_compression
from fsspec.spec import AbstractBufferedFile

from .._errors import Stale, Usage
from .._files.open_files import BUFFER_BYTES, FileReader
from .._files.put import put

#: Options of :func:`gristmill.put` that callers may give for a new file.
PUT_OPTIONS = ("stripe", "record", "targets", "on")

#: Most calls between the end of a ``with fsspec.open(...)`` block and the close of its file.
MAX_FRAMES = 16

#: Bytes of a new file that are kept in memory. A larger file is kept in a temporary file.
MEMORY_BYTES = 8 << 20


class GristmillFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is read by ranges, or a new file, which becomes visible when it is closed.

    A file that is read is one state of the file. Raises :class:`Usage` for modes that change a file in place, and
    :class:`Stale` if the file is not the state ``id`` any more.
    """

    DEFAULT_BLOCK_SIZE = BUFFER_BYTES

    def __init__(
        self,
        fs: Any,
        path: str,
        mode: str = "rb",
        block_size: Any = None,
        autocommit: bool = True,
        *,
        size: int | None = None,
        id: str | None = None,
        **more: Any,
    ) -> None:
        url = fs.unstrip_protocol(path)
        if mode == "rb":
            # The caller may know the size of another state of the file.
            self._reader = FileReader(url)
            size = self._reader.length
            if id is not None and id != self._reader.id:
                raise Stale(f"{url} was replaced since it was opened first; open it again")
        elif mode not in ("wb", "xb"):
            raise Usage(f"mode {mode!r} changes a file in its place, and files are replaced whole; use 'wb'")
        if mode == "xb":
            fs._refuse_existing(path, True)
        super().__init__(fs, path, mode, block_size, autocommit, size=size, **more)
        if mode != "rb":
            self._written = tempfile.SpooledTemporaryFile(MEMORY_BYTES)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._reader.read_range(start, end)

    # A new file is kept here until it is closed. It can be written in any order, and read.

    def _new_contents(self) -> tempfile.SpooledTemporaryFile[bytes] | None:
        if self.closed:
            raise ValueError(f"{self.path} is closed; open it again")
        return None if self.mode == "rb" else self._written

    def seekable(self) -> bool:
        return not self.closed

    def seek(self, loc: int, whence: int = io.SEEK_SET) -> int:
        written = self._new_contents()
        return int(super().seek(loc, whence) if written is None else written.seek(loc, whence))

    def tell(self) -> int:
        written = self._new_contents()
        return int(super().tell() if written is None else written.tell())

    def read(self, length: int = -1) -> bytes:
        written = self._new_contents()
        return cast(bytes, super().read(length) if written is None else written.read(length))

    def readinto(self, buffer: Any) -> int:
        written = self._new_contents()
        if written is None:
            return int(super().readinto(buffer))
        view = memoryview(buffer).cast("B")
        found = written.read(len(view))
        view[: len(found)] = found
        return len(found)

    def write(self, data: Any) -> int:
        written = self._new_contents()
        if written is None:
            raise ValueError(f"{self.path} is open for reading; open it with mode 'wb'")
        return written.write(data)

    def truncate(self, size: int | None = None) -> int:
        """Changes the length of a new file, and returns it."""
        written = self._new_contents()
        if written is None:
            raise ValueError(f"{self.path} is open for reading; open it with mode 'wb'")
        size = written.tell() if size is None else size
        written.truncate(size)
        return size

    def _upload_chunk(self, final: bool = False) -> bool:
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        """Stores a new file."""
        if self.mode == "xb":
            self.fs._refuse_existing(self.path, True)
        options = {name: self.kwargs[name] for name in PUT_OPTIONS if name in self.kwargs}
        with self._written:
            self._written.seek(0)
            put(self._written, self.fs.unstrip_protocol(self.path), **options)

    def close(self) -> None:
        """Stores a new file, unless its ``with fsspec.open(...)`` block ends with an exception."""
        if not self.closed and self.mode != "rb" and _left_by_exception(self):
            self.discard()
        else:
            super().close()

    def discard(self) -> None:
        """Discards a new file."""
        self._written.close()
        self.closed = True

    def __exit__(self, kind: Any = None, *_: Any) -> None:
        if kind is None or self.mode == "rb" or self.closed:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if self.closed or self.mode == "rb":
            return
        # The program may have stopped in the middle of the file.
        warnings.warn(f"{self.path} was never closed, so it was not stored", ResourceWarning, stacklevel=2)
        self.discard()

    def __reduce__(self) -> Any:
        make, (*first, more) = super().__reduce__()
        return make, (*first, {**more, "id": self._reader.id})


def _left_by_exception(file: GristmillFile) -> bool:
    """Returns whether a ``with fsspec.open(...)`` block is left by an exception.

    The block closes its files without saying why, so this looks at the calling frames.
    """
    frame = sys._getframe(1)
    for _ in range(MAX_FRAMES):
        if frame.f_code is OpenFile.__exit__.__code__:
            # The first of these objects is the file; compression and text lie over it.
            ours: Any = getattr(frame.f_locals.get("self"), "fobjects", ())
            return bool(ours) and ours[0] is file and any(part is not None for part in frame.f_locals.get("args", ()))
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


class TextFile(io.TextIOWrapper):
    """Text over an open file. Nothing is stored if its ``with`` block ends with an exception."""

    def __exit__(self, kind: Any = None, *rest: Any) -> None:
        if kind is not None and not self.closed:
            cast(io.BufferedIOBase, self.detach()).__exit__(kind, *rest)
        else:
            self.close()


class CompressedFile(io.BufferedIOBase):
    """A new compressed file. Its close closes the file below it, too."""

    def __init__(self, file: GristmillFile, path: str, compression: str) -> None:
        super().__init__()
        self._file = file
        self._stream = compr[get_compression(path, compression)](file, mode="w")

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return int(self._stream.write(data))

    def close(self) -> None:
        if not self.closed:
            try:
                self._stream.close()
                # Some streams have closed it already.
                self._file.close()
            finally:
                super().close()

    def __exit__(self, kind: Any = None, *rest: Any) -> None:
        if kind is None:
            self.close()
            return
        # The stream may close the file, which must not store it.
        self._file.autocommit = False
        try:
            self.close()
        finally:
            self._file.discard()
