"""Several numbers at once, and what would be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._array import Array
from ._canonical import NotPushed, canonical
from ._errors import Usage
from ._expr import Windows
from ._reduce import stats as of_node
from ._reductions import reduction

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
        while not isinstance(array, Array) and hasattr(array, "array"):
            array = array.array
    if not isinstance(array, Array):
        return "it is here"
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
    return f"reduced where it is stored: {text}"
