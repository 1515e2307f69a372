"""Reads of parts of chunks.

A chunk is always fetched and unpacked as a whole. A program that reads a variable in pieces that end within chunks
would fetch such a chunk for each piece. So chunks of which a part is needed are read as a whole, together, and kept.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .._requests import options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .variable import RegularTake, Variable

#: Most chunks of one read that are kept one by one.
MAX_CHUNKS = 4096

#: A read may fill this fraction of the cache: 1 / SHARE.
SHARE = 4


def read_taken(variable: Variable, taken: tuple[RegularTake, ...]) -> NDArray[Any]:
    """Returns the elements of a hyperslab. Callers must not write to them."""
    slabs = [(one, one + 1, 1) if isinstance(one, int) else one for one in taken]
    numbers = _chunks(variable, slabs)
    if numbers is None:
        return variable.read(taken)
    known = {place: variable.chunk(place) for place in product(*numbers)}
    missing = [place for place, values in known.items() if values is None]
    if missing:
        # One message reads all missing chunks and the chunks between them.
        low = [min(at) for at in zip(*missing)]
        high = [max(at) + 1 for at in zip(*missing)]
        known.update(variable.read_chunks(low, high))
    starts = [of_axis[0] * chunk for of_axis, chunk in zip(numbers, variable.chunks)]
    shape = [
        min((of_axis[-1] + 1) * chunk, length) - start
        for of_axis, chunk, length, start in zip(numbers, variable.chunks, variable.shape, starts)
    ]
    values = np.empty(shape, variable.dtype)
    for place, one in known.items():
        first = [at * chunk - start for at, chunk, start in zip(place, variable.chunks, starts)]
        if one is not None and all(0 <= at < length for at, length in zip(first, shape)):
            values[tuple(slice(at, at + length) for at, length in zip(first, one.shape))] = one
    key = tuple(
        one - start if isinstance(one, int) else slice(one[0] - start, one[1] - start, one[2])
        for one, start in zip(taken, starts)
    )
    return values[key]


def _chunks(variable: Variable, slabs: list[tuple[int, int, int]]) -> list[range] | None:
    """Returns the numbers of the needed chunks along each axis, or ``None`` if they are not to be read as a whole."""
    chunks = variable.chunks
    if not chunks or any(start >= stop for start, stop, _ in slabs):
        return None
    if any(step > chunk for (_, _, step), chunk in zip(slabs, chunks)):
        # Some chunks in between are not needed.
        return None
    last = [range(*slab)[-1] for slab in slabs]
    if all(
        start % chunk == 0 and step == 1 and (end + 1 == length or (end + 1) % chunk == 0)
        for (start, _, step), end, chunk, length in zip(slabs, last, chunks, variable.shape)
    ):
        # The pieces are whole chunks, so each is read once.
        return None
    numbers = [range(start // chunk, end // chunk + 1) for (start, _, _), end, chunk in zip(slabs, last, chunks)]
    count = prod(map(len, numbers))
    size = count * prod(chunks) * variable.dtype.itemsize
    return numbers if count <= MAX_CHUNKS and size * SHARE <= options.current.cache_bytes else None
