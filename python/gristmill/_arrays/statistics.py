"""Several statistics by one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._errors import Usage
from .._pushdown.not_pushed import NotPushed
from .._pushdown.reduce import stats as stats_of_node
from .array import Array
from .reductions import reduction

#: Names of the statistics of :func:`stats`.
STATS = ("count", "sum", "mean", "std", "var", "min", "max")


def stats(array: Array, names: Sequence[str], axis: Any = None, *, ddof: float = 0) -> dict[str, Any]:
    """Computes several statistics of the elements that are not missing, by one request.

    Returns a dictionary from names to arrays of NumPy with the shape of ``array`` without the reduced axes, or to
    scalars if no axis is left. ``count`` is int64, and the others have the types of NumPy's reductions.

    >>> import gristmill as gm, numpy as np
    >>> np.save("some.npy", np.array([1.0, np.nan, 3.0]))
    >>> {name: float(value) for name, value in gm.stats(gm.open_arrays("some.npy")["data"], ["mean", "count"]).items()}
    {'mean': 2.0, 'count': 2.0}

    array
        An array of numbers, or an expression.
    names
        Some of ``count``, ``sum``, ``mean``, ``std``, ``var``, ``min`` and ``max``.
    axis
        An axis, several axes, or ``None`` for all axes.
    ddof
        Degrees of freedom that ``std`` and ``var`` subtract from the number of elements.

    Raises :class:`Usage` for an unknown name, ``IndexError`` for an axis that is not there, and the exceptions of
    :class:`Array`.
    """
    for name in names:
        if name not in STATS:
            raise Usage(f"there is no statistic {name!r}; there are {', '.join(STATS)}")
    try:
        return stats_of_node(array._node, list(names), axis, ddof)
    except NotPushed:
        out = {}
        for name in names:
            if name == "count":
                out[name] = reduction("sum", ~np.isnan(array), axis)
            else:
                out[name] = reduction(f"nan{name}", array, axis, **({"ddof": ddof} if name in ("std", "var") else {}))
        return out
