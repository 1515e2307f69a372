"""The blocks into which dask cuts an array, and boxes of neighbours among them.

dask asks for one block at a time. What it will ask next is not told, but a graph asks for neighbours, so a question about one
block is answered for a *box* of them. Boxes are those of a tree: the whole at its root, each box halved along one axis, a
single block at its leaves. Two boxes are apart or one holds the other, so no block is asked for twice.
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

#: A block, by its number along each axis that has several.
Place = tuple[int, ...]


class Blocks:
    """Where the blocks of an array begin along each axis of a file, and where the last one ends.

    chunks, starts
        Lengths of the blocks along each axis, and the first element of the first one.
    """

    def __init__(self, chunks: Sequence[Sequence[int]], starts: Sequence[int]) -> None:
        self.bounds = tuple(tuple(accumulate(lengths, initial=start)) for lengths, start in zip(chunks, starts))
        #: Equal for equal blocks; short, for it is looked up for every block.
        self.key: Hashable = blake2b(repr(self.bounds).encode(), digest_size=16).digest()

    def place(self, axis: int, taken: tuple[int, int, int]) -> tuple[int, int] | None:
        """The number of the block that a slice takes all of, at its step, and the first element of all blocks at that step;
        ``None`` for other slices, and where there is one block."""
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
        """The elements from ``start`` to ``stop``, cut where only a part of a block is wanted, and there with all of the chunks of
        the file that hold it, as far as the block goes: others want the rest of them. Of each block only ``some`` may be wanted."""
        bounds = self.bounds[axis]
        first = max(bisect_right(bounds, start, hi=len(bounds) - 1) - 1, 0)
        last = max(bisect_right(bounds, stop - 1, hi=len(bounds) - 1) - 1, 0)
        # Whole blocks lie between these.
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

    def taken(self, axis: int, first: int, last: int, phase: int, step: int) -> tuple[int, int, int]:
        """The slice of the blocks from ``first`` to the one before ``last``."""
        bounds = self.bounds[axis]
        return _next(bounds[first], phase, step), bounds[last], step

    def counts(self, axis: int, first: int, last: int, phase: int, step: int) -> NDArray[np.int64]:
        """How many elements such a slice takes of each of these blocks."""
        bounds = np.asarray(self.bounds[axis][first : last + 1])
        counts: NDArray[np.int64] = np.diff(_before(bounds, phase, step))
        return counts

    def between(self, axis: int, first: int, last: int, phase: int, step: int) -> int:
        """How many elements it takes."""
        bounds = self.bounds[axis]
        return int(_before(bounds[last], phase, step) - _before(bounds[first], phase, step))


def _before(bound: Any, phase: int, step: int) -> Any:
    """How many elements are before a bound."""
    return (bound - phase + step - 1) // step


def _next(bound: int, phase: int, step: int) -> int:
    """The first element from a bound on that has the remainder ``phase``."""
    return bound + (phase - bound) % step


@dataclass(frozen=True)
class Box:
    """The blocks from ``first`` to the ones before ``last``, along each axis."""

    level: int
    first: Place
    last: Place

    @property
    def volume(self) -> int:
        """How many blocks it has."""
        return prod(b - a for a, b in zip(self.first, self.last))

    def places(self) -> Iterator[Place]:
        """Its blocks."""
        return product(*(range(a, b) for a, b in zip(self.first, self.last)))


class Tree:
    """The boxes of a grid of blocks.

    counts
        Blocks along each axis.
    order
        Axes that a box grows along first, then those that it grows along when it has all of these.
    """

    def __init__(self, counts: Sequence[int], order: Sequence[Sequence[int]]) -> None:
        self.counts = tuple(counts)
        #: For each level the logarithm of the size of a box along each axis.
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

    def box(self, level: int, place: Place) -> Box:
        """The box of a level in which a block is."""
        sizes = self.sizes[level]
        first = tuple(at >> size << size for at, size in zip(place, sizes))
        last = tuple(min(at + (1 << size), count) for at, size, count in zip(first, sizes, self.counts))
        return Box(level, first, last)
