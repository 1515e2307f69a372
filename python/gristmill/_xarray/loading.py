"""``load``, ``compute`` and ``to_netcdf`` of xarray, for stored arrays and for files of clusters.

xarray takes an :class:`Array` for an array in memory, because it has the same interface, and does not load it. An
array of dask that only joins unchanged blocks computes to such an array, too. This module changes variables and
datasets of xarray so that they read these arrays. Other arrays load as before. ``to_netcdf`` with the URL of a
cluster writes a temporary file and puts it there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import numpy as np
import xarray as xr

from .._arrays.array import Array
from .._errors import Usage
from .._files.put import put_dataset

#: Beginnings of the names of files of clusters.
URLS = ("grist://", "grist+unix://")


def _read(variable: xr.Variable) -> xr.Variable:
    """Reads the elements of a variable into memory, and returns the variable."""
    data = variable._data
    if isinstance(data, Array):
        variable._data = np.asarray(data)
    return variable


def _with_reading(load: Callable[..., xr.Variable]) -> Callable[..., xr.Variable]:
    @wraps(load)
    def loaded(self: xr.Variable, **options: Any) -> xr.Variable:
        return _read(load(self, **options))

    return loaded


def _with_reading_async(load: Callable[..., Awaitable[xr.Variable]]) -> Callable[..., Awaitable[xr.Variable]]:
    @wraps(load)
    async def loaded(self: xr.Variable, **options: Any) -> xr.Variable:
        import asyncio

        # xarray refuses arrays that it does not know to be asynchronous, so a thread reads the elements.
        return await asyncio.to_thread(_read, self) if isinstance(self._data, Array) else await load(self, **options)

    return loaded


def _with_reading_dataset(load: Callable[..., xr.Dataset]) -> Callable[..., xr.Dataset]:
    @wraps(load)
    def loaded(self: xr.Dataset, **options: Any) -> xr.Dataset:
        found = load(self, **options)
        for variable in found.variables.values():
            _read(variable)
        return found

    return loaded


def _with_putting(to_netcdf: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(to_netcdf)
    def written(self: Any, path: Any = None, mode: str = "w", *given: Any, **how: Any) -> Any:
        if not isinstance(path, str) or not path.startswith(URLS):
            return to_netcdf(self, path, mode, *given, **how)
        if mode != "w" or given or how.get("compute") is False:
            text = "is written whole and at once; leave out mode and compute, and give all else by keyword"
            raise Usage(f"{path} {text}")
        put_dataset(self, path, how={name: value for name, value in how.items() if value is not None})
        return None

    return written


def extend_loading() -> None:
    """Changes the methods of xarray. It must be called once."""
    datasets: Any = xr.Dataset
    arrays: Any = xr.DataArray
    for one in (datasets, arrays):
        one.to_netcdf = _with_putting(one.to_netcdf)
    datasets.load = _with_reading_dataset(datasets.load)
    variables: Any = xr.Variable
    variables.load = _with_reading(variables.load)
    if hasattr(variables, "load_async"):
        variables.load_async = _with_reading_async(variables.load_async)
