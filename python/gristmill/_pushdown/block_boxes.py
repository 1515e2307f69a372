"""One request about a box of blocks, and the part of its answer that is about one block.

The blocks along a reduced axis become windows or groups of the request. Along other axes they are parts of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._expressions.blocks import BlockBox, BlockIndex, Blocks, BoxTree
from .._expressions.takes import IndexList
from .canonical import Canonical
from .not_pushed import NotPushed
from .request import Request, arrange_answer, group_labels
from .request_limits import MAX_LABELLED, MAX_WINDOWED, most_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Operations that add floats. Their sums are exact if the answer is one number, and binned if it has several cells.
_SUMS = ("totals", "moments", "sum", "mean", "var", "std")


class BlockAxis(NamedTuple):
    """An axis along which the blocks of a question differ."""

    #: Number of the axis in the file, and in the leaf.
    of_file: int
    of_leaf: int
    reduced: bool
    #: First selected element modulo the step.
    phase: int
    step: int
    #: Length of the windows of an axis that is not reduced.
    window: int


class BlockQuestion:
    """The common part of requests about the blocks of one array. ``what`` is the canonical form of one of them."""

    def __init__(
        self,
        what: Canonical,
        blocks: Blocks,
        op: str,
        reduced: set[int],
        windows: dict[int, int],
        skipna: bool,
        axes: Sequence[BlockAxis],
    ) -> None:
        self.what, self.blocks, self.op, self.skipna = what, blocks, op, skipna
        self.reduced, self.windows, self.axes = reduced, windows, axes
        leaf = what.leaf
        #: The axes of the file that no integer selects.
        self.taken_axes = [axis for axis, take in enumerate(leaf.takes) if not isinstance(take, int)]
        free = {axis.of_leaf for axis in axes}
        reduced_alike = [at for at in reduced - free if leaf.axes[at] is not None]
        #: Axes of the file that are reduced as one group of some elements, and axes that are reduced completely.
        self.grouped: set[int] = set()
        self.gone: set[int] = set()
        for at in reduced_alike:
            of_file = leaf.axes[at]
            assert of_file is not None
            some = isinstance(leaf.takes[of_file], IndexList) or at in what.masks
            (self.grouped if some else self.gone).add(of_file)
        self.sums = _adds_floats(what, op)
        self.units = self._units()
        by_file = {axis.of_file: number for number, axis in enumerate(axes)}
        #: For each axis of an answer about a box, the index in ``axes``, or ``None``.
        self.layout = [by_file.get(of_file) for of_file in self.taken_axes if of_file not in self.gone]
        #: The axes of the file that the answer about a block has.
        self.left = [
            of_file
            for of_file in self.taken_axes
            if of_file not in self.gone and not (of_file in by_file and axes[by_file[of_file]].reduced)
        ]
        #: Whether these axes have the order of the leaf.
        kept = [axis for at, axis in enumerate(leaf.axes) if at not in reduced]
        self.in_order = kept == self.left and not any(isinstance(leaf.takes[axis], IndexList) for axis in self.left)

    def tree(self) -> BoxTree:
        """Returns the tree of boxes.

        Boxes grow along the reduced axes first, because a result needs all blocks along these. They grow along all
        reduced axes in turn, as dask adds cubes of blocks. Then they grow along the other axes, one after the other.
        The last axis comes first, which is the order of dask.
        """
        counts = [-(-self._blocks_along(axis) // unit) for axis, unit in zip(self.axes, self.units)]
        reduced = [at for at, axis in enumerate(self.axes) if axis.reduced]
        kept = [[at] for at, axis in enumerate(self.axes) if not axis.reduced]
        return BoxTree(counts, [reduced[::-1], *kept[::-1]])

    def _blocks_along(self, axis: BlockAxis) -> int:
        return len(self.blocks.bounds[axis.of_file]) - 1

    def unit(self, place: BlockIndex) -> BlockIndex:
        """Returns the unit of a block: the blocks in the same chunks of the file.

        A unit is always requested as a whole, because its chunks are read as a whole for each of its blocks.
        """
        return tuple(at // unit for at, unit in zip(place, self.units))

    def _units(self) -> BlockIndex:
        """Returns the number of blocks in a chunk, along each axis of the question."""
        chunks, out = self.what.leaf.variable.chunks, []
        for axis in self.axes:
            bounds = self.blocks.bounds[axis.of_file]
            out.append(max(1, round(chunks[axis.of_file] / (bounds[1] - bounds[0]))) if chunks else 1)
        self.units = tuple(out)
        first = (0,) * len(out)
        return self.units if self.fits(BlockBox(0, first, (1,) * len(out))) else (1,) * len(out)

    def _span(self, box: BlockBox) -> tuple[BlockIndex, BlockIndex]:
        """Returns the first block of a box of units, and the block after its last one."""
        first = tuple(at * unit for at, unit in zip(box.first, self.units))
        last = tuple(
            min(at * unit, self._blocks_along(axis)) for at, unit, axis in zip(box.last, self.units, self.axes)
        )
        return first, last

    def _counts(self, box: BlockBox) -> list[NDArray[np.int64]]:
        """Returns the number of elements of the blocks of a box, along each axis of the question."""
        first, last = self._span(box)
        return [
            self.blocks.counts(axis.of_file, first[at], last[at], axis.phase, axis.step)
            for at, axis in enumerate(self.axes)
        ]

    def _fixed_cells(self) -> int:
        """Returns the number of cells along the axes that all blocks share."""
        free = {axis.of_leaf for axis in self.axes} | self.reduced
        return prod(n // self.windows.get(at, 1) for at, n in enumerate(self.what.leaf.shape) if at not in free)

    def _cells(self, each: list[NDArray[np.int64]]) -> int:
        """Returns the number of cells of the answer about a box.

        ``each`` has the elements of its blocks along each axis.
        """
        along = (
            len(counts) if axis.reduced else int(counts.sum()) // axis.window for axis, counts in zip(self.axes, each)
        )
        return prod(along) * self._fixed_cells()

    def fits(self, box: BlockBox) -> bool:
        """Returns whether a box is small enough for one request."""
        each, windowed = self._counts(box), 0
        for axis, counts in zip(self.axes, each):
            length = int(counts.sum())
            if axis.reduced or axis.window > 1:
                windowed += length
            if axis.window > 1 and (counts % axis.window).any():
                return False
            if axis.reduced and counts.min() != counts.max() and length > MAX_LABELLED:
                return False
        return self._cells(each) <= most_cells(self.op) and windowed <= MAX_WINDOWED

    def ask(self, box: BlockBox) -> dict[str, NDArray[Any]]:
        """Sends the request about a box and returns its arrays, with the axes of :attr:`layout`.

        Raises :class:`NotPushed` if a window crosses the bound of a block.
        """
        if any((counts % axis.window).any() for axis, counts in zip(self.axes, self._counts(box))):
            raise NotPushed("its blocks are not asked about together")
        leaf, masks = self.what.leaf, self.what.masks
        place = {axis: at for at, axis in enumerate(self.taken_axes)}
        taken = [take.hull() if isinstance(take, IndexList) else take for take in leaf.takes]
        axes: list[int] = []
        groups: dict[int, tuple[NDArray[Any], int]] = {}
        windows: dict[int, int] = {}
        for i, of_file in enumerate(leaf.axes):
            if of_file is None or i in {axis.of_leaf for axis in self.axes}:
                continue
            at = place[of_file]
            if i in self.windows:
                windows[at] = self.windows[i]
            elif of_file in self.grouped:
                groups[at] = group_labels(leaf.takes[of_file], masks.get(i)), 1
            elif i in self.reduced:
                axes.append(at)
        each, (low, high) = self._counts(box), self._span(box)
        for number, (axis, counts) in enumerate(zip(self.axes, each)):
            at = place[axis.of_file]
            first, last = low[number], high[number]
            taken[axis.of_file] = self.blocks.slice_of(axis.of_file, first, last, axis.phase, axis.step)
            if not axis.reduced:
                if axis.window > 1:
                    windows[at] = axis.window
            elif counts.min() == counts.max():
                windows[at] = int(counts[0])
            else:
                groups[at] = np.repeat(np.arange(len(counts)), counts), len(counts)
        if self.sums and self._cells(each) == 1:
            # A second, empty group, because a single sum is computed in another way than several.
            number = min(range(len(each)), key=lambda number: int(each[number][0]))
            at = place[self.axes[number].of_file]
            windows.pop(at, None)
            groups[at] = np.zeros(int(each[number][0]), np.int64), 2
        return Request(
            leaf.variable,
            tuple(taken),
            self.what.text,
            self.op,
            self.skipna,
            tuple(sorted(axes)),
            tuple((at, *group) for at, group in groups.items()),
            tuple(windows.items()),
            inputs=self.what.inputs,
        ).send(remember=False)

    def part(self, found: dict[str, NDArray[Any]], box: BlockBox, place: BlockIndex) -> dict[str, NDArray[Any]]:
        """Returns the answer about one block, cut out of the answer about a box."""
        index: list[int | slice] = []
        for number in self.layout:
            if number is None:
                index.append(slice(None))
                continue
            axis, first, at = self.axes[number], box.first[number] * self.units[number], place[number]
            if axis.reduced:
                index.append(at - first)
                continue
            start = self.blocks.count_between(axis.of_file, first, at, axis.phase, axis.step)
            stop = start + self.blocks.count_between(axis.of_file, at, at + 1, axis.phase, axis.step)
            index.append(slice(start // axis.window, stop // axis.window))
        key = tuple(index)
        if self.in_order:
            return {name: values[key] for name, values in found.items()}
        return {
            name: arrange_answer(values[key], self.what, self.left, dict.fromkeys(self.grouped, 0), self.reduced)
            for name, values in found.items()
        }


def _adds_floats(what: Canonical, op: str) -> bool:
    """Returns whether an answer consists of sums of floats."""
    return what.dtype.kind == "f" and op in _SUMS


def _is_single_sum(what: Canonical, op: str, reduced: set[int], windows: dict[int, int]) -> bool:
    """Returns whether the answer about a block is a single sum of floats."""
    if not _adds_floats(what, op):
        return False
    return prod(n // windows.get(at, 1) for at, n in enumerate(what.leaf.shape) if at not in reduced) == 1


def find_block_question(
    what: Canonical, op: str, reduced: set[int], windows: dict[int, int], skipna: bool
) -> tuple[Hashable, BlockIndex, Callable[[], BlockQuestion]] | None:
    """Returns the question of which a request about a block is a part.

    The result has a key that is equal for all blocks of the question, the index of the block, and a function that
    makes the question. It is ``None`` if the block needs a request of its own.
    """
    leaf = what.leaf
    blocks = leaf.blocks
    if blocks is None or 0 in leaf.shape or what.inputs.constants:
        # Constants that are sent belong to one block.
        return None
    takes: list[Hashable] = [take.key if isinstance(take, IndexList) else take for take in leaf.takes]
    axes, place = [], []
    for at, of_file in enumerate(leaf.axes):
        window = windows.get(at, 1) if windows else 1
        if of_file is None:
            if at in what.masks or window > 1:
                return None
            continue
        take = leaf.takes[of_file]
        if at in reduced and at in what.masks:
            takes[of_file] = takes[of_file], what.masks[at].tobytes()
            continue
        if isinstance(take, IndexList) and window > 1:
            return None
        found = blocks.locate_slice(of_file, take) if isinstance(take, tuple) and leaf.shape[at] % window == 0 else None
        if found is None:
            takes[of_file] = takes[of_file], window
            continue
        number, phase = found
        assert isinstance(take, tuple)
        axis = BlockAxis(of_file, at, at in reduced, phase, take[2], window)
        axes.append(axis)
        place.append(number)
        takes[of_file] = axis
    if not axes:
        return None
    if _is_single_sum(what, op, reduced, windows) and min(leaf.shape[axis.of_leaf] for axis in axes) > MAX_LABELLED:
        return None
    beside = tuple(what.inputs.variables())
    key = leaf.variable.key, blocks.key, tuple(takes), leaf.axes, what.text, op, skipna, tuple(sorted(reduced)), beside
    return key, tuple(place), partial(BlockQuestion, what, blocks, op, reduced, windows, skipna, axes)
