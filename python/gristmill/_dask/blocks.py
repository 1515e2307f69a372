"""Arrays of dask whose blocks stay where they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays.array import Array


def to_dask(array: Array, chunks: Any, **more: Any) -> Any:
    """Makes an array of dask. ``chunks`` and ``more`` are those of :func:`dask.array.from_array`."""
    import dask.array as da

    from .interrupts import register_interrupts

    register_interrupts()
    from .whole_arrays import WholeArray

    # With previous_chunks, "auto" selects whole chunks of the file.
    stored = tuple((size,) for size in array.storage_chunks)
    lengths = da.core.normalize_chunks(chunks, array.shape, dtype=array.dtype, previous_chunks=stored)
    return WholeArray.wrap(cut(array, lengths, **more), array)


def cut(array: Array, lengths: tuple[tuple[int, ...], ...], **more: Any) -> Any:
    """Makes a plain array of dask with blocks of these lengths along each axis."""
    import dask.array as da

    more = {"name": False, **more, "asarray": False, "meta": np.empty((0,) * array.ndim, array.dtype)}
    return da.from_array(array.in_blocks(lengths), lengths, **more)
