"""``load`` and ``compute`` of xarray, for arrays that are stored.

xarray takes them for arrays that are in memory, as they have all that such arrays have, and leaves them as they are; and what
dask puts together of blocks that nothing was done with is such an array too. Variables and datasets of xarray are taught here to
read them. Those of other arrays load as before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import numpy as np
import xarray as xr

from ._array import Array


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


def teach() -> None:
    """From now on. Once is enough."""
    datasets: Any = xr.Dataset
    datasets.load = _then_read_all(datasets.load)
    variables: Any = xr.Variable
    variables.load = _then_read(variables.load)
    if hasattr(variables, "load_async"):
        variables.load_async = _then_read_later(variables.load_async)
