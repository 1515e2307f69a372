"""The chunk manager ``gristmill`` of xarray, which makes arrays of dask whose blocks stay where they are stored.

Variables that the engine opens use it by themselves. Variables of :func:`gristmill.open_dataset` without ``chunks``
use it with ``ds.chunk(..., chunked_array_type="gristmill")``.
"""

from __future__ import annotations

from typing import Any

from xarray.namedarray.daskmanager import DaskManager

from .._dask.blocks import to_dask
from .wrappers import unwrap


class GristmillManager(DaskManager):
    """dask's chunk manager, which also keeps an :class:`Array` as it is inside the blocks.

    It recognises no array as its own. It makes arrays of dask, and dask's own manager recognises these.
    """

    def is_chunked_array(self, data: Any) -> bool:
        return False

    def from_array(self, data: Any, chunks: Any, **kwargs: Any) -> Any:
        array = unwrap(data)
        if array is not None:
            return to_dask(array, chunks, **kwargs)
        if super().is_chunked_array(data):
            return data.rechunk(chunks)
        return super().from_array(data, chunks, **kwargs)
