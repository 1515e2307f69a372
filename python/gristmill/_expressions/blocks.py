"""Blocks of an array of dask, and boxes of neighbouring blocks.

dask asks for one block at a time. A graph usually asks for the neighbours next, so a request about one block covers a
*box* of blocks. The boxes form a tree: the root has all blocks, each box is halved along one axis, and a leaf has a
single block. Two boxes are disjoint, or one contains the other. So no block is requested twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The number of a block along each axis that has several blocks.
BlockIndex = tuple[int, ...]


class Blocks:
    """The bounds of the blocks of an array along each axis of a file.

    chunks
        Lengths of the blocks along each axis.
    starts
        First element of the first block, for each axis.
    """

    def __init__(self, chunks: Sequence[Sequence[int]], starts: Sequence[int]) -> None:
        self.bounds = tuple(tuple(accumulate(lengths, initial=start)) for lengths, start in zip(chunks, starts))
        #: Equal for equal bounds. It is short, because it is looked up for every block.
        self.key: Hashable = blake2b(repr(self.bounds).encode(), digest_size=16).digest()

    def locate_slice(self, axis: int, taken: tuple[int, int, int]) -> tuple[int, int] | None:
        """Returns the number of the block that a slice covers, and the slice's start modulo its step.

        Returns ``None`` for a slice that does not cover exactly one block, and for an axis with one block.
        """
        bounds = self.bounds[axis]
        start, stop, step = taken
        if len(bounds) < 3 or not bounds[0] <= start < stop <= bounds[-1]:
            return None
        number = bisect_right(bounds, start) - 1
        end, phase = bounds[number + 1], start % step
        last = stop - 1 - (stop - 1 - start) % step
        if start - step >= bounds[number] or last >= end or last + step < end:
            return None
        return number, phase

    def parts(self, axis: int, start: int, stop: int, chunk: int, some: bool) -> list[tuple[int, int]]:
        """Cuts the elements from ``start`` to ``stop`` into parts that are read one by one.

        Blocks that are needed completely form one part. A block that is needed in part is a part of its own, extended
        to the bounds of chunks within the block, because another read needs the rest of these chunks. With ``some``
        each block is treated as needed in part.
        """
        bounds = self.bounds[axis]
        first = max(bisect_right(bounds, start, hi=len(bounds) - 1) - 1, 0)
        last = max(bisect_right(bounds, stop - 1, hi=len(bounds) - 1) - 1, 0)
        # The blocks from low to high are needed completely.
        low = first if start == bounds[first] and (first < last or stop == bounds[last + 1]) else first + 1
        high = last + 1 if stop == bounds[last + 1] and low <= last else last
        if some:
            low = high = last + 1
        cuts = [(number, number + 1) for number in range(first, low)]
        cuts += [(low, high)] if low < high else []
        cuts += [(number, number + 1) for number in range(max(low, high), last + 1)]
        out = []
        for a, b in cuts:
            lower, upper = max(start, bounds[a]), min(stop, bounds[b])
            out.append((max(bounds[a], lower - lower % chunk), min(bounds[b], upper + -upper % chunk)))
        return out

    def slice_of(self, axis: int, first: int, last: int, phase: int, step: int) -> tuple[int, int, int]:
        """Returns the slice of the blocks from ``first`` to ``last``, which is not included."""
        bounds = self.bounds[axis]
        return _first_from(bounds[first], phase, step), bounds[last], step

    def counts(self, axis: int, first: int, last: int, phase: int, step: int) -> NDArray[np.int64]:
        """Returns the number of elements that such a slice selects of each block."""
        bounds = np.asarray(self.bounds[axis][first : last + 1])
        counts: NDArray[np.int64] = np.diff(_count_before(bounds, phase, step))
        return counts

    def count_between(self, axis: int, first: int, last: int, phase: int, step: int) -> int:
        """Returns the number of elements that such a slice selects."""
        bounds = self.bounds[axis]
        return int(_count_before(bounds[last], phase, step) - _count_before(bounds[first], phase, step))


def _count_before(bound: Any, phase: int, step: int) -> Any:
    """Returns the number of selected elements before a bound."""
    return (bound - phase + step - 1) // step


def _first_from(bound: int, phase: int, step: int) -> int:
    """Returns the first element from a bound on whose remainder is ``phase``."""
    return bound + (phase - bound) % step


@dataclass(frozen=True)
class BlockBox:
    """The blocks from ``first`` to ``last``, which is not included, along each axis."""

    level: int
    first: BlockIndex
    last: BlockIndex

    @property
    def volume(self) -> int:
        """Number of blocks in the box."""
        return prod(b - a for a, b in zip(self.first, self.last))

    def indices(self) -> Iterator[BlockIndex]:
        """Iterates over the blocks of the box."""
        return product(*(range(a, b) for a, b in zip(self.first, self.last)))


class BoxTree:
    """The tree of boxes over a grid of blocks.

    counts
        Number of blocks along each axis.
    order
        Groups of axes. A box grows along the axes of the first group until it has all of their blocks, then along the
        second group, and so on.
    """

    def __init__(self, counts: Sequence[int], order: Sequence[Sequence[int]]) -> None:
        self.counts = tuple(counts)
        #: For each level, the binary logarithm of the size of a box along each axis.
        self.sizes: list[tuple[int, ...]] = [(0,) * len(self.counts)]
        for axes in order:
            growing = True
            while growing:
                growing = False
                for axis in axes:
                    size = list(self.sizes[-1])
                    if 1 << size[axis] < self.counts[axis]:
                        size[axis] += 1
                        self.sizes.append(tuple(size))
                        growing = True

    def box(self, level: int, place: BlockIndex) -> BlockBox:
        """Returns the box of a level that contains a block."""
        sizes = self.sizes[level]
        first = tuple(at >> size << size for at, size in zip(place, sizes))
        last = tuple(min(at + (1 << size), count) for at, size, count in zip(first, sizes, self.counts))
        return BlockBox(level, first, last)
