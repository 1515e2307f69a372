"""NumPy's reductions: on storage nodes if possible, otherwise in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._pushdown.not_pushed import NotPushed
from .._pushdown.reduce import reduce
from .fallback import array_type, compute_here

#: Reductions by the universal functions that make them.
UFUNC_REDUCTIONS = {
    "add": "sum",
    "minimum": "min",
    "maximum": "max",
    "fmin": "nanmin",
    "fmax": "nanmax",
    "logical_and": "all",
    "logical_or": "any",
}


def reduction(name: str, array: Any, axis: Any = None, dtype: Any = None, out: Any = None, **more: Any) -> Any:
    """Computes a reduction of NumPy by its name, on storage nodes if possible, otherwise in this process."""
    function: Callable[..., Any] = getattr(np, name)
    more = {key: value for key, value in more.items() if value is not np._NoValue}
    given = {**more, **({"dtype": dtype} if dtype is not None else {})}
    if more.get("where", True) is True:
        more.pop("where", None)
    known = {key: more[key] for key in ("keepdims", "ddof") if key in more}
    if "correction" in more:
        known["ddof"] = more["correction"]
    if not isinstance(array, array_type()):
        return compute_here(function, name, "an argument is stored elsewhere", (array, axis), {**given, "out": out})
    node = array._node
    if 0 in array.shape or next(node.leaves(), None) is None:
        outputs = {} if out is None else {"out": out}
        return compute_here(function, name, "", (array,), {"axis": axis, **given, **outputs})
    if out is None and set(more) <= {"keepdims", "ddof", "correction"}:
        try:
            return reduce(name, node, axis, dtype=dtype, **known)
        except NotPushed as error:
            return compute_here(function, name, str(error), (array,), {"axis": axis, **given})
    if out is not None:
        given["out"] = out
    return compute_here(
        function, name, "it has arguments that there is no kernel for", (array,), {"axis": axis, **given}
    )


#: Names of NumPy's reductions.
REDUCTIONS = (
    ["sum", "mean", "std", "var", "min", "max", "amin", "amax", "argmin", "argmax", "any", "all", "count_nonzero"]
    + ["nansum", "nanmean", "nanstd", "nanvar", "nanmin", "nanmax", "nanargmin", "nanargmax"]
)  # fmt: skip


def with_numpy_signature(name: str) -> Callable[..., Any]:
    """Returns a reduction as a function with NumPy's signature."""
    plain_name = {"amin": "min", "amax": "max"}.get(name, name)
    # NumPy's signatures are (a, axis, out, keepdims) and (a, axis, dtype, out, ...).
    if plain_name in ("sum", "mean", "nansum", "nanmean"):

        def with_dtype(
            a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any
        ) -> Any:
            return reduction(plain_name, a, axis, dtype, out, keepdims=keepdims, **more)

        return with_dtype
    if plain_name in ("std", "var", "nanstd", "nanvar"):

        def with_ddof(
            a: Any,
            axis: Any = None,
            dtype: Any = None,
            out: Any = None,
            ddof: Any = 0,
            keepdims: Any = False,
            **more: Any,
        ) -> Any:
            return reduction(plain_name, a, axis, dtype, out, ddof=ddof, keepdims=keepdims, **more)

        return with_ddof

    def plain(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        return reduction(plain_name, a, axis, None, out, keepdims=keepdims, **more)

    return plain
