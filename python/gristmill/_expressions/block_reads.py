"""Reads of parts of blocks of dask.

Windows that reach beyond a block, and arrays with new blocks, need a little of many blocks. A chunk of a file is read
as a whole, so it would be read again for each of them. The reads of this module are cached block by block.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from .nodes import Leaf
from .takes import IndexList, Take

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_blocks(leaf: Leaf) -> NDArray[Any]:
    """Returns the elements of a leaf of an array of dask. Its axes are those of the file that no integer selects."""
    blocks, variable = leaf.blocks, leaf.variable
    assert blocks is not None
    parts = []
    for axis, take in enumerate(leaf.takes):
        start, stop = _take_bounds(take)
        chunk = variable.chunks[axis] if variable.chunks else 1
        parts.append(blocks.parts(axis, start, stop, chunk, isinstance(take, IndexList)))
    every = [variable.read(tuple((a, b, 1) for a, b in each)) for each in product(*parts)]
    values = _concatenate_parts(every, [len(of_axis) for of_axis in parts])
    for axis in reversed(range(len(parts))):
        values = values[(slice(None),) * axis + (_shift_take(leaf.takes[axis], parts[axis][0][0]),)]
    return values


def _take_bounds(take: Take) -> tuple[int, int]:
    """Returns the first selected element, and the last one plus 1."""
    if isinstance(take, IndexList):
        return take.hull()[:2]
    taken = range(take, take + 1) if isinstance(take, int) else range(*take)
    return taken[0], taken[-1] + 1


def _shift_take(take: Take, start: int) -> Any:
    """Returns the selection as a key of an array that begins at element ``start``."""
    if isinstance(take, int):
        return take - start
    if isinstance(take, IndexList):
        return take.indices - start
    return slice(take[0] - start, take[1] - start, take[2])


def _concatenate_parts(every: list[NDArray[Any]], counts: list[int]) -> NDArray[Any]:
    """Concatenates parts along each axis, the last axis first."""
    for axis in reversed(range(len(counts))):
        count = counts[axis]
        if count > 1:
            every = [np.concatenate(every[at : at + count], axis) for at in range(0, len(every), count)]
    return every[0]
