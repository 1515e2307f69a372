"""A question about a box of blocks as one request, and the part of its answer that is about one of them.

Blocks become windows, or groups, of an axis that is reduced, and parts of one that is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._blocks import Blocks, Box, Place, Tree
from ._canonical import Canonical, NotPushed
from ._expr import Picked
from ._request import Request, labels, placed

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most bytes of the state of one request, as ``array::MAX_STATE_BYTES``.
MAX_STATE = 60 << 20

#: Most bytes of the state of one cell, by what takes more than the others.
CELL_BYTES = {"comoments": 270}
MAX_CELL_BYTES = 170

#: Most elements along axes that are cut into blocks in one request; see ``array::MAX_LABELS``.
MAX_WINDOWED = 1 << 24

#: The same where a label travels for each element.
MAX_LABELLED = 1 << 20

#: Operations whose sums of floats are exact where one number is asked for, and binned where several are.
_SUMS = ("totals", "moments", "sum", "mean", "var", "std")


def most_cells(op: str) -> int:
    """Most cells of one request."""
    return MAX_STATE // CELL_BYTES.get(op, MAX_CELL_BYTES)


class Axis(NamedTuple):
    """An axis along which the blocks of a family differ."""

    #: In the file, and in the leaf.
    of_file: int
    of_leaf: int
    reduced: bool
    #: The first element that is taken, modulo the step.
    phase: int
    step: int
    #: Length of the windows into which an axis is cut that is kept.
    window: int


class Form:
    """What questions about the blocks of one array have in common; ``what`` is one of them."""

    def __init__(
        self,
        what: Canonical,
        blocks: Blocks,
        op: str,
        reduced: set[int],
        windows: dict[int, int],
        skipna: bool,
        axes: Sequence[Axis],
    ) -> None:
        self.what, self.blocks, self.op, self.skipna = what, blocks, op, skipna
        self.reduced, self.windows, self.axes = reduced, windows, axes
        leaf = what.leaf
        #: The axes of the file that are taken with their elements.
        self.shown = [axis for axis, take in enumerate(leaf.takes) if not isinstance(take, int)]
        free = {axis.of_leaf for axis in axes}
        reduced_alike = [at for at in reduced - free if leaf.axes[at] is not None]
        #: Those that are reduced as one group of some of their elements, and those that are reduced whole.
        self.grouped: set[int] = set()
        self.gone: set[int] = set()
        for at in reduced_alike:
            of_file = leaf.axes[at]
            assert of_file is not None
            some = isinstance(leaf.takes[of_file], Picked) or at in what.masks
            (self.grouped if some else self.gone).add(of_file)
        self.sums = _sums(what, op)
        self.units = self._units()
        by_file = {axis.of_file: number for number, axis in enumerate(axes)}
        #: For each axis of an answer about a box: the number of the family's axis, or ``None``.
        self.layout = [by_file.get(of_file) for of_file in self.shown if of_file not in self.gone]
        #: The axes of the file that an answer about a block has.
        self.left = [
            of_file
            for of_file in self.shown
            if of_file not in self.gone and not (of_file in by_file and axes[by_file[of_file]].reduced)
        ]
        #: Whether these come as the leaf has them.
        kept = [axis for at, axis in enumerate(leaf.axes) if at not in reduced]
        self.in_order = kept == self.left and not any(isinstance(leaf.takes[axis], Picked) for axis in self.left)

    def tree(self) -> Tree:
        """Boxes grow along the axes that are reduced first, for who needs one block needs all that it is added to: along all of
        them in turn, as dask adds cubes of blocks and cubes of these. Then along the others, one after the other. The last axis
        comes first, as in the order in which dask goes through blocks."""
        counts = [-(-self._blocks_along(axis) // unit) for axis, unit in zip(self.axes, self.units)]
        reduced = [at for at, axis in enumerate(self.axes) if axis.reduced]
        kept = [[at] for at, axis in enumerate(self.axes) if not axis.reduced]
        return Tree(counts, [reduced[::-1], *kept[::-1]])

    def _blocks_along(self, axis: Axis) -> int:
        return len(self.blocks.bounds[axis.of_file]) - 1

    def unit(self, place: Place) -> Place:
        """The blocks that are asked about together whatever is needed of them: those that lie in the same chunks of the file,
        which are read whole for one of them as for all."""
        return tuple(at // unit for at, unit in zip(place, self.units))

    def _units(self) -> Place:
        """How many blocks lie in a chunk, along each axis of the family."""
        chunks, out = self.what.leaf.variable.chunks, []
        for axis in self.axes:
            bounds = self.blocks.bounds[axis.of_file]
            out.append(max(1, round(chunks[axis.of_file] / (bounds[1] - bounds[0]))) if chunks else 1)
        self.units = tuple(out)
        first = (0,) * len(out)
        return self.units if self.fits(Box(0, first, (1,) * len(out))) else (1,) * len(out)

    def _span(self, box: Box) -> tuple[Place, Place]:
        """The first blocks of a box of units, and the ones behind its last."""
        first = tuple(at * unit for at, unit in zip(box.first, self.units))
        last = tuple(
            min(at * unit, self._blocks_along(axis)) for at, unit, axis in zip(box.last, self.units, self.axes)
        )
        return first, last

    def _counts(self, box: Box) -> list[NDArray[np.int64]]:
        """How many elements blocks of a box have, along each axis of the family."""
        first, last = self._span(box)
        return [
            self.blocks.counts(axis.of_file, first[at], last[at], axis.phase, axis.step)
            for at, axis in enumerate(self.axes)
        ]

    def _fixed_cells(self) -> int:
        """Cells along the axes that all blocks have alike."""
        free = {axis.of_leaf for axis in self.axes} | self.reduced
        return prod(n // self.windows.get(at, 1) for at, n in enumerate(self.what.leaf.shape) if at not in free)

    def _cells(self, each: list[NDArray[np.int64]]) -> int:
        """Cells of the answer about a box whose blocks have so many elements along each axis of the family."""
        along = (
            len(counts) if axis.reduced else int(counts.sum()) // axis.window for axis, counts in zip(self.axes, each)
        )
        return prod(along) * self._fixed_cells()

    def fits(self, box: Box) -> bool:
        """Whether a box may be one request."""
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

    def ask(self, box: Box) -> dict[str, NDArray[Any]]:
        """The answer about a box: arrays with the axes of :attr:`layout`.

        Raises :class:`NotPushed` if a window reaches from one block into the next.
        """
        if any((counts % axis.window).any() for axis, counts in zip(self.axes, self._counts(box))):
            raise NotPushed("its blocks are not asked about together")
        leaf, masks = self.what.leaf, self.what.masks
        place = {axis: at for at, axis in enumerate(self.shown)}
        taken = [take.hull() if isinstance(take, Picked) else take for take in leaf.takes]
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
                groups[at] = labels(leaf.takes[of_file], masks.get(i)), 1
            elif i in self.reduced:
                axes.append(at)
        each, (low, high) = self._counts(box), self._span(box)
        for number, (axis, counts) in enumerate(zip(self.axes, each)):
            at = place[axis.of_file]
            first, last = low[number], high[number]
            taken[axis.of_file] = self.blocks.taken(axis.of_file, first, last, axis.phase, axis.step)
            if not axis.reduced:
                if axis.window > 1:
                    windows[at] = axis.window
            elif counts.min() == counts.max():
                windows[at] = int(counts[0])
            else:
                groups[at] = np.repeat(np.arange(len(counts)), counts), len(counts)
        if self.sums and self._cells(each) == 1:
            # A second group, which is empty: one number would be computed in another way.
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

    def part(self, found: dict[str, NDArray[Any]], box: Box, place: Place) -> dict[str, NDArray[Any]]:
        """The answer about one block, out of that about a box."""
        index: list[int | slice] = []
        for number in self.layout:
            if number is None:
                index.append(slice(None))
                continue
            axis, first, at = self.axes[number], box.first[number] * self.units[number], place[number]
            if axis.reduced:
                index.append(at - first)
                continue
            start = self.blocks.between(axis.of_file, first, at, axis.phase, axis.step)
            stop = start + self.blocks.between(axis.of_file, at, at + 1, axis.phase, axis.step)
            index.append(slice(start // axis.window, stop // axis.window))
        key = tuple(index)
        if self.in_order:
            return {name: values[key] for name, values in found.items()}
        return {
            name: placed(values[key], self.what, self.left, dict.fromkeys(self.grouped, 0), self.reduced)
            for name, values in found.items()
        }


def _sums(what: Canonical, op: str) -> bool:
    """Whether an answer is made of sums of floats."""
    return what.dtype.kind == "f" and op in _SUMS


def _single(what: Canonical, op: str, reduced: set[int], windows: dict[int, int]) -> bool:
    """Whether an answer about a block is one number that is a sum of floats."""
    if not _sums(what, op):
        return False
    return prod(n // windows.get(at, 1) for at, n in enumerate(what.leaf.shape) if at not in reduced) == 1


def form_of(
    what: Canonical, op: str, reduced: set[int], windows: dict[int, int], skipna: bool
) -> tuple[Hashable, Place, Callable[[], Form]] | None:
    """What a question about a block has in common with those about others, equal for these; which block it is; and the form
    of such questions. ``None`` where it is to be asked alone."""
    leaf = what.leaf
    blocks = leaf.blocks
    if blocks is None or 0 in leaf.shape or what.inputs.constants:
        # What is sent with a block is for that block.
        return None
    takes: list[Hashable] = [take.key if isinstance(take, Picked) else take for take in leaf.takes]
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
        if isinstance(take, Picked) and window > 1:
            return None
        found = blocks.place(of_file, take) if isinstance(take, tuple) and leaf.shape[at] % window == 0 else None
        if found is None:
            takes[of_file] = takes[of_file], window
            continue
        number, phase = found
        assert isinstance(take, tuple)
        axis = Axis(of_file, at, at in reduced, phase, take[2], window)
        axes.append(axis)
        place.append(number)
        takes[of_file] = axis
    if not axes:
        return None
    if _single(what, op, reduced, windows) and min(leaf.shape[axis.of_leaf] for axis in axes) > MAX_LABELLED:
        return None
    beside = tuple(what.inputs.variables())
    key = leaf.variable.key, blocks.key, tuple(takes), leaf.axes, what.text, op, skipna, tuple(sorted(reduced)), beside
    return key, tuple(place), partial(Form, what, blocks, op, reduced, windows, skipna, axes)
