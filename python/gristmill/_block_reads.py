"""The elements of parts of blocks of dask.

Windows that reach beyond a block, and arrays that are cut anew, take a little of many blocks. Chunks of a file are read whole, so
the same would be read for each of them. What is read here is kept, block by block.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ._expr import Leaf, Picked, Take

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_blocks(leaf: Leaf) -> NDArray[Any]:
    """The elements of a leaf of an array of dask, with the axes of the file of which not one index is taken."""
    blocks, variable = leaf.blocks, leaf.variable
    assert blocks is not None
    parts = []
    for axis, take in enumerate(leaf.takes):
        start, stop = _ends(take)
        chunk = variable.chunks[axis] if variable.chunks else 1
        parts.append(blocks.parts(axis, start, stop, chunk, isinstance(take, Picked)))
    every = [variable.read(tuple((a, b, 1) for a, b in each)) for each in product(*parts)]
    values = _together(every, [len(of_axis) for of_axis in parts])
    for axis in reversed(range(len(parts))):
        values = values[(slice(None),) * axis + (_within(leaf.takes[axis], parts[axis][0][0]),)]
    return values


def _ends(take: Take) -> tuple[int, int]:
    """The first element that is taken, and the one behind the last."""
    if isinstance(take, Picked):
        return take.hull()[:2]
    taken = range(take, take + 1) if isinstance(take, int) else range(*take)
    return taken[0], taken[-1] + 1


def _within(take: Take, start: int) -> Any:
    """The same of what begins at ``start``."""
    if isinstance(take, int):
        return take - start
    if isinstance(take, Picked):
        return take.indices - start
    return slice(take[0] - start, take[1] - start, take[2])


def _together(every: list[NDArray[Any]], counts: list[int]) -> NDArray[Any]:
    """Parts one behind the other along each axis, the last one first."""
    for axis in reversed(range(len(counts))):
        count = counts[axis]
        if count > 1:
            every = [np.concatenate(every[at : at + count], axis) for at in range(0, len(every), count)]
    return every[0]
