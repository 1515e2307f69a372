"""``reduceat`` of universal functions: reductions of adjacent groups of elements, as flox uses them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._expressions.axes import normal_axes
from .._expressions.groupings import mark_groups
from .._expressions.indexing import index
from .._pushdown.not_pushed import NotPushed
from .._pushdown.reduce import reduce
from .reductions import UFUNC_REDUCTIONS

#: Most groups of one call.
MAX_GROUPS = 4096


def reduceat(which: np.ufunc, array: Any, places: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """Computes ``which.reduceat`` by one request. ``places`` are the first elements of the groups.

    Raises :class:`NotPushed` if storage nodes cannot compute it.
    """
    name = UFUNC_REDUCTIONS.get(which.__name__)
    starts = np.asarray(places)
    node = array._node
    if name is None or starts.ndim != 1 or not len(starts):
        raise NotPushed("there is no such kernel")
    (at,) = normal_axes(axis, node.ndim)
    if len(starts) > MAX_GROUPS or next(node.leaves(), None) is None:
        raise NotPushed("it has too many groups")
    if starts[0] < 0 or starts[-1] >= node.shape[at] or (np.diff(starts) <= 0).any():
        raise NotPushed("its indices do not ascend")
    groups = tuple(slice(int(a), int(b)) for a, b in zip(starts, [*starts[1:], node.shape[at]]))
    parts = []
    for number, group in enumerate(groups):
        part = index(node, (slice(None),) * at + (group,))
        mark_groups(node, part, groups, number)
        parts.append(reduce(name, part, at, dtype=dtype))
    with np.errstate(all="ignore"):
        result = which.reduceat(np.zeros(1, node.dtype), [0], dtype=dtype).dtype
    return np.stack(parts, at).astype(result, copy=False)
