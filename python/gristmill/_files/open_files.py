"""Open files."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from .. import _gristmill
from .._arguments.sizes import parse_integer
from .._errors import GristmillError, Usage
from .._requests.locations import Location, locate

if TYPE_CHECKING:
    from collections.abc import ItemsView, KeysView, ValuesView

    from .._arrays.array import Array
    from .._arrays.file_arrays import Arrays

#: Bytes that an open file reads ahead, because a request over the network costs as much as some hundred KiB.
BUFFER_BYTES = 1 << 20

#: Most bytes of one read.
_MAX_READ = 16 << 20


class FileReader:
    """One state of a file, read by position. It also works in a forked child."""

    def __init__(self, url: Location) -> None:
        self.name = os.fsdecode(url)
        connection, path = locate(url)
        self._reader = _gristmill.Reader(connection, path)
        self._process = os.getpid()

    @property
    def length(self) -> int:
        """Bytes of the file."""
        return self._reader.length

    @property
    def id(self) -> str | None:
        """The identity of the contents of a file of a cluster."""
        return self._reader.id

    def read_some(self, start: int, size: int) -> bytes:
        """Returns 1 to ``size`` bytes from ``start`` on, and no bytes at the end of the file.

        Raises :class:`Stale` if the file was changed or replaced.
        """
        if self._process != os.getpid():
            # The threads of the connection exist in the parent only.
            reader = self._reader.reopened(locate(self.name)[0])
            self._reader, self._process = reader, os.getpid()
        return self._reader.read_at(start, min(size, _MAX_READ))

    def read_range(self, start: int, end: int) -> bytes:
        """Returns the bytes from ``start`` to ``end``, which is not included, or to the end of the file."""
        parts = []
        while start < end and (part := self.read_some(start, end - start)):
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _Raw(io.RawIOBase):
    """An unbuffered binary file."""

    def __init__(self, url: Location) -> None:
        super().__init__()
        self.name = os.fsdecode(url)
        self.mode = "rb"
        self._at = 0
        self._reader = FileReader(url)

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
        bytes_ = self._reader.read_some(self._at, len(view))
        view[: len(bytes_)] = bytes_
        self._at += len(bytes_)
        return len(bytes_)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._check()
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._reader.length}
        if whence not in starts:
            raise Usage(f"whence={whence!r}; use 0 (start), 1 (here) or 2 (end)")
        at = starts[whence] + parse_integer(offset, "offset")
        if at < 0:
            raise Usage(f"byte {at} lies before the start of {self.name}")
        self._at = at
        return at

    def tell(self) -> int:
        self._check()
        return self._at


class File(io.BufferedReader):
    """An open file: its bytes, and the arrays of a file of a scientific format.

    >>> import gristmill as gm, numpy as np
    >>> np.save("line.npy", np.arange(4.0))
    >>> file = gm.open("line.npy")
    >>> file.read(6), file["data"].shape
    (b'\\x93NUMPY', (4,))
    >>> float(file.arrays["data"].sum()), file.attrs
    (6.0, {})

    The examples of the methods use this ``file``.
    """

    def __init__(self, url: Location, buffering: int) -> None:
        super().__init__(_Raw(url), buffering)
        self._arrays: Arrays | None = None

    @property
    def arrays(self) -> Arrays:
        """The variables of the file, an :class:`Arrays`. Their elements stay where they are stored.

        Raises :class:`Usage` if the file has no scientific format.
        """
        from .._arrays.file_arrays import open_arrays

        if self._arrays is None:
            self._arrays = open_arrays(self.name)
        return self._arrays

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes of the file, a dictionary of text, numbers and arrays.

        Raises :class:`Usage` if the file has no scientific format.
        """
        return self.arrays.attrs

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __contains__(self, name: object) -> bool:
        # Anything else than a name is looked up among the lines, as for other files.
        return name in self.arrays if isinstance(name, str) else any(name == line for line in self)

    def keys(self) -> KeysView[str]:
        """Returns the names of the arrays. Iteration over the file itself gives lines.

        >>> list(file.keys())
        ['data']

        Raises :class:`Usage` if the file has no scientific format.
        """
        return self.arrays.keys()

    def values(self) -> ValuesView[Array]:
        """Returns the arrays, each an :class:`Array`.

        >>> [array.shape for array in file.values()]
        [(4,)]

        Raises :class:`Usage` if the file has no scientific format.
        """
        return self.arrays.values()

    def items(self) -> ItemsView[str, Array]:
        """Returns pairs of names and arrays.

        >>> [(name, array.dtype) for name, array in file.items()]
        [('data', dtype('float64'))]

        Raises :class:`Usage` if the file has no scientific format.
        """
        return self.arrays.items()

    def _repr_html_(self) -> str | None:
        try:
            return self.arrays._repr_html_()
        except GristmillError:
            # The file has no arrays, so it is shown as text.
            return None


def open(url: Location, *, buffering: int = BUFFER_BYTES) -> File:
    """Opens a file for reading and returns a binary file of Python, with ``read``, ``seek`` and ``readinto``.

    ``url`` names a file of a cluster or of this machine. A file of a scientific format has arrays as well:
    ``file["tos"]``. :func:`open_arrays` opens Zarr folders, too.
    The open file is one state of the file. After a change, reading raises :class:`Stale`, or still gives the bytes of
    this state if the nodes have not removed them yet.
    ``buffering`` is the number of bytes that are read ahead.

    >>> import gristmill
    >>> _ = gristmill.put(b"some bytes", cluster.path("notes"))
    >>> with gristmill.open(cluster.path("notes")) as file:
    ...     _ = file.seek(5)
    ...     file.read()
    b'bytes'

    Raises :class:`NotFound`, :class:`Denied`, and :class:`Unavailable` if a node does not answer.
    """
    return File(url, max(1, parse_integer(buffering, "buffering")))
