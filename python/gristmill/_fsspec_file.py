"""Open files of fsspec on storage nodes."""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
from typing import Any, cast

from fsspec.compression import compr
from fsspec.core import OpenFile, get_compression
from fsspec.spec import AbstractBufferedFile

from ._errors import Stale, Usage
from ._files import put
from ._open import BUFFER_BYTES, Stored

#: Options of :func:`gristmill.put` that may be given when a file is written.
PUT_OPTIONS = ("stripe", "record", "targets", "on")

#: Calls between the end of a ``with fsspec.open(...)`` and the end of its file, at most.
MAX_FRAMES = 16

#: Bytes of a file being written that are kept in memory; the rest goes to a temporary file.
MEMORY_BYTES = 8 << 20


class GristmillFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is read by ranges, as one state of it; or one that is written, which becomes visible when it is closed."""

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
            # Whatever size the caller knows of: this is the one of the state that is read.
            self._stored = Stored(url)
            size = self._stored.length
            if id is not None and id != self._stored.id:
                raise Stale(f"{url} was replaced since it was opened first; open it again")
        elif mode not in ("wb", "xb"):
            raise Usage(f"mode {mode!r} changes a file in its place, and files are replaced whole; use 'wb'")
        if mode == "xb":
            fs._refuse_existing(path, True)
        super().__init__(fs, path, mode, block_size, autocommit, size=size, **more)
        if mode != "rb":
            self._written = tempfile.SpooledTemporaryFile(MEMORY_BYTES)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._stored.all(start, end)

    # A file that is written is at hand until it is closed: in any order, and what was written can be read.

    def _at_hand(self) -> tempfile.SpooledTemporaryFile[bytes] | None:
        if self.closed:
            raise ValueError(f"{self.path} is closed; open it again")
        return None if self.mode == "rb" else self._written

    def seekable(self) -> bool:
        return not self.closed

    def seek(self, loc: int, whence: int = io.SEEK_SET) -> int:
        written = self._at_hand()
        return int(super().seek(loc, whence) if written is None else written.seek(loc, whence))

    def tell(self) -> int:
        written = self._at_hand()
        return int(super().tell() if written is None else written.tell())

    def read(self, length: int = -1) -> bytes:
        written = self._at_hand()
        return cast(bytes, super().read(length) if written is None else written.read(length))

    def readinto(self, buffer: Any) -> int:
        written = self._at_hand()
        if written is None:
            return int(super().readinto(buffer))
        view = memoryview(buffer).cast("B")
        found = written.read(len(view))
        view[: len(found)] = found
        return len(found)

    def write(self, data: Any) -> int:
        written = self._at_hand()
        if written is None:
            raise ValueError(f"{self.path} is open for reading; open it with mode 'wb'")
        return written.write(data)

    def truncate(self, size: int | None = None) -> int:
        """Cuts or lengthens what was written."""
        written = self._at_hand()
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
        """Stores what was written."""
        if self.mode == "xb":
            self.fs._refuse_existing(self.path, True)
        options = {name: self.kwargs[name] for name in PUT_OPTIONS if name in self.kwargs}
        with self._written:
            self._written.seek(0)
            put(self._written, self.fs.unstrip_protocol(self.path), **options)

    def close(self) -> None:
        """Stores what was written, unless the ``with`` of :func:`fsspec.open` that wrote it ends with an exception."""
        if not self.closed and self.mode != "rb" and _left_by_an_exception(self):
            self.discard()
        else:
            super().close()

    def discard(self) -> None:
        """Throws away what was written."""
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
        # Perhaps the one who wrote it was interrupted in the middle.
        warnings.warn(f"{self.path} was never closed, so it was not stored", ResourceWarning, stacklevel=2)
        self.discard()

    def __reduce__(self) -> Any:
        make, (*first, more) = super().__reduce__()
        return make, (*first, {**more, "id": self._stored.id})


def _left_by_an_exception(file: GristmillFile) -> bool:
    """Whether a ``with fsspec.open(...)`` is being left by an exception: it closes its files and does not say why."""
    frame = sys._getframe(1)
    for _ in range(MAX_FRAMES):
        if frame.f_code is OpenFile.__exit__.__code__:
            # What the file is written through lies before it, and it is the first.
            ours: Any = getattr(frame.f_locals.get("self"), "fobjects", ())
            return bool(ours) and ours[0] is file and any(part is not None for part in frame.f_locals.get("args", ()))
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


class Text(io.TextIOWrapper):
    """Text over an open file, of which nothing is stored if a ``with`` ends with an exception."""

    def __exit__(self, kind: Any = None, *rest: Any) -> None:
        if kind is not None and not self.closed:
            cast(io.BufferedIOBase, self.detach()).__exit__(kind, *rest)
        else:
            self.close()


class Compressed(io.BufferedIOBase):
    """A compressed file that is written: closing it closes what it is written to as well."""

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
                # Some close it themselves.
                self._file.close()
            finally:
                super().close()

    def __exit__(self, kind: Any = None, *rest: Any) -> None:
        if kind is None:
            self.close()
            return
        # Whether or not the stream closes it, it is not stored.
        self._file.autocommit = False
        try:
            self.close()
        finally:
            self._file.discard()
