"""Several numbers at once, and what would be asked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from ._array import Array
from ._canonical import NotPushed, canonical
from ._errors import Usage
from ._expr import Windows
from ._reduce import stats as of_node
from ._reductions import reduction

#: How an explanation begins of what is not read.
STORED = "reduced where it is stored"

#: Tasks of one layer of a graph that are looked at.
LOOKED_AT = 64

#: What :func:`stats` gives.
STATS = ("count", "sum", "mean", "std", "var", "min", "max")


def stats(array: Array, names: Sequence[str], axis: Any = None, *, ddof: float = 0) -> dict[str, Any]:
    """Several statistics of what is not missing, by one request.

    >>> import gristmill as gm, numpy as np
    >>> np.save("some.npy", np.array([1.0, np.nan, 3.0]))
    >>> {name: float(value) for name, value in gm.stats(gm.open_arrays("some.npy")["data"], ["mean", "count"]).items()}
    {'mean': 2.0, 'count': 2.0}
    """
    for name in names:
        if name not in STATS:
            raise Usage(f"there is no statistic {name!r}; there are {', '.join(STATS)}")
    try:
        return of_node(array._node, list(names), axis, ddof)
    except NotPushed:
        out = {}
        for name in names:
            if name == "count":
                out[name] = reduction("sum", ~np.isnan(array), axis)
            else:
                out[name] = reduction(f"nan{name}", array, axis, **({"ddof": ddof} if name in ("std", "var") else {}))
        return out


def explain(array: Any) -> str:
    """What a reduction of this array would do, in a sentence.

    >>> import gristmill as gm, numpy as np
    >>> np.save("some.npy", np.arange(9.0).reshape(3, 3))
    >>> gm.explain(gm.open_arrays("some.npy")["data"][1:] > 4)
    'reduced where it is stored: (x > 4) with x = data[1:3, 0:3]'
    """
    if not isinstance(array, Array):
        data = getattr(array, "variable", array)
        array = getattr(data, "_data", data)
        if type(array).__module__.startswith("xarray."):
            from ._chunks import unwrapped

            array = unwrapped(array)
    if "dask.array" in sys.modules and isinstance(array, sys.modules["dask.array"].Array):
        return _of_blocks(array)
    if not isinstance(array, Array):
        return "it is here"
    return _of_array(array)


def _of_blocks(blocks: Any) -> str:
    """What becomes of an array of dask."""
    from ._whole import Question, Whole

    count = f"{blocks.npartitions} block{'' if blocks.npartitions == 1 else 's'} of dask"
    whole = blocks._is() if isinstance(blocks, Whole) else None
    if whole is not None:
        text = _of_array(whole)
        return f"{text}, with one request for all {count}" if text.startswith(STORED) else f"{text} ({count}, one by one)"
    names, asked = set(), 0
    for layer in blocks.dask.layers.values():
        if not layer.is_materialized():
            continue
        for task in islice(layer.values(), LOOKED_AT):
            if isinstance(task, Array):
                names |= {leaf.variable.name for leaf in task._node.leaves()}
            asked += sum(isinstance(one, Question) for one in getattr(task, "args", ()))
    if asked:
        return f"{count} made of {asked} reduction{'' if asked == 1 else 's'} where the data is stored"
    if not names:
        return f"it is here, or where dask computes it: {count}, none of which Gristmill stores"
    text = "those that dask reduces before it does anything else with them are reduced where they are stored, others are read"
    return f"{count} over {', '.join(sorted(names))}, one by one: {text}"


def _of_array(array: Array) -> str:
    try:
        what = canonical(array._node)
    except NotPushed as error:
        return f"read before it is reduced: {error}"
    leaf = what.leaf
    takes = ", ".join(
        str(take)
        if isinstance(take, int)
        else ":".join(map(str, take[:2] if take[2] == 1 else take))
        if isinstance(take, tuple)
        else f"{len(take)} picked"
        for take in leaf.takes
    )
    text = f"{what.text or 'x'} with x = {leaf.variable.name}[{takes}]"
    for name, other in what.inputs.others.items():
        text += f", {name} = {other.variable.name}[{takes}]"
    for name, constant in what.inputs.constants.items():
        text += f", {name} = {constant.size} numbers that are sent"
    if isinstance(array._node, Windows):
        text += f", in windows of {', '.join(str(n) for n in what.split if n)}"
    return f"{STORED}: {text}"
