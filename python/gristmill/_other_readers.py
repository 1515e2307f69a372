"""Variables that are no numbers: text, enumerations, compounds. Other packages read them, over our files."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._errors import GristmillError

if TYPE_CHECKING:
    import xarray as xr

    from ._arrays import Arrays

#: The package that a reader of xarray needs.
_PACKAGES = {"h5netcdf": "h5netcdf", "scipy": "scipy", "netcdf4": "netCDF4", "zarr": "zarr"}


def read_others(
    arrays: Arrays, group: str, all_names: Iterable[str], wanted: Iterable[str]
) -> tuple[dict[str, xr.Variable], dict[str, Any] | None]:
    """These variables as they are stored, in memory, and the attributes of the group; nothing where no package is
    installed that can read them, or it cannot."""
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
            with _given(url, engine) as given, xr.open_dataset(given, **how) as found:
                loaded = found.load()
                read = names & set(loaded.variables)
                return {str(name): _as_here(arrays, group, name, loaded.variables[name]) for name in read}, loaded.attrs
        except GristmillError:
            raise
        except Exception:
            # Whatever such a package raises: variables that it cannot read are no reason to refuse the others. The caller
            # says which are left out.
            continue
    return {}, None


def _as_here(arrays: Arrays, group: str, name: str, one: xr.Variable) -> xr.Variable:
    """With the names that its axes have here: where a file has none, each reader numbers them in its own way."""
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
        return ["scipy", *([] if _is_elsewhere(url) else ["netcdf4"])]
    return []


def _is_elsewhere(url: str) -> bool:
    return "://" in url or url.endswith(".grist")


class _Named:
    """A name, where a file that has to be closed may stand."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> str:
        return self._name

    def __exit__(self, *_: object) -> None:
        pass


def _given(url: str, engine: str) -> Any:
    """What a reader of xarray takes: a name that it opens itself, or our open file."""
    if engine == "zarr" or not _is_elsewhere(url):
        return _Named(os.fspath(url))
    from ._open import open

    return open(url)
