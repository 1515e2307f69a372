"""Files by name: copying, listing, removing."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Protocol, Union, overload

from . import _gristmill
from ._errors import NotFound, Usage
from ._place import Location, Size, here, integer, located, size
from ._watching import watching

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined]
    from collections.abc import Iterable

    import numpy as np
    import xarray as xr

#: Names of files that are more than the elements of an array.
_OF_FORMATS = (".nc", ".nc4", ".h5", ".hdf5", ".zarr", ".csv")

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

    @property
    def is_dir(self) -> bool:
        """``False``: see :class:`FolderInfo`."""
        return False

    def __repr__(self) -> str:
        text = f"FileInfo(url={self.url!r}, length={self.length}, stripe_unit={self.stripe_unit}"
        text += f", targets={self.targets}, mode=0o{self.mode:o}, created='{self.created:%Y-%m-%d %H:%M:%S} UTC'"
        if self.owner is not None:
            text += f", owner={self.owner!r}"
        if self.record is not None:
            text += f", record={self.record}"
        return text + ")"


@dataclass(frozen=True)
class FolderInfo:
    """What is known about a directory of a cluster: all that lies in it."""

    #: Its name with the address of its cluster.
    url: str
    #: Files, those of directories in it too.
    files: int
    #: Their bytes.
    length: int
    #: When the newest of them became visible.
    changed: datetime

    @property
    def is_dir(self) -> bool:
        """``True``: it is no file."""
        return True


@dataclass(frozen=True)
class DiskUsage:
    """How much a file is, or all that lies in a directory."""

    #: Files.
    files: int
    #: Their bytes.
    bytes: int


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


@overload
def put(
    source: Union["Buffer", "np.ndarray[Any, Any]", Readable],
    url: Location,
    *,
    stripe: Size | None = None,
    record: Size | None = None,
    targets: int | None = None,
    on: Iterable[int | str | os.PathLike[str]] | None = None,
    mode: int | None = None,
) -> FileInfo: ...
@overload
def put(
    source: Union[str, "os.PathLike[str]", "xr.Dataset", "xr.DataArray"],
    url: Location,
    *,
    stripe: Size | None = None,
    record: Size | None = None,
    targets: int | None = None,
    on: Iterable[int | str | os.PathLike[str]] | None = None,
    mode: int | None = None,
) -> FileInfo | FolderInfo: ...
def put(
    source: Union[str, "os.PathLike[str]", "Buffer", "np.ndarray[Any, Any]", "xr.Dataset", "xr.DataArray", Readable],
    url: Location,
    *,
    stripe: Size | None = None,
    record: Size | None = None,
    targets: int | None = None,
    on: Iterable[int | str | os.PathLike[str]] | None = None,
    mode: int | None = None,
) -> FileInfo | FolderInfo:
    """Copies a file, bytes, an array or a folder to storage nodes. It becomes visible when all of it is durable. A file, and a
    Zarr folder, replaces what was there. Files of another folder go among those that are there, one by one.

    >>> import gristmill, numpy as np
    >>> info = gristmill.put(np.arange(1000.0), cluster.path("thousand.f64"), stripe="4KiB")
    >>> info.length, info.stripe_unit, info.targets
    (8000, 4096, (0, 1))

    source
        A path, anything with the buffer protocol, a NumPy array (its elements in C order, in its own byte order; as NumPy
        saves it where the name ends in ``.npy``), or a binary file that is open for reading. A folder, Zarr for example, is
        copied with all that lies in it, and gives a :class:`FolderInfo`. A dataset or an array of xarray becomes a file of netCDF-4
        (``.nc``, ``.nc4``, ``.h5``) or a Zarr folder (``.zarr``), by the name.
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
    if "xarray" in sys.modules and isinstance(source, (sys.modules["xarray"].Dataset, sys.modules["xarray"].DataArray)):
        from ._put_dataset import put_dataset

        return put_dataset(source, url, stripe=stripe, record=record, targets=targets, on=on, mode=mode)
    unit = None if stripe is None else size(stripe, "stripe")
    whole = None if record is None else size(record, "record")
    connection, path = located(url)
    folder = isinstance(source, (str, os.PathLike)) and os.path.isdir(source)
    readable = _source(source, path)
    if connection is None:
        if on is None:
            raise Usage(f"say which directories {path} is to be striped over: on=[...]; or name a cluster")
        if targets is not None or mode is not None:
            raise Usage("targets and mode are for files of a cluster")
        if folder:
            raise Usage(f"{readable} is a folder; name a directory of a cluster for it")
        _put_local(readable, path, [os.fsdecode(directory) for directory in on], unit, whole)  # type: ignore[arg-type]
        return stat_file(path)
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
    with watching() as watch:
        if folder:
            where, files, length = _gristmill.put_folder(connection, str(readable), path, how, watch)
        else:
            total = readable.length if isinstance(readable, _Slices) else None
            return described(_gristmill.put(connection, readable, path, how, total, watch), connection)
    return FolderInfo(_root(connection) + where, files, length, datetime.now(timezone.utc))


