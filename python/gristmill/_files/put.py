"""Copying files, bytes, arrays and folders to storage nodes."""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Union, cast, overload

from .. import _gristmill
from .._arguments.sizes import Size, parse_integer, parse_size
from .._errors import Usage
from .._requests.locations import Location, locate
from .._requests.watches import watching
from .datasets import written
from .descriptions import FileInfo, FolderInfo, file_info, root_url
from .listing import stat_file
from .sources import BytesReader, Readable, readable_source

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined]
    from collections.abc import Iterable

    import numpy as np
    import xarray as xr

#: Bytes that are copied at once from one local file to another.
_COPY_BYTES = 1 << 20


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
    """Copies a file, bytes, an array, a folder or a dataset to storage nodes, and returns its description.

    The new file becomes visible when all of it is durable. A file or a Zarr folder replaces the old one. The files of
    any other folder are added to the directory one by one.

    >>> import gristmill, numpy as np
    >>> info = gristmill.put(np.arange(1000.0), cluster.path("thousand.f64"), stripe="4KiB")
    >>> info.length, info.stripe_unit, info.targets
    (8000, 4096, (0, 1))

    source
        A path, an object with the buffer protocol, a NumPy array, a dataset or an array of xarray, or a binary file
        that is open for reading. The elements of a NumPy array are stored in C order, in the byte order of the array;
        a name in ``.npy`` gets the format of ``numpy.save``. A folder is copied with all files below it, and gives a
        :class:`FolderInfo`. A dataset becomes a file of netCDF-4 (``.nc``, ``.nc4``, ``.h5``) or a Zarr folder
        (``.zarr``); the ending of the name selects which.
    url
        ``grist://HOST:PORT/PATH``, or a layout file of this machine (``*.grist``), which needs ``on``.
    stripe
        Bytes of a stripe. The default is about 1 MiB; for the path of a file of a scientific format, it is a whole
        number of its chunks.
    record
        Bytes of a record. Each stripe then holds a whole number of records.
    targets
        Number of targets of the cluster. The default is all of them.
    on
        Numbers of the targets of the cluster, or directories of this machine.
    mode
        Permission bits, as ``0o640``. The default is the mode of the file that is replaced, or ``0o644``.

    Raises :class:`Usage` for arguments that do not fit together and for the name of a directory, :class:`Denied`,
    :class:`NoSpace`, :class:`Conflict` if another client changes the same file, and :class:`Unavailable` if a node does
    not answer.
    """
    xarray = sys.modules.get("xarray")
    if xarray is not None and isinstance(source, (xarray.Dataset, xarray.DataArray)):
        return put_dataset(source, url, stripe=stripe, record=record, targets=targets, on=on, mode=mode)
    unit = None if stripe is None else parse_size(stripe, "stripe")
    whole = None if record is None else parse_size(record, "record")
    connection, path = locate(url)
    folder = isinstance(source, (str, os.PathLike)) and os.path.isdir(source)
    readable = readable_source(source, path)
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
    if mode is not None and not 0 <= parse_integer(mode, "mode") <= 0o777:
        raise Usage(f"mode={mode!r}: give permission bits, as 0o640")
    how = {
        "unit": unit,
        "record": whole,
        "targets": None if targets is None else _number(targets, "targets"),
        "on": None if on is None else [_number(number, "on") for number in on],
        "mode": None if mode is None else parse_integer(mode, "mode"),
    }
    with watching() as watch:
        if folder:
            where, files, length = _gristmill.put_folder(connection, str(readable), path, how, watch)
        else:
            total = readable.length if isinstance(readable, BytesReader) else None
            return file_info(_gristmill.put(connection, readable, path, how, total, watch), connection)
    return FolderInfo(root_url(connection) + where, files, length, datetime.now(timezone.utc))


def put_dataset(
    source: Union[xr.Dataset, xr.DataArray], url: Location, *, how: Any = None, **options: Any
) -> FileInfo | FolderInfo:
    """Stores a dataset or an array of xarray as a file of netCDF-4 or a Zarr folder.

    ``how`` has keywords for xarray's writer; ``options`` are those of :func:`gristmill.put`.
    """
    name = os.fsdecode(url).rstrip("/")
    with written(source, name, how) as path:
        return cast("FileInfo | FolderInfo", put(path, name, **options))


def _number(given: object, name: str) -> int:
    number = parse_integer(given, name)
    if not 0 <= number < 1 << 32:
        raise Usage(f"{name}={given!r}: targets are numbered from 0, and there are fewer than that")
    return number


def _put_local(source: str | Readable, path: str, on: list[str], unit: int | None, record: int | None) -> None:
    if isinstance(source, str):
        return _gristmill.put_local(source, path, on, unit, record)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".") as file:
        while part := source.read(_COPY_BYTES):
            file.write(part)
        file.flush()
        _gristmill.put_local(file.name, path, on, unit, record)
