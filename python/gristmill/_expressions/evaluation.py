"""Values of trees, computed in this process out of elements that are read."""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .._requests.watches import map_in_threads
from .._variables.chunk_reads import read_taken
from .._variables.variable import RegularTake
from .block_reads import read_blocks
from .nodes import Apply, Const, Leaf, Node, Opaque, Windows
from .takes import IndexList, Take

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most hyperslabs that are read at once for one result.
READS_AT_ONCE = 4


def evaluate(node: Node) -> NDArray[Any]:
    """Returns the values of a node. Each hyperslab is read once. Callers must not write to the array.

    Raises the exceptions of reads, for example :class:`Stale`.
    """
    leaves = list({leaf.key: leaf for leaf in node.leaves() if 0 not in leaf.shape}.values())
    known: dict[Hashable, Any] = {}
    if len(leaves) > 1:
        parts = list(_group_leaves(leaves).values())
        with ThreadPoolExecutor(READS_AT_ONCE) as pool:
            for some in map_in_threads(pool, _read_together, parts):
                known.update(some)
    with np.errstate(all="ignore"):
        return np.asarray(_value(node, known, _count_repeated(node)))


def _count_repeated(node: Node) -> dict[int, int]:
    """Returns the ids of the operations that occur several times in a tree, and how often they occur."""
    found: dict[int, int] = {}
    left = [node]
    while left:
        for child in left.pop().children():
            found[id(child)] = found.get(id(child), 0) + 1
            if found[id(child)] == 1:
                left.append(child)
    return {at: times for at, times in found.items() if times > 1}


def _group_leaves(leaves: list[Leaf]) -> dict[Hashable, list[Leaf]]:
    """Groups the leaves that are read together: leaves of one variable that are close together or overlap."""
    groups: dict[Hashable, list[Leaf]] = {}
    out: dict[Hashable, list[Leaf]] = {}
    for leaf in leaves:
        if leaf.blocks is None:
            groups.setdefault(leaf.variable.key, []).append(leaf)
        else:
            out[leaf.key] = [leaf]
    for key, group in groups.items():
        both = prod(stop - start for start, stop, _ in _hull(group))
        if both <= sum(prod(leaf.shape) for leaf in group):
            out[key] = group
        else:
            out.update({leaf.key: [leaf] for leaf in group})
    return out


def take_bounds(take: Take) -> tuple[int, int]:
    """Returns the first selected element, and the last one plus 1."""
    if isinstance(take, int):
        return take, take + 1
    if isinstance(take, IndexList):
        return take.hull()[:2]
    taken = range(*take)
    return (taken[0], taken[-1] + 1) if len(taken) else (take[0], take[0])


def _hull(leaves: list[Leaf]) -> list[tuple[int, int, int]]:
    """Returns the smallest hyperslab that contains all leaves."""
    each = [[take_bounds(take) for take in leaf.takes] for leaf in leaves]
    return [(min(a for a, _ in axis), max(b for _, b in axis), 1) for axis in zip(*each)]


def _read_together(leaves: list[Leaf]) -> dict[Hashable, NDArray[Any]]:
    if len(leaves) == 1:
        return {leaves[0].key: read_leaf(leaves[0])}
    hull = _hull(leaves)
    values = read_taken(leaves[0].variable, tuple(hull))
    out = {}
    for leaf in leaves:
        part = values
        for axis in reversed(range(len(hull))):
            take, start = leaf.takes[axis], hull[axis][0]
            at: Any
            if isinstance(take, int):
                at = take - start
            elif isinstance(take, IndexList):
                at = take.indices - start
            else:
                at = slice(take[0] - start, take[1] - start, take[2])
            part = part[(slice(None),) * axis + (at,)]
        left = [axis for axis, take in enumerate(leaf.takes) if not isinstance(take, int)]
        out[leaf.key] = arrange_axes(part, leaf, left)
    return out


def read_leaf(leaf: Leaf) -> NDArray[Any]:
    """Returns the elements of a leaf."""
    if leaf.blocks is not None:
        left = [axis for axis, take in enumerate(leaf.takes) if not isinstance(take, int)]
        return arrange_axes(read_blocks(leaf), leaf, left)
    taken: list[RegularTake] = [_hull_of(leaf, axis) for axis in range(len(leaf.takes))]
    values = read_taken(leaf.variable, tuple(taken))
    left = [axis for axis, take in enumerate(leaf.takes) if not isinstance(take, int)]
    for at, axis in enumerate(left):
        take, whole = leaf.takes[axis], taken[axis]
        if isinstance(take, IndexList) and not isinstance(whole, int):
            values = values[(slice(None),) * at + (take.indices - whole[0],)]
    return arrange_axes(values, leaf, left)


def _hull_of(leaf: Leaf, axis: int) -> RegularTake:
    """Returns what is read along an axis of the file.

    The elements of a group often lie between those of other groups. Then all groups are read at once, and kept.
    """
    take = leaf.takes[axis]
    if not isinstance(take, IndexList):
        return take
    hull = take.hull()
    if leaf.group is not None and leaf.group[0].of_file == axis:
        every = leaf.group[0].span(0, len(leaf.group[0].elements))[0]
        # Groups that do not overlap are read one by one.
        return every if every[1] - every[0] <= 2 * (hull[1] - hull[0]) else hull
    return hull


def arrange_axes(values: NDArray[Any], leaf: Leaf, has: list[int]) -> NDArray[Any]:
    """Moves values into the order of the axes of a leaf.

    ``has`` are the axes of the file that the values have. The other axes of the leaf get length 1.
    """
    order = [has.index(axis) for axis in leaf.axes if axis is not None and axis in has]
    values = values.transpose(order)
    for at, axis in enumerate(leaf.axes):
        if axis is None:
            # Axes before it that the values do not have take no place.
            place = sum(one is None or one in has for one in leaf.axes[:at])
            values = np.expand_dims(values, place)
    return values


def _value(node: Node, known: dict[Hashable, Any], several: dict[int, int]) -> Any:
    if 0 in node.shape:
        return np.empty(node.shape, node.dtype)
    if isinstance(node, Const):
        return node.array()
    if isinstance(node, Leaf):
        found = known.get(node.key)
        return read_leaf(node) if found is None else found
    assert isinstance(node, (Apply, Opaque, Windows))
    # An operation that occurs several times is computed once, and kept until its last use.
    at = id(node)
    if at in known:
        several[at] -= 1
        return known.pop(at) if several[at] == 0 else known[at]
    values = (_value(child, known, several) for child in node.children())
    value = next(values).reshape(node.shape) if isinstance(node, Windows) else node.function(*values)
    if at in several:
        several[at] -= 1
        known[at] = value
    return value
