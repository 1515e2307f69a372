"""Elements of parts of the chunks of a file.

A chunk is fetched and unpacked whole, whatever is wanted of it. Who reads a variable in pieces that end within chunks, as writers of
other formats do, would fetch it again for each piece. So chunks of which a part is wanted are read whole, together, and kept.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._source import Taken, Variable

#: Most chunks of one read that are kept one by one.
MAX_CHUNKS = 4096

#: Of what is kept, the share that one read may take.
SHARE = 4


def read_taken(variable: Variable, taken: tuple[Taken, ...]) -> NDArray[Any]:
    """The elements of a hyperslab, not to be written to."""
    slabs = [(one, one + 1, 1) if isinstance(one, int) else one for one in taken]
    numbers = _chunks(variable, slabs)
    if numbers is None:
        return variable.read(taken)
    known = {place: variable.chunk(place) for place in product(*numbers)}
    missing = [place for place, values in known.items() if values is None]
    if missing:
        # With one message all that is not there, and what lies between.
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
    """The chunks of which some elements are wanted, along each axis; ``None`` where they are not to be read whole."""
    chunks = variable.chunks
    if not chunks or any(start >= stop for start, stop, _ in slabs):
        return None
    if any(step > chunk for (_, _, step), chunk in zip(slabs, chunks)):
        # Some chunks between are not needed at all.
        return None
    last = [range(*slab)[-1] for slab in slabs]
    if all(
        start % chunk == 0 and step == 1 and (end + 1 == length or (end + 1) % chunk == 0)
        for (start, _, step), end, chunk, length in zip(slabs, last, chunks, variable.shape)
    ):
        # All of each: who reads so reads each once.
        return None
    numbers = [range(start // chunk, end // chunk + 1) for (start, _, _), end, chunk in zip(slabs, last, chunks)]
    count = prod(map(len, numbers))
    size = count * prod(chunks) * variable.dtype.itemsize
    return numbers if count <= MAX_CHUNKS and size * SHARE <= _options.current.cache_bytes else None
