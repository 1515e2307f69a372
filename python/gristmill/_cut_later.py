"""Variables of xarray that xarray itself cuts into blocks of dask, as its ``chunks=`` and ``chunk()`` do."""

from __future__ import annotations

from typing import Any

import xarray as xr
from xarray.namedarray.daskmanager import DaskManager
from xarray.namedarray.parallelcompat import guess_chunkmanager

from ._chunks import GristmillManager, unwrapped


class Variable(xr.Variable):
    """A variable whose blocks stay where they are stored, where dask is to have them. Blocks of other packages are theirs."""

    def chunk(self, *given: Any, **more: Any) -> Any:
        """As :meth:`xarray.Variable.chunk`."""
        if unwrapped(self._data) is None:
            return super().chunk(*given, **more)
        manager = guess_chunkmanager(more.get("chunked_array_type"))
        if type(manager) is DaskManager:
            manager = GristmillManager()
            # With this name two states of a file would be one to dask.
            if isinstance(how := more.get("from_array_kwargs"), dict):
                more["from_array_kwargs"] = {name: value for name, value in how.items() if name != "name"}
        more["chunked_array_type"] = manager
        return super().chunk(*given, **more)


def cut_later(dataset: xr.Dataset) -> xr.Dataset:
    """The same dataset, made of such variables where their elements stay where they are."""
    made = dataset.copy()
    for name, one in dataset.variables.items():
        if unwrapped(one._data) is not None:
            made._variables[name] = Variable(one.dims, one._data, one._attrs, one._encoding, fastpath=True)
    made.set_close(dataset._close)
    return made
