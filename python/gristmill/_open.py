"""Open files."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from . import _gristmill
from ._errors import GristmillError, Usage
from ._place import Location, integer, located

if TYPE_CHECKING:
    from collections.abc import ItemsView, KeysView, ValuesView

    from ._array import Array
    from ._arrays import Arrays

#: Bytes read ahead of an open file: a question over the network is worth more than a few.
BUFFER_BYTES = 1 << 20

#: Most bytes of one read.
_MAX_READ = 16 << 20


class Stored:
    """A file that is open to be read by position, as one state of it; also in a forked child."""

    def __init__(self, url: Location) -> None:
        self.name = os.fsdecode(url)
        connection, path = located(url)
        self._reader = _gristmill.Reader(connection, path)
        self._process = os.getpid()

    @property
    def length(self) -> int:
        """Bytes of the file."""
        return self._reader.length

    @property
    def id(self) -> str | None:
        """Which state of a file of a cluster it is."""
        return self._reader.id

    def some(self, start: int, size: int) -> bytes:
        """Bytes from ``start`` on: at least one and at most ``size`` of them, but none behind the end."""
        if self._process != os.getpid():
            # The threads behind the connection stayed with the parent.
            reader = self._reader.reopened(located(self.name)[0])
            self._reader, self._process = reader, os.getpid()
        return self._reader.read_at(start, min(size, _MAX_READ))

    def all(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to before ``end``, as far as the file has them."""
        parts = []
        while start < end and (part := self.some(start, end - start)):
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _Raw(io.RawIOBase):
    """A file of targets as Python reads files; unbuffered."""

    def __init__(self, url: Location) -> None:
        super().__init__()
        self.name = os.fsdecode(url)
        self.mode = "rb"
        self._at = 0
        self._stored = Stored(url)

    def readable(self) -> bool:
        self._check()
        return True

    def seekable(self) -> bool:
        self._check()
        return True

    def _check(self) -> None:
        if self.closed:
            raise ValueError(f"{self.name} is closed; open it again")

    def readinto(self, buffer: Any) -> int:
        self._check()
        view = memoryview(buffer).cast("B")
        bytes_ = self._stored.some(self._at, len(view))
        view[: len(bytes_)] = bytes_
        self._at += len(bytes_)
        return len(bytes_)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._check()
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._stored.length}
        if whence not in starts:
            raise Usage(f"whence={whence!r}; use 0 (start), 1 (here) or 2 (end)")
        at = starts[whence] + integer(offset, "offset")
        if at < 0:
            raise Usage(f"byte {at} lies before the start of {self.name}")
        self._at = at
        return at

    def tell(self) -> int:
        self._check()
        return self._at


class File(io.BufferedReader):
    """A file that is open: its bytes, and if it is of a scientific format its arrays."""

    def __init__(self, url: Location, buffering: int) -> None:
        super().__init__(_Raw(url), buffering)
        self._arrays: Arrays | None = None

    @property
    def arrays(self) -> Arrays:
        """The variables of the file, whose elements stay where they are."""
        from ._arrays import open_arrays

        if self._arrays is None:
            self._arrays = open_arrays(self.name)
        return self._arrays

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes of the file."""
        return self.arrays.attrs

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __contains__(self, name: object) -> bool:
        # Whatever is no name is looked for among the lines, as in any file.
        return name in self.arrays if isinstance(name, str) else any(name == line for line in self)

    def keys(self) -> KeysView[str]:
        """The names of the arrays. Iterating over the file itself gives lines."""
        return self.arrays.keys()

    def values(self) -> ValuesView[Array]:
        """The arrays."""
        return self.arrays.values()

    def items(self) -> ItemsView[str, Array]:
        """The names of the arrays, and these."""
        return self.arrays.items()

    def _repr_html_(self) -> str | None:
        try:
            return self.arrays._repr_html_()
        except GristmillError:
            # A file of bytes: as text.
            return None


def open(url: Location, *, buffering: int = BUFFER_BYTES) -> File:
    """Opens a file for reading, as a binary file of Python: with ``read``, ``seek``, ``readinto``, in a ``with``. A file of a
    scientific format has arrays as well, ``file["tos"]``; see :func:`open_arrays`, which takes Zarr folders too.

    It is one state of the file: if that is changed or replaced meanwhile, reading raises :class:`Stale`.

    >>> import gristmill
    >>> _ = gristmill.put(b"some bytes", cluster.path("notes"))
    >>> with gristmill.open(cluster.path("notes")) as file:
    ...     _ = file.seek(5)
    ...     file.read()
    b'bytes'
    """
    return File(url, max(1, integer(buffering, "buffering")))
