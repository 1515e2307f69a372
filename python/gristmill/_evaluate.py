"""The values of trees, computed here from elements that are read."""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ._block_reads import read_blocks
from ._chunk_reads import read_taken
from ._expr import Apply, Const, Leaf, Node, Opaque, Picked, Take, Windows
from ._source import Taken
from ._watching import in_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Hyperslabs that are read at once for one result.
READS_AT_ONCE = 4


def evaluate(node: Node) -> NDArray[Any]:
    """The values of a node. Every hyperslab that it needs is read once; the array may not be one to write to."""
    leaves = list({leaf.key: leaf for leaf in node.leaves() if 0 not in leaf.shape}.values())
    known: dict[Hashable, Any] = {}
    if len(leaves) > 1:
        parts = list(_together(leaves).values())
        with ThreadPoolExecutor(READS_AT_ONCE) as pool:
            for some in in_threads(pool, _read_together, parts):
                known.update(some)
    with np.errstate(all="ignore"):
        return np.asarray(_value(node, known, _several(node)))


def _several(node: Node) -> dict[int, int]:
    """The operations of a tree that occur several times, and how often."""
    found: dict[int, int] = {}
    left = [node]
    while left:
        for child in left.pop().children():
            found[id(child)] = found.get(id(child), 0) + 1
            if found[id(child)] == 1:
                left.append(child)
    return {at: times for at, times in found.items() if times > 1}


def _together(leaves: list[Leaf]) -> dict[Hashable, list[Leaf]]:
    """Leaves that are read at once: those of one variable, where they lie close together or over each other."""
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


def ends(take: Take) -> tuple[int, int]:
    """The first element that is taken, and the one behind the last."""
    if isinstance(take, int):
        return take, take + 1
    if isinstance(take, Picked):
        return take.hull()[:2]
    taken = range(*take)
    return (taken[0], taken[-1] + 1) if len(taken) else (take[0], take[0])


def _hull(leaves: list[Leaf]) -> list[tuple[int, int, int]]:
    """The hyperslab that holds all of these."""
    each = [[ends(take) for take in leaf.takes] for leaf in leaves]
    return [(min(a for a, _ in axis), max(b for _, b in axis), 1) for axis in zip(*each)]


def _read_together(leaves: list[Leaf]) -> dict[Hashable, NDArray[Any]]:
    if len(leaves) == 1:
        return {leaves[0].key: read(leaves[0])}
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
            elif isinstance(take, Picked):
                at = take.indices - start
            else:
                at = slice(take[0] - start, take[1] - start, take[2])
            part = part[(slice(None),) * axis + (at,)]
        left = [axis for axis, take in enumerate(leaf.takes) if not isinstance(take, int)]
        out[leaf.key] = arranged(part, leaf, left)
    return out


def read(leaf: Leaf) -> NDArray[Any]:
    """The elements of a leaf."""
    if leaf.blocks is not None:
        return arranged(read_blocks(leaf), leaf, [at for at, take in enumerate(leaf.takes) if not isinstance(take, int)])
    taken: list[Taken] = [_hull_of(leaf, axis) for axis in range(len(leaf.takes))]
    values = read_taken(leaf.variable, tuple(taken))
    left = [axis for axis, take in enumerate(leaf.takes) if not isinstance(take, int)]
    for at, axis in enumerate(left):
        take, whole = leaf.takes[axis], taken[axis]
        if isinstance(take, Picked) and not isinstance(whole, int):
            values = values[(slice(None),) * at + (take.indices - whole[0],)]
    return arranged(values, leaf, left)


def _hull_of(leaf: Leaf, axis: int) -> Taken:
    """What is read for what is taken of an axis. Elements that are one of several groups lie among those of the next ones: all
    of these are read at once, and kept."""
    take = leaf.takes[axis]
    if not isinstance(take, Picked):
        return take
    hull = take.hull()
    if leaf.member is not None and leaf.member[0].of_file == axis:
        every = leaf.member[0].some(0, len(leaf.member[0].elements))[0]
        # Groups that lie each in a place of its own are read one by one.
        return every if every[1] - every[0] <= 2 * (hull[1] - hull[0]) else hull
    return hull


def arranged(values: NDArray[Any], leaf: Leaf, has: list[int]) -> NDArray[Any]:
    """Values whose axes are these of the file, in the order of the axes of a leaf; those that it has besides have length
    1."""
    order = [has.index(axis) for axis in leaf.axes if axis is not None and axis in has]
    values = values.transpose(order)
    for at, axis in enumerate(leaf.axes):
        if axis is None:
            # Those before it that are not there any more take no place.
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
        return read(node) if found is None else found
    assert isinstance(node, (Apply, Opaque, Windows))
    # What occurs several times in a tree is computed once, and kept until it was taken for the last time.
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
