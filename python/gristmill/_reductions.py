"""Reductions as NumPy calls them: where the data is stored if they can run there, else here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._canonical import NotPushed
from ._here import array_type, computed_here
from ._reduce import reduce

#: Reductions that universal functions make.
OF_UFUNCS = {
    "add": "sum",
    "minimum": "min",
    "maximum": "max",
    "fmin": "nanmin",
    "fmax": "nanmax",
    "logical_and": "all",
    "logical_or": "any",
}


def reduction(name: str, array: Any, axis: Any = None, dtype: Any = None, out: Any = None, **more: Any) -> Any:
    """A reduction: on storage nodes if they can, else here."""
    function: Callable[..., Any] = getattr(np, name)
    more = {key: value for key, value in more.items() if value is not np._NoValue}
    given = {**more, **({"dtype": dtype} if dtype is not None else {})}
    if more.get("where", True) is True:
        more.pop("where", None)
    known = {key: more[key] for key in ("keepdims", "ddof") if key in more}
    if "correction" in more:
        known["ddof"] = more["correction"]
    if not isinstance(array, array_type()):
        return computed_here(function, name, "an argument is stored elsewhere", (array, axis), {**given, "out": out})
    node = array._node
    if 0 in array.shape or next(node.leaves(), None) is None:
        return computed_here(function, name, "", (array,), {"axis": axis, **given, **({} if out is None else {"out": out})})
    if out is None and set(more) <= {"keepdims", "ddof", "correction"}:
        try:
            return reduce(name, node, axis, dtype=dtype, **known)
        except NotPushed as error:
            return computed_here(function, name, str(error), (array,), {"axis": axis, **given})
    if out is not None:
        given["out"] = out
    return computed_here(
        function, name, "it has arguments that there is no kernel for", (array,), {"axis": axis, **given}
    )


#: Names of NumPy's reductions.
REDUCTIONS = (
    ["sum", "mean", "std", "var", "min", "max", "amin", "amax", "argmin", "argmax", "any", "all", "count_nonzero"]
    + ["nansum", "nanmean", "nanstd", "nanvar", "nanmin", "nanmax", "nanargmin", "nanargmax"]
)  # fmt: skip


def reducer(name: str) -> Callable[..., Any]:
    """A reduction with the signature that NumPy gives it."""
    spoken = {"amin": "min", "amax": "max"}.get(name, name)
    # (a, axis, out, keepdims) or (a, axis, dtype, out, ...), as NumPy has them.
    if spoken in ("sum", "mean", "nansum", "nanmean"):

        def with_dtype(
            a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any
        ) -> Any:
            return reduction(spoken, a, axis, dtype, out, keepdims=keepdims, **more)

        return with_dtype
    if spoken in ("std", "var", "nanstd", "nanvar"):

        def with_ddof(
            a: Any,
            axis: Any = None,
            dtype: Any = None,
            out: Any = None,
            ddof: Any = 0,
            keepdims: Any = False,
            **more: Any,
        ) -> Any:
            return reduction(spoken, a, axis, dtype, out, ddof=ddof, keepdims=keepdims, **more)

        return with_ddof

    def plain(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        return reduction(spoken, a, axis, None, out, keepdims=keepdims, **more)

    return plain
