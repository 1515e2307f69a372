"""Variables whose blocks stay where they are stored after ``chunks=`` or ``chunk()`` of xarray."""

from __future__ import annotations

from typing import Any

import xarray as xr
from xarray.namedarray.daskmanager import DaskManager
from xarray.namedarray.parallelcompat import guess_chunkmanager

from .chunk_manager import GristmillManager
from .wrappers import unwrap


class Variable(xr.Variable):
    """A variable of xarray whose ``chunk`` makes arrays of dask with blocks that stay where they are stored."""

    def chunk(self, *given: Any, **more: Any) -> Any:
        """Cuts the variable into blocks, as :meth:`xarray.Variable.chunk` does."""
        if unwrap(self._data) is None:
            return super().chunk(*given, **more)
        manager = guess_chunkmanager(more.get("chunked_array_type"))
        if type(manager) is DaskManager:
            manager = GristmillManager()
            # dask would take two states of a file for one with this name.
            if isinstance(how := more.get("from_array_kwargs"), dict):
                more["from_array_kwargs"] = {name: value for name, value in how.items() if name != "name"}
        more["chunked_array_type"] = manager
        return super().chunk(*given, **more)


def make_chunkable(dataset: xr.Dataset) -> xr.Dataset:
    """Returns the dataset with such variables for the arrays of this package."""
    made = dataset.copy()
    for name, one in dataset.variables.items():
        if unwrap(one._data) is not None:
            made._variables[name] = Variable(one.dims, one._data, one._attrs, one._encoding, fastpath=True)
    made.set_close(dataset._close)
    return made
