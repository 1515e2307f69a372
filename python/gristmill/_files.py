"""Files by name: copying, listing, removing."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Protocol, Union

from . import _gristmill
from ._errors import Usage
from ._place import Location, Size, integer, located, size

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined]
    from collections.abc import Iterable

    import numpy as np

#: Bytes copied at once from one local file to another.
_COPY_BYTES = 1 << 20


class Readable(Protocol):
    """What ``put`` reads from: a binary file or anything like one."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, repr=False)
class FileInfo:
    """What is known about a file."""

    #: Its name, as it was given or with the address of its cluster.
    url: str
    #: Bytes.
    length: int
    #: Bytes of a stripe; ``None`` for a plain file.
    stripe_unit: int | None
    #: Targets in the order of the layout: numbers in a cluster, descriptions on this machine; none of a plain file.
    targets: tuple[int | str, ...]
    #: Permission bits, as ``0o644``.
    mode: int
    #: When it became visible; of a file of this machine, when it was last changed.
    created: datetime
    #: Who owns it, in a cluster.
    owner: str | None = None
    #: Record size that stripes are whole numbers of, where it was told.
    record: int | None = None
    #: Changes whenever the file is replaced, in a cluster.
    id: str | None = None

    def __repr__(self) -> str:
        text = f"FileInfo(url={self.url!r}, length={self.length}, stripe_unit={self.stripe_unit}"
        text += f", targets={self.targets}, mode=0o{self.mode:o}, created='{self.created:%Y-%m-%d %H:%M:%S} UTC'"
        if self.owner is not None:
            text += f", owner={self.owner!r}"
        if self.record is not None:
            text += f", record={self.record}"
        return text + ")"


@dataclass(frozen=True)
class Entry:
    """One name of a directory."""

    #: Its last component.
    name: str
    #: The whole name; a directory's ends in ``/``.
    url: str
    #: What is known about the file; ``None`` for a directory.
    info: FileInfo | None = None

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.info is None


def put(
    source: Union[str, "os.PathLike[str]", "Buffer", "np.ndarray[Any, Any]", Readable],
    url: Location,
    *,
    stripe: Size | None = None,
    record: Size | None = None,
    targets: int | None = None,
    on: Iterable[int | str | os.PathLike[str]] | None = None,
    mode: int | None = None,
) -> FileInfo:
    """Copies a file, bytes or an array to storage nodes. It becomes visible, or replaces what was there, when all of
    it is durable.

    >>> import gristmill, numpy as np
    >>> info = gristmill.put(np.arange(1000.0), cluster.path("thousand.f64"), stripe="4KiB")
    >>> info.length, info.stripe_unit, info.targets
    (8000, 4096, (0, 1))

    source
        A path, anything with the buffer protocol, a NumPy array (its elements in C order, in its own byte order), or a
        binary file that is open for reading.
    url
        ``grist://HOST:PORT/PATH``; or a layout file of this machine (``*.grist``), with directories ``on``.
    stripe, record
        Bytes of a stripe; bytes of a record, of which every stripe then holds a whole number. Where nothing is said, stripes
        are about 1 MiB, and of a file of a scientific format that is given by its path whole chunks.
    targets, on
        How many targets of the cluster (all of them where nothing is said), or which, by number.
    mode
        Permission bits, as ``0o640``; where nothing is said those of the file that is replaced, or ``0o644``.
    """
    unit = None if stripe is None else size(stripe, "stripe")
    whole = None if record is None else size(record, "record")
    connection, path = located(url)
    readable = _source(source)
    if connection is None:
        if on is None:
            raise Usage(f"say which directories {path} is to be striped over: on=[...]; or name a cluster")
        if targets is not None or mode is not None:
            raise Usage("targets and mode are for files of a cluster")
        _put_local(readable, path, [os.fsdecode(directory) for directory in on], unit, whole)  # type: ignore[arg-type]
        return stat(path)
    if targets is not None and on is not None:
        raise Usage("give either targets or on")
    if mode is not None and not 0 <= integer(mode, "mode") <= 0o777:
        raise Usage(f"mode={mode!r}: give permission bits, as 0o640")
    how = {
        "unit": unit,
        "record": whole,
        "targets": None if targets is None else _number(targets, "targets"),
        "on": None if on is None else [_number(number, "on") for number in on],
        "mode": None if mode is None else integer(mode, "mode"),
    }
    return described(_gristmill.put(connection, readable, path, how), connection)


