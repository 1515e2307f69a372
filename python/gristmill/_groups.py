"""Groups of the elements of an axis that are reduced one after the other, in one request for all.

``groupby`` of xarray takes the elements of a group, reduces them, and goes on to the next group. What it is about to take is
known to its loop alone, which is looked for among the callers when elements are taken. Where it is not found, because
xarray changed, each group is a request.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._expr import Leaf, Node, Picked, Take

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The loops of xarray over groups, and where they are.
LOOPS = ("_iter_grouped", "_iter_grouped_shortcut")
FILE = "xarray/core/groupby.py"

#: Callers that are looked at.
DEPTH = 16

#: Groupings that are remembered, so that each is made once.
MAX_KNOWN = 16


#: Most cells of one request for several groups: some answers must fit among those that are remembered.
MAX_CELLS = 1 << 18


#: Questions that are remembered of a grouping.
MAX_QUESTIONS = 64


class Grouping:
    """Groups of some elements of an axis of a file."""

    def __init__(self, of_file: int, elements: Sequence[NDArray[np.int64]]) -> None:
        every = np.concatenate(elements)
        self.of_file = of_file
        self.elements = elements
        self.distinct = len(every) == len(np.unique(every))
        #: The groups of which each question was asked.
        self._asked: dict[Hashable, set[int]] = {}
        self._some: dict[tuple[int, int], tuple[tuple[int, int, int], NDArray[np.int64]]] = {}

    def alike(self, question: Hashable, number: int) -> bool:
        """Whether a question about a group is one about all of them, as far as was seen: a number that was made of a group and
        is subtracted from it makes a question of its own for each group."""
        asked = self._asked.get(question)
        if asked is None:
            if len(self._asked) >= MAX_QUESTIONS or any(some != {number} and len(some) == 1 for some in self._asked.values()):
                return False
            asked = self._asked[question] = set()
        asked.add(number)
        return True

    def some(self, first: int, last: int) -> tuple[tuple[int, int, int], NDArray[np.int64]]:
        """The slice that holds all elements of the groups from ``first`` to the one before ``last``, and the group of each of
        its elements, -1 for none."""
        known = self._some.get((first, last))
        if known is None:
            elements = self.elements[first:last]
            start = min(int(one.min()) for one in elements)
            stop = max(int(one.max()) for one in elements) + 1
            labels = np.full(stop - start, -1)
            for number, one in enumerate(elements):
                labels[one - start] = number
            known = self._some[first, last] = (start, stop, 1), labels
        return known


_known: OrderedDict[Hashable, tuple[Any, Grouping]] = OrderedDict()


def announce(before: Node, after: Node) -> None:
    """Notes in the leaves of a tree, whose elements were just taken from another one, which groups xarray takes with them."""
    found = _loop()
    if found is None:
        return
    mark(before, after, *found)


def mark(before: Node, after: Node, groups: tuple[Any, ...], number: int) -> None:
    """Notes in the leaves of a tree that its elements are one of these groups of those of another tree: indices, or slices,
    of one axis."""
    for old, new in zip(before.leaves(), after.leaves()):
        changed = [axis for axis, take in enumerate(new.takes) if take is not old.takes[axis]]
        if new is not old and len(changed) == 1:
            new.member = _member(old.takes[changed[0]], new.takes[changed[0]], changed[0], groups, number)


def _loop() -> tuple[tuple[Any, ...], int] | None:
    """The groups of the loop that asks, and which one it is at."""
    frame = sys._getframe(2)
    for _ in range(DEPTH):
        if frame.f_code.co_name in LOOPS and frame.f_code.co_filename.endswith(FILE):
            try:
                groups = tuple(one for one in frame.f_locals["self"].encoded.group_indices if one)
                now = frame.f_locals["indices"]
                return groups, next(number for number, one in enumerate(groups) if one is now)
            except (AttributeError, KeyError, StopIteration, TypeError):
                return None
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def _member(
    before: Take, after: Take, of_file: int, groups: tuple[Any, ...], number: int
) -> tuple[Grouping, int] | None:
    if isinstance(before, int) or isinstance(after, int):
        return None
    form = before.key if isinstance(before, Picked) else before
    key = of_file, form, tuple(id(one) for one in groups)
    entry = _known.get(key)
    if entry is None:
        every = before.indices if isinstance(before, Picked) else np.arange(*before)
        elements = [every[one if isinstance(one, slice) else np.asarray(one)] for one in groups]
        if any(not len(some) for some in elements):
            return None
        # The groups are kept, so that nothing else has their identity.
        entry = _known[key] = groups, Grouping(of_file, elements)
        while len(_known) > MAX_KNOWN:
            _known.popitem(last=False)
    grouping = entry[1]
    mine = after.indices if isinstance(after, Picked) else np.arange(*after)
    if not grouping.distinct or not np.array_equal(mine, grouping.elements[number]):
        return None
    return grouping, number


@dataclass(frozen=True)
class Together:
    """Groups that are asked for together: the axis of the leaf, and which of the groups the leaf is."""

    axis: int
    taken: tuple[int, int, int]
    labels: NDArray[np.int64]
    count: int
    number: int


def together(
    leaf: Leaf, op: str, reduced: set[int], masks: dict[int, Any], cells: int, question: Hashable
) -> Together | None:
    """What to ask for with a leaf that is one of several groups, where it has so many cells; ``None`` if it is to be asked
    alone."""
    if leaf.member is None or op in ("argmin", "argmax"):
        return None
    grouping, number = leaf.member
    axis = leaf.axes.index(grouping.of_file) if grouping.of_file in leaf.axes else None
    if axis is None or axis not in reduced or axis in masks:
        return None
    several = MAX_CELLS // max(cells, 1)
    if several < 2 or not grouping.alike((leaf.variable.key, question), number):
        return None
    first = number - number % several
    last = min(first + several, len(grouping.elements))
    taken, labels = grouping.some(first, last)
    return Together(axis, taken, labels, last - first, number - first)
