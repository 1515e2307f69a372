"""Reductions of groups of elements that lie together, as flox asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._canonical import NotPushed
from ._groups import mark
from ._indexing import index
from ._reduce import normal_axes, reduce
from ._reductions import OF_UFUNCS

#: Most groups that are asked for.
MAX_GROUPS = 4096


def reduceat(which: np.ufunc, array: Any, places: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """What ``which.reduceat`` gives, by one request for groups of elements that lie together.

    Raises :class:`NotPushed`, with why.
    """
    name = OF_UFUNCS.get(which.__name__)
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
        mark(node, part, groups, number)
        parts.append(reduce(name, part, at, dtype=dtype))
    with np.errstate(all="ignore"):
        result = which.reduceat(np.zeros(1, node.dtype), [0], dtype=dtype).dtype
    return np.stack(parts, at).astype(result, copy=False)