def _number(given: object, name: str) -> int:
    number = integer(given, name)
    if not 0 <= number < 1 << 32:
        raise Usage(f"{name}={given!r}: targets are numbered from 0, and there are fewer than that")
    return number


def _source(source: Any) -> str | Readable:
    """A path, or something with ``read``."""
    if isinstance(source, (str, os.PathLike)):
        return os.fsdecode(source)
    if hasattr(source, "__array_interface__"):
        import numpy as np

        array = np.ascontiguousarray(source)
        if array.dtype.hasobject:
            raise Usage(f"an array of {array.dtype} holds references, not values; give it a type with values")
        source = array.reshape(-1).view(np.uint8) if array.size else b""
    elif hasattr(source, "read"):
        return source  # type: ignore[no-any-return]
    try:
        view = memoryview(source)
    except TypeError as error:
        raise Usage(f"{type(source).__name__} is neither a path, nor bytes, nor an array, nor a file") from error
    flat = view.cast("B") if view.c_contiguous and view.nbytes else view.tobytes()
    return _Slices(memoryview(flat))


class _Slices:
    """Bytes in memory, as a file."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    def read(self, size: int, /) -> bytes:
        part = self._view[self._at : self._at + size].tobytes()
        self._at += len(part)
        return part


def _put_local(source: str | Readable, path: str, on: list[str], unit: int | None, record: int | None) -> None:
    if isinstance(source, str):
        return _gristmill.put_local(source, path, on, unit, record)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".") as file:
        while part := source.read(_COPY_BYTES):
            file.write(part)
        file.flush()
        _gristmill.put_local(file.name, path, on, unit, record)


def get(url: Location, path: str | os.PathLike[str] | None = None) -> bytes | None:
    """Copies a file to ``path``, where it appears when it is whole and durable; or gives its bytes.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("abc"))
    >>> gristmill.get(cluster.path("abc"))
    b'abc'
    >>> gristmill.get(cluster.path("abc"), "abc")
    """
    connection, name = located(url)
    if path is None:
        return _gristmill.get_bytes(connection, name)
    _gristmill.get(connection, name, os.fsdecode(path))
    return None


def stat(url: Location) -> FileInfo:
    """What is known about a file, of a cluster or of this machine."""
    connection, path = located(url)
    found = _gristmill.stat(connection, path)
    if connection is None:
        state = os.stat(path)
        if found["stripe_unit"] is None:
            found["targets"] = []
        found |= {"mode": state.st_mode & 0o777, "created": state.st_mtime}
    return described(found, connection)


def ls(url: Location) -> list[Entry]:
    """The names of a directory of a cluster, in ascending order; of a file, that one.

    >>> import gristmill
    >>> _ = gristmill.put(b"", cluster.path("runs/first"))
    >>> [(entry.name, entry.is_dir) for entry in gristmill.ls(cluster.path("runs/"))]
    [('first', False)]
    """
    connection, path = located(url)
    if connection is None:
        raise Usage(f"{path} is no directory of a cluster; write grist://HOST:PORT/PATH, or use os.listdir")
    entries = []
    for name, found in _gristmill.ls(connection, path):
        info = None if found is None else described(found, connection)
        whole = f"{_root(connection)}{path.rstrip('/')}/{name}/" if info is None else info.url
        entries.append(Entry(name, whole, info))
    return entries


def remove(url: Location) -> None:
    """Removes a file of a cluster, or a layout file (``*.grist``) and its objects."""
    _gristmill.remove(*located(url))


def _root(connection: _gristmill.Connection) -> str:
    entry = connection.entry
    socket = entry.removeprefix("unix:")
    return f"grist://{entry}" if socket == entry else f"grist+unix://{socket}:"


def described(found: dict[str, Any], connection: _gristmill.Connection | None) -> FileInfo:
    """A description as the extension gives it."""
    path = found.pop("path")
    return FileInfo(
        **{
            **found,
            "url": os.fsdecode(path) if connection is None else _root(connection) + path,
            "targets": tuple(found["targets"]),
            "created": datetime.fromtimestamp(found["created"], timezone.utc),
        }
    )
