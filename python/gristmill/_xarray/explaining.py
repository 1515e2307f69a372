"""Explanations of where a reduction would run."""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

from .._arrays.array import Array
from .._expressions.nodes import Windows
from .._pushdown.canonical import canonical
from .._pushdown.not_pushed import NotPushed

#: Start of the explanation of an array that is not read.
PUSHED = "reduced where it is stored"

#: Most tasks of a layer of a graph that are inspected.
MAX_TASKS = 64


def explain(array: Any) -> str:
    """Returns a sentence that says where a reduction of an array would run, and why.

    ``array`` is an :class:`Array`, an array of dask, or an array or a variable of xarray, of any shape. Nothing is
    sent or read.

    >>> import gristmill as gm, numpy as np
    >>> np.save("some.npy", np.arange(9.0).reshape(3, 3))
    >>> gm.explain(gm.open_arrays("some.npy")["data"][1:] > 4)
    'reduced where it is stored: (x > 4) with x = data[1:3, 0:3]'
    """
    if not isinstance(array, Array):
        data = getattr(array, "variable", array)
        array = getattr(data, "_data", data)
        if type(array).__module__.startswith("xarray."):
            from .wrappers import unwrap

            array = unwrap(array)
    if "dask.array" in sys.modules and isinstance(array, sys.modules["dask.array"].Array):
        return _explain_blocks(array)
    if not isinstance(array, Array):
        return "it is here"
    return _explain_array(array)


def _explain_blocks(blocks: Any) -> str:
    """Explains an array of dask."""
    from .._dask.whole_arrays import ReductionTask, WholeArray

    count = f"{blocks.npartitions} block{'' if blocks.npartitions == 1 else 's'} of dask"
    whole = blocks._expression() if isinstance(blocks, WholeArray) else None
    if whole is not None:
        text = _explain_array(whole)
        pushed = text.startswith(PUSHED)
        return f"{text}, with one request for all {count}" if pushed else f"{text} ({count}, one by one)"
    names, asked = set(), 0
    for layer in blocks.dask.layers.values():
        if not layer.is_materialized():
            continue
        for task in islice(layer.values(), MAX_TASKS):
            if isinstance(task, Array):
                names |= {leaf.variable.name for leaf in task._node.leaves()}
            asked += sum(isinstance(one, ReductionTask) for one in getattr(task, "args", ()))
    if asked:
        return f"{count} made of {asked} reduction{'' if asked == 1 else 's'} where the data is stored"
    if not names:
        return f"it is here, or where dask computes it: {count}, none of which Gristmill stores"
    text = "those that dask reduces before it does anything else with them are reduced where they are stored"
    text += ", others are read"
    return f"{count} over {', '.join(sorted(names))}, one by one: {text}"


def _explain_array(array: Array) -> str:
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
    return f"{PUSHED}: {text}"
