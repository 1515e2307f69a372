"""Variables of several files as variables of one file, so that a reduction over all files is one request."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays.array import Array
from .._errors import GristmillError
from .._expressions.joining import join
from .._expressions.nodes import Leaf, Node
from .._expressions.takes import IndexList
from .._variables.joined_source import JoinedSource
from .._variables.source import Source
from .._variables.variable import Variable

if TYPE_CHECKING:
    import xarray as xr


class JoinedSources:
    """The files of an opened dataset as one file, for each dimension and each choice of files."""

    def __init__(self) -> None:
        self._made: dict[Hashable, JoinedSource] = {}

    def of(self, parts: Sequence[Source], dimension: str) -> JoinedSource:
        """Returns the files as one. Variables of the same files share it, so that one request can read several of them."""
        key = (dimension, *map(id, parts))
        made = self._made.get(key)
        # Another thread may make it at the same time.
        return made if made is not None else self._made.setdefault(key, JoinedSource(parts, dimension))

    def close(self) -> None:
        """Closes all files."""
        for made in self._made.values():
            made.close()


def add_joined(
    combined: xr.Dataset, parts: Sequence[xr.Dataset], dim: Hashable | None, sources: JoinedSources
) -> xr.Dataset:
    """Returns ``combined`` with the expressions of the variables that its parts continue along a dimension.

    ``dim`` is the dimension, for parts that are in order. ``None`` looks for the dimension by whose labels
    :func:`xarray.combine_by_coords` sorts the parts. The blocks stay as they are. Variables that the parts do not continue alike
    get no expression.
    """
    groups: dict[frozenset[Hashable], list[xr.Dataset]] = {}
    for part in parts:
        groups.setdefault(frozenset(part.data_vars) if dim is None else frozenset(), []).append(part)
    found: dict[Hashable, xr.Variable] = {}
    for group in groups.values():
        along = dim if dim is not None else _sorted_dim(group)
        if along is None or len(group) < 2:
            continue
        ordered = group if dim is not None else sorted(group, key=lambda part: part.indexes[along][0])
        if _is_concatenation(combined, ordered, along):
            found |= _joined(combined, ordered, along, sources)
    data = {name: one for name, one in found.items() if name in combined.data_vars}
    return combined.assign(data).assign_coords({name: one for name, one in found.items() if name not in data})


def _sorted_dim(parts: Sequence[xr.Dataset]) -> Hashable | None:
    """Returns the only dimension with different labels in the parts, if the labels have an order."""
    first = parts[0]
    different = []
    for name, labels in first.indexes.items():
        others = [part.indexes.get(name) for part in parts[1:]]
        if any(other is None for other in others):
            return None
        if any(not labels.equals(other) for other in others):
            different.append(name)
    if len(different) != 1:
        return None
    begins = [part.indexes[different[0]][:1].tolist() for part in parts]
    if not all(begins):
        return None
    try:
        ascending = sorted(begin[0] for begin in begins)
        return different[0] if all(one < other for one, other in pairwise(ascending)) else None
    except TypeError:
        return None


def _is_concatenation(combined: xr.Dataset, parts: Sequence[xr.Dataset], dim: Hashable) -> bool:
    """Returns whether all labels of the combined dataset are those of the parts, one part after the other."""
    for name, labels in combined.indexes.items():
        of_parts = [part.indexes[name] for part in parts if name in part.indexes]
        if len(of_parts) < len(parts):
            continue
        if name == dim:
            if len(labels) != sum(map(len, of_parts)) or not labels.equals(of_parts[0].append(of_parts[1:])):
                return False
        elif any(not labels.equals(one) for one in of_parts):
            return False
    return True


def _joined(
    combined: xr.Dataset, parts: Sequence[xr.Dataset], dim: Hashable, sources: JoinedSources
) -> dict[Hashable, xr.Variable]:
    """Returns the variables of the combined dataset that have expressions of the files as one."""
    from .._dask.whole_arrays import WholeArray

    found = {}
    for name, one in combined.variables.items():
        of_parts = [part.variables.get(name) for part in parts]
        if dim not in one.dims or one.chunks is None:
            continue
        arrays: list[Any] = [part._data for part in of_parts if part is not None and part.dims == one.dims]
        if len(arrays) < len(parts) or not all(isinstance(array, WholeArray) for array in arrays):
            continue
        axis = one.dims.index(dim)
        if _are_blocks_of(one._data, arrays, axis):
            data = WholeArray.wrap_later(one._data, partial(_expression, arrays, axis, sources))
            found[name] = type(one)(one.dims, data, one.attrs, one.encoding)
    return found


def _are_blocks_of(blocks: Any, arrays: Sequence[Any], axis: int) -> bool:
    """Returns whether blocks of dask are those of the arrays, one array after the other along an axis.

    xarray may also have chosen, filled or compared the values of several files.
    """
    layer = blocks.dask.layers.get(blocks.name)
    along = [(array.name, at) for array in arrays for at in range(array.numblocks[axis])]
    others = [count for at, count in enumerate(blocks.numblocks) if at != axis]
    if layer is None or blocks.numblocks[axis] != len(along):
        return False
    if any([count for at, count in enumerate(array.numblocks) if at != axis] != others for array in arrays):
        return False
    for place in np.ndindex(*blocks.numblocks):
        name, at = along[place[axis]]
        task = layer.get((blocks.name, *place))
        # Newer versions of dask have an object that names the other block, older ones its key.
        target = getattr(task, "target", task)
        if not isinstance(target, tuple) or target != (name, *place[:axis], at, *place[axis + 1 :]):
            return False
    return True


def _expression(arrays: Sequence[Any], axis: int, sources: JoinedSources) -> Array | None:
    """Returns the expression of arrays of dask as one array along an axis."""
    nodes: list[Node] = []
    for array in arrays:
        whole = array._expression()
        if whole is None:
            return None
        nodes.append(whole._node)
    try:
        node = join(nodes, axis, partial(_join_leaves, sources))
    except GristmillError:
        # The files are not in one cluster, or one of them was replaced. A read of its block says so.
        return None
    return None if node is None else Array(node)


def _join_leaves(sources: JoinedSources, leaves: list[Leaf], axis: int) -> Leaf | None:
    """Returns variables of several files as a variable of the files as one."""
    first = leaves[0]
    of_file = first.axes[axis]
    if of_file is None:
        return None

    def rest(leaf: Leaf) -> Hashable:
        takes = [take.key if isinstance(take, IndexList) else take for at, take in enumerate(leaf.takes) if at != of_file]
        return leaf.axes, leaf.variable.name, leaf.variable.dims, leaf.variable.decoded, tuple(takes)

    whole = all(leaf.takes[of_file] == (0, leaf.variable.shape[of_file], 1) for leaf in leaves)
    if not whole or any(rest(leaf) != rest(first) for leaf in leaves):
        return None
    source = sources.of([leaf.variable.source for leaf in leaves], first.variable.dims[of_file])
    about = source.opened.variable(first.variable.name)
    if about is None or about["refused"] or about["dtype"] is None or about["decoded"] is None:
        return None
    variable = Variable(source, about, first.variable.decoded)
    length = sum(leaf.variable.shape[of_file] for leaf in leaves)
    if variable.dtype != first.dtype or variable.shape[of_file] != length:
        return None
    takes = list(first.takes)
    takes[of_file] = (0, length, 1)
    return Leaf(variable, takes, first.axes)