def _number(given: object, name: str) -> int:
    number = integer(given, name)
    if not 0 <= number < 1 << 32:
        raise Usage(f"{name}={given!r}: targets are numbered from 0, and there are fewer than that")
    return number


def _source(source: Any, name: str) -> str | Readable:
    """A path, or something with ``read``. ``name``: of the file that it becomes."""
    head = b""
    if isinstance(source, (str, os.PathLike)):
        return here(source)
    if hasattr(source, "__array_interface__"):
        import numpy as np

        array = np.asarray(source, order="C")
        if array.dtype.hasobject:
            raise Usage(f"an array of {array.dtype} holds references, not values; give it a type with values")
        end = os.path.splitext(name.rstrip("/"))[1].lower()
        if end == ".npy":
            head = _npy_head(array)
        elif end in _OF_FORMATS:
            raise Usage(
                f"{name} would have the bytes of the array and nothing of a file in {end}; give an xarray.DataArray, or a name in .npy"
            )
        source = array.reshape(-1).view(np.uint8) if array.size else b""
    elif hasattr(source, "read"):
        return source  # type: ignore[no-any-return]
    try:
        view = memoryview(source)
    except TypeError as error:
        raise Usage(f"{type(source).__name__} is neither a path, nor bytes, nor an array, nor a file") from error
    flat = view.cast("B") if view.c_contiguous and view.nbytes else view.tobytes()
    return _Slices(head, memoryview(flat))


def _npy_head(array: np.ndarray[Any, Any]) -> bytes:
    """What stands before the elements of an array in C order, as ``numpy.save`` writes it."""
    import numpy as np

    whole = io.BytesIO()
    about = np.lib.format.header_data_from_array_1_0(array)
    about["fortran_order"] = False
    try:
        np.lib.format.write_array_header_1_0(whole, about)
    except ValueError:
        # Of types with so many fields that it is longer than the first version allows.
        whole = io.BytesIO()
        np.lib.format.write_array_header_2_0(whole, about)
    return whole.getvalue()


class _Slices:
    """Bytes in memory, as a file."""

    def __init__(self, head: bytes, view: memoryview) -> None:
        self._parts = [memoryview(head), view]
        #: All of them.
        self.length = len(head) + len(view)

    def read(self, size: int, /) -> bytes:
        while self._parts:
            part, rest = self._parts[0][:size].tobytes(), self._parts[0][size:]
            self._parts[0] = rest
            if not rest:
                del self._parts[0]
            if part:
                return part
        return b""


def _put_local(source: str | Readable, path: str, on: list[str], unit: int | None, record: int | None) -> None:
    if isinstance(source, str):
        return _gristmill.put_local(source, path, on, unit, record)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".") as file:
        while part := source.read(_COPY_BYTES):
            file.write(part)
        file.flush()
        _gristmill.put_local(file.name, path, on, unit, record)


