"""``load``, ``compute`` and ``to_netcdf`` of xarray, where arrays or files are stored.

xarray takes them for arrays that are in memory, as they have all that such arrays have, and leaves them as they are; and what
dask puts together of blocks that nothing was done with is such an array too. Variables and datasets of xarray are taught here to
read them. Those of other arrays load as before. Files of netCDF-4 are written beside and put, where they are to be in a cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import numpy as np
import xarray as xr

from ._array import Array
from ._errors import Usage
from ._put_dataset import put_dataset

#: What names of files of clusters begin with.
URLS = ("grist://", "grist+unix://")


def _read(variable: xr.Variable) -> xr.Variable:
    """The variable, whose elements are here from now on."""
    data = variable._data
    if isinstance(data, Array):
        variable._data = np.asarray(data)
    return variable


def _then_read(load: Callable[..., xr.Variable]) -> Callable[..., xr.Variable]:
    @wraps(load)
    def loaded(self: xr.Variable, **options: Any) -> xr.Variable:
        return _read(load(self, **options))

    return loaded


def _then_read_later(load: Callable[..., Awaitable[xr.Variable]]) -> Callable[..., Awaitable[xr.Variable]]:
    @wraps(load)
    async def loaded(self: xr.Variable, **options: Any) -> xr.Variable:
        import asyncio

        # xarray refuses what it does not know to be asynchronous; reading takes a thread.
        return await asyncio.to_thread(_read, self) if isinstance(self._data, Array) else await load(self, **options)

    return loaded


def _then_read_all(load: Callable[..., xr.Dataset]) -> Callable[..., xr.Dataset]:
    @wraps(load)
    def loaded(self: xr.Dataset, **options: Any) -> xr.Dataset:
        found = load(self, **options)
        for variable in found.variables.values():
            _read(variable)
        return found

    return loaded


def _put_there(to_netcdf: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(to_netcdf)
    def written(self: Any, path: Any = None, mode: str = "w", *given: Any, **how: Any) -> Any:
        if not isinstance(path, str) or not path.startswith(URLS):
            return to_netcdf(self, path, mode, *given, **how)
        if mode != "w" or given or how.get("compute") is False:
            raise Usage(f"{path} is written whole and at once; leave out mode and compute, and name what else is given")
        put_dataset(self, path, how={name: value for name, value in how.items() if value is not None})
        return None

    return written


def teach() -> None:
    """From now on. Once is enough."""
    datasets: Any = xr.Dataset
    arrays: Any = xr.DataArray
    for one in (datasets, arrays):
        one.to_netcdf = _put_there(one.to_netcdf)
    datasets.load = _then_read_all(datasets.load)
    variables: Any = xr.Variable
    variables.load = _then_read(variables.load)
    if hasattr(variables, "load_async"):
        variables.load_async = _then_read_later(variables.load_async)
