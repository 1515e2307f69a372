"""Arrays of dask whose blocks stay where they are stored, and xarray's way to ask for them.

Variables that the engine opens ask for it by themselves. Of those that :func:`gristmill.open_dataset` gives without ``chunks``
``ds.chunk(..., chunked_array_type="gristmill")`` makes blocks that are asked about together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xarray.namedarray.daskmanager import DaskManager

from ._array import Array


def in_dask(array: Array, chunks: Any, **more: Any) -> Any:
    """An array of dask; ``chunks`` and ``more`` are those of :func:`dask.array.from_array`."""
    import dask.array as da

    from ._dask import hear_interrupts

    hear_interrupts()
    from ._whole import Whole

    # "auto" takes whole chunks of the file.
    stored = tuple((size,) for size in array.storage_chunks)
    lengths = da.core.normalize_chunks(chunks, array.shape, dtype=array.dtype, previous_chunks=stored)
    return Whole.of(cut(array, lengths, **more), array)


def cut(array: Array, lengths: tuple[tuple[int, ...], ...], **more: Any) -> Any:
    """Blocks of these lengths along each axis, and nothing else."""
    import dask.array as da

    more = {"name": False, **more, "asarray": False, "meta": np.empty((0,) * array.ndim, array.dtype)}
    return da.from_array(array.in_blocks(lengths), lengths, **more)


class GristmillManager(DaskManager):
    """dask's manager, but for arrays of ours, which stay what they are inside the blocks.

    It recognises no array as its own: those that it makes are dask's, and dask's manager goes on with them.
    """

    def is_chunked_array(self, data: Any) -> bool:
        return False

    def from_array(self, data: Any, chunks: Any, **kwargs: Any) -> Any:
        array = unwrapped(data)
        if array is not None:
            return in_dask(array, chunks, **kwargs)
        if super().is_chunked_array(data):
            return data.rechunk(chunks)
        return super().from_array(data, chunks, **kwargs)


def unwrapped(data: Any) -> Array | None:
    """Our array inside what xarray puts around arrays of backends: caches, and slices that are not taken yet; ``None`` if
    there is none."""
    keys = []
    while not isinstance(data, Array):
        inner = getattr(data, "array", None)
        if inner is None or not type(data).__module__.startswith("xarray."):
            return None
        key = getattr(data, "key", None)
        if key is not None:
            if type(key).__name__ not in ("BasicIndexer", "OuterIndexer"):
                return None
            keys.append(key.tuple)
        data = inner
    found: Array = data
    for key in reversed(keys):
        # Each of its own axis, as ours take them too: by one index array only.
        for axis in reversed(range(len(key))):
            found = found[(slice(None),) * axis + (key[axis],)]
    return found
