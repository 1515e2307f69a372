"""Groups of elements of an axis that are reduced one after the other. One request reduces them all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .nodes import Leaf, Node
from .takes import IndexList, Take

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most groupings that are kept, so that each is made once.
MAX_KNOWN = 16

#: Most cells of one request for several groups. The cache of answers must have room for several such answers.
MAX_CELLS = 1 << 18

#: Most reductions of a grouping whose groups are recorded.
MAX_QUESTIONS = 64


class Grouping:
    """A division of elements of an axis of a file into groups."""

    def __init__(self, of_file: int, elements: Sequence[NDArray[np.int64]]) -> None:
        every = np.concatenate(elements)
        self.of_file = of_file
        self.elements = elements
        self.distinct = len(every) == len(np.unique(every))
        #: For each reduction, the groups that it was asked for.
        self._asked: dict[Hashable, set[int]] = {}
        self._spans: dict[tuple[int, int], tuple[tuple[int, int, int], NDArray[np.int64]]] = {}

    def is_common(self, question: Hashable, number: int) -> bool:
        """Returns whether a reduction of one group is probably asked for all groups.

        It is not if it contains a number that was computed from the group: such a reduction differs from group to
        group.
        """
        asked = self._asked.get(question)
        if asked is None:
            others = any(some != {number} and len(some) == 1 for some in self._asked.values())
            if len(self._asked) >= MAX_QUESTIONS or others:
                return False
            asked = self._asked[question] = set()
        asked.add(number)
        return True

    def span(self, first: int, last: int) -> tuple[tuple[int, int, int], NDArray[np.int64]]:
        """Returns the slice that contains the groups from ``first`` to ``last``, which is not included, and a label
        for each element: the number of its group minus ``first``, or -1."""
        known = self._spans.get((first, last))
        if known is None:
            elements = self.elements[first:last]
            start = min(int(one.min()) for one in elements)
            stop = max(int(one.max()) for one in elements) + 1
            labels = np.full(stop - start, -1)
            for number, one in enumerate(elements):
                labels[one - start] = number
            known = self._spans[first, last] = (start, stop, 1), labels
        return known


_groupings: OrderedDict[Hashable, tuple[Any, Grouping]] = OrderedDict()


def mark_groups(before: Node, after: Node, groups: tuple[Any, ...], number: int) -> None:
    """Marks the leaves of the tree ``after`` as group ``number`` of the tree ``before``.

    ``groups`` are indices or slices of one axis.
    """
    for old, new in zip(before.leaves(), after.leaves()):
        changed = [axis for axis, take in enumerate(new.takes) if take is not old.takes[axis]]
        if new is not old and len(changed) == 1:
            new.group = _find_member(old.takes[changed[0]], new.takes[changed[0]], changed[0], groups, number)


def _find_member(
    before: Take, after: Take, of_file: int, groups: tuple[Any, ...], number: int
) -> tuple[Grouping, int] | None:
    if isinstance(before, int) or isinstance(after, int):
        return None
    form = before.key if isinstance(before, IndexList) else before
    key = of_file, form, tuple(id(one) for one in groups)
    entry = _groupings.get(key)
    if entry is None:
        every = before.indices if isinstance(before, IndexList) else np.arange(*before)
        elements = [every[one if isinstance(one, slice) else np.asarray(one)] for one in groups]
        if any(not len(some) for some in elements):
            return None
        # Keeping the groups keeps their ids unique.
        entry = _groupings[key] = groups, Grouping(of_file, elements)
        while len(_groupings) > MAX_KNOWN:
            _groupings.popitem(last=False)
    grouping = entry[1]
    mine = after.indices if isinstance(after, IndexList) else np.arange(*after)
    if not grouping.distinct or not np.array_equal(mine, grouping.elements[number]):
        return None
    return grouping, number


@dataclass(frozen=True)
class GroupBatch:
    """Groups that one request reduces.

    ``axis`` is an axis of the leaf. ``taken`` is the slice of the file and ``labels`` the group of each of its
    elements. ``number`` is the group that the leaf is, among ``count`` groups.
    """

    axis: int
    taken: tuple[int, int, int]
    labels: NDArray[np.int64]
    count: int
    number: int


def find_group_batch(
    leaf: Leaf, op: str, reduced: set[int], masks: dict[int, Any], cells: int, question: Hashable
) -> GroupBatch | None:
    """Returns the groups to reduce together with a leaf, or ``None`` if the leaf is reduced alone.

    ``cells`` is the number of cells of the answer for one group; ``question`` identifies the reduction.
    """
    if leaf.group is None or op in ("argmin", "argmax"):
        return None
    grouping, number = leaf.group
    axis = leaf.axes.index(grouping.of_file) if grouping.of_file in leaf.axes else None
    if axis is None or axis not in reduced or axis in masks:
        return None
    several = MAX_CELLS // max(cells, 1)
    if several < 2 or not grouping.is_common((leaf.variable.key, question), number):
        return None
    first = number - number % several
    last = min(first + several, len(grouping.elements))
    taken, labels = grouping.span(first, last)
    return GroupBatch(axis, taken, labels, last - first, number - first)
