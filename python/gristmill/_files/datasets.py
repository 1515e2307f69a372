"""Datasets of xarray, written to temporary files."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Union

from .._errors import Conflict, NotFound, Usage
from .._requests.locations import locate
from .listing import ls

if TYPE_CHECKING:
    import xarray as xr

#: Endings of files of netCDF-4.
NETCDF = (".nc", ".nc4", ".h5", ".hdf5")

#: Files that mark a Zarr folder. Each Zarr folder has one of them.
_ZARR_MARKERS = {"zarr.json", ".zgroup", ".zarray"}

#: Packages that write netCDF-4, and the names of their engines in xarray.
_WRITERS = {"netCDF4": "netcdf4", "h5netcdf": "h5netcdf"}


@contextmanager
def written(source: Union[xr.Dataset, xr.DataArray], name: str, how: Any) -> Iterator[str]:
    """Writes a dataset to a temporary file of netCDF-4 or a Zarr folder and gives its path.

    ``name`` is the name that the file gets on storage nodes; its ending selects the format. ``how`` has keywords for
    xarray's writer, or is ``None``.

    Raises :class:`Usage` if the name selects no format or no writer is installed, and :class:`Conflict` if a Zarr
    folder would replace something else.
    """
    end = os.path.splitext(name)[1].lower()
    with tempfile.TemporaryDirectory(prefix="gristmill-") as folder:
        beside = os.path.join(folder, os.path.basename(name) or "data")
        if end == ".zarr":
            source.to_zarr(beside, **(how or {}))
            _check_replaceable(name)
        elif end in NETCDF:
            source.to_netcdf(beside, **{"format": "NETCDF4", "engine": _writer(), **(how or {})})
        else:
            text = "says not which format it is to have; let it end in .nc for netCDF-4, or in .zarr"
            raise Usage(f"{name} {text}")
        yield beside


def _check_replaceable(url: str) -> None:
    """Raises :class:`Conflict` if the name belongs to something that is not a Zarr folder."""
    if locate(url)[0] is None:
        return
    try:
        found = {entry.name for entry in ls(url)}
    except NotFound:
        return
    if not found & _ZARR_MARKERS:
        raise Conflict(f"{url} exists and is no Zarr folder; remove it, or choose another name")


def _writer() -> str:
    for package, engine in _WRITERS.items():
        if importlib.util.find_spec(package) is not None:
            return engine
    text = "no package is installed that writes netCDF-4"
    raise Usage(f"{text}; install netCDF4 or h5netcdf, or let the name end in .zarr")
