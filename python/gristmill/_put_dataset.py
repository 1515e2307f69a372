"""Datasets and arrays of xarray as files of storage nodes."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from typing import TYPE_CHECKING, Any, Union, cast

from ._errors import Conflict, NotFound, Usage
from ._files import FileInfo, FolderInfo, ls, put
from ._place import Location, located

if TYPE_CHECKING:
    import xarray as xr

#: What names of files of netCDF-4 end in.
NETCDF = (".nc", ".nc4", ".h5", ".hdf5")

#: A Zarr folder has one of these.
_OF_ZARR = {"zarr.json", ".zgroup", ".zarray"}

#: Packages that write them, and what xarray calls these.
_WRITERS = {"netCDF4": "netcdf4", "h5netcdf": "h5netcdf"}


def put_dataset(
    source: Union[xr.Dataset, xr.DataArray], url: Location, *, how: Any = None, **options: Any
) -> FileInfo | FolderInfo:
    """Writes a file of netCDF-4 or a Zarr folder, by the name, beside and puts it. ``how`` has further options of xarray's writer;
    ``options`` are those of :func:`gristmill.put`."""
    name = os.fsdecode(url).rstrip("/")
    end = os.path.splitext(name)[1].lower()
    with tempfile.TemporaryDirectory(prefix="gristmill-") as folder:
        beside = os.path.join(folder, os.path.basename(name) or "data")
        if end == ".zarr":
            source.to_zarr(beside, **(how or {}))
            _check_room(name)
        elif end in NETCDF:
            source.to_netcdf(beside, **{"format": "NETCDF4", "engine": _writer(), **(how or {})})
        else:
            text = "says not which format it is to have; let it end in .nc for netCDF-4, or in .zarr"
            raise Usage(f"{name} {text}")
        return cast("FileInfo | FolderInfo", put(beside, name, **options))


def _check_room(url: str) -> None:
    """Raises :class:`Conflict` if something that is no Zarr folder has this name."""
    if located(url)[0] is None:
        return
    try:
        found = {entry.name for entry in ls(url)}
    except NotFound:
        return
    if not found & _OF_ZARR:
        raise Conflict(f"{url} is there, and no Zarr folder; remove it, or choose another name")


def _writer() -> str:
    for package, engine in _WRITERS.items():
        if importlib.util.find_spec(package) is not None:
            return engine
    raise Usage("no package is installed that writes netCDF-4; install netCDF4 or h5netcdf, or let the name end in .zarr")