@overload
def get(url: Location, path: None = None) -> bytes: ...
@overload
def get(url: Location, path: str | os.PathLike[str]) -> None: ...
def get(url: Location, path: str | os.PathLike[str] | None = None) -> bytes | None:
    """Copies a file to ``path``, where it appears when it is whole and durable; or gives its bytes. A directory becomes a
    new folder, which appears when all that lies in it is there.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("abc"))
    >>> gristmill.get(cluster.path("abc"))
    b'abc'
    >>> gristmill.get(cluster.path("abc"), "abc")
    """
    connection, name = located(url)
    if path is None:
        return _gristmill.get_bytes(connection, name)
    destination = here(path)
    try:
        _gristmill.get(connection, name, destination)
    except NotFound:
        if connection is None or not _is_directory(connection, name):
            raise
        with watching() as watch:
            _gristmill.get_folder(connection, name, destination, watch)
    return None


def _is_directory(connection: _gristmill.Connection, path: str) -> bool:
    try:
        return _gristmill.usage(connection, path)[3]
    except NotFound:
        return False


def stat(url: Location) -> FileInfo | FolderInfo:
    """What is known about a file, of a cluster or of this machine, or about a directory of a cluster.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("some/abc"))
    >>> gristmill.stat(cluster.path("some/abc")).length, gristmill.stat(cluster.path("some")).is_dir
    (3, True)
    """
    connection, path = located(url)
    try:
        return stat_file(url)
    except NotFound:
        if connection is None:
            raise
        files, length, changed, is_directory = _gristmill.usage(connection, path)
        if not is_directory:
            raise
        when = datetime.fromtimestamp(changed, timezone.utc)
        return FolderInfo(_root(connection) + path, files, length, when)


def stat_file(url: Location) -> FileInfo:
    """What is known about a file; of a directory nothing is."""
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


def remove(url: Location, *, recursive: bool = False) -> None:
    """Removes a file of a cluster, or a layout file (``*.grist``) and its objects. With ``recursive`` a directory of a cluster
    too: all that lies in it, in one step, or nothing where one may not remove some of it."""
    connection, path = located(url)
    if recursive and connection is not None:
        _gristmill.remove_all(connection, path)
    else:
        _gristmill.remove(connection, path)


def move(source: Location, destination: Location) -> str:
    """Gives a file or a directory of a cluster another name, in one step, and returns its URL then.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("old/abc"))
    >>> gristmill.move(cluster.path("old"), cluster.path("new")) == cluster.path("new")
    True

    A file takes the place of another. Into a directory that is there, or whose name ends with ``/``, the old name goes.
    """
    connection, path = _of_cluster(source)
    to, where = _of_cluster(destination)
    if to.entry != connection.entry:
        raise Usage(f"{source} is on another cluster than {destination}; copy it, and then remove it")
    return _root(connection) + _gristmill.rename(connection, path, where)


def copy(source: Location, destination: Location, *, recursive: bool = False) -> str:
    """Copies a file of a cluster within it or to another, or with ``recursive`` a directory file by file, and returns the
    URL of the copy. The bytes pass through this process, a few at a time.

    Stripes, records and, of a new file, permission bits are those of the source. Into a directory that is there, or whose
    name ends with ``/``, the name of the source goes.
    """
    connection, path = _of_cluster(source)
    to, where = _of_cluster(destination)
    with watching() as watch:
        return _root(to) + _gristmill.copy(connection, path, to, where, recursive, watch)


def disk_usage(url: Location) -> DiskUsage:
    """How much a file of a cluster is, or all that lies in a directory.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("sized/abc"))
    >>> gristmill.disk_usage(cluster.path("sized"))
    DiskUsage(files=1, bytes=3)
    """
    files, length, _, _ = _gristmill.usage(*_of_cluster(url))
    return DiskUsage(files, length)


def _of_cluster(url: Location) -> tuple[_gristmill.Connection, str]:
    connection, path = located(url)
    if connection is None:
        raise Usage(f"{path} is no file of a cluster; write grist://HOST:PORT/PATH")
    return connection, path


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
