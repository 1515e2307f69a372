"""Variables without numbers: text, enumerations, compounds. Other packages read them, through our open files."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._errors import GristmillError

if TYPE_CHECKING:
    import xarray as xr

    from .._arrays.file_arrays import Arrays

#: The package that an engine of xarray needs.
_PACKAGES = {"h5netcdf": "h5netcdf", "scipy": "scipy", "netcdf4": "netCDF4", "zarr": "zarr"}


def read_others(
    arrays: Arrays, group: str, all_names: Iterable[str], wanted: Iterable[str]
) -> tuple[dict[str, xr.Variable], dict[str, Any] | None]:
    """Reads variables without decoding them, and the attributes of the group.

    Returns no variables and ``None`` if no installed package can read them.
    """
    import xarray as xr

    url = arrays._source.url
    names = set(wanted)
    for engine in _engines(arrays.format, url):
        if importlib.util.find_spec(_PACKAGES[engine]) is None:
            continue
        how: dict[str, Any] = {"engine": engine, "decode_cf": False, "drop_variables": set(all_names) - names}
        if group:
            how["group"] = group
        if engine == "h5netcdf":
            how["phony_dims"] = "access"
        if engine == "zarr":
            how["consolidated"] = False
        try:
            with _argument_for_reader(url, engine) as given, xr.open_dataset(given, **how) as found:
                loaded = found.load()
                read = names & set(loaded.variables)
                variables = loaded.variables
                named = {str(name): _with_our_axes(arrays, group, name, variables[name]) for name in read}
                return named, loaded.attrs
        except GristmillError:
            raise
        except Exception:
            # Packages raise many kinds of exceptions. The other variables can still be used, and the caller warns about
            # those that are left out.
            continue
    return {}, None


def _with_our_axes(arrays: Arrays, group: str, name: str, one: xr.Variable) -> xr.Variable:
    """Gives the axes of a variable our names. Each reader has its own names for axes without a name."""
    dims = arrays.dims_of(f"{group}/{name}" if group else name)
    if len(dims) == one.ndim and all(dims):
        one.dims = dims
    return one


def _engines(format: str, url: str) -> list[str]:
    if format.startswith("Zarr"):
        return ["zarr"]
    if format in ("netCDF-4", "HDF5"):
        return ["h5netcdf"]
    if format.startswith("netCDF"):
        return ["scipy", *([] if _needs_our_reader(url) else ["netcdf4"])]
    return []


def _needs_our_reader(url: str) -> bool:
    return "://" in url or url.endswith(".grist")


class _NameContext:
    """A name as a context manager, in place of an open file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> str:
        return self._name

    def __exit__(self, *_: object) -> None:
        pass


def _argument_for_reader(url: str, engine: str) -> Any:
    """Returns the argument for an engine of xarray: a name that it opens itself, or our open file."""
    if engine == "zarr" or not _needs_our_reader(url):
        return _NameContext(os.fspath(url))
    from .._files.open_files import open

    return open(url)
