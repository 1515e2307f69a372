"""Medians and quantiles as NumPy calls them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._pushdown.not_pushed import NotPushed
from .._pushdown.quantiles import median, quantiles
from .fallback import array_type, compute_here


def _push_or_read(name: str, array: Any, given: tuple[Any, ...], shares: Any, axis: Any, more: dict[str, Any]) -> Any:
    """Computes a quantile on storage nodes if possible, otherwise in this process.

    ``given`` follows the array in the call.
    """
    function = getattr(np, name)
    args, why = (array, *given), "it has arguments that there is no kernel for"
    named = {key: value for key, value in more.items() if value is not np._NoValue and value is not None}
    if named.get("method", "linear") == "linear" and set(named) <= {"method", "keepdims"}:
        if not isinstance(array, array_type()):
            why = "an argument is stored elsewhere"
        elif next(array._node.leaves(), None) is not None:
            try:
                return quantiles(name, array._node, shares, axis, keepdims=named.get("keepdims", False))
            except NotPushed as error:
                why = str(error)
    if named.get("method", "linear") == "linear" and not name.endswith("median"):
        function = partial(_with_infinities, function)
    return compute_here(function, name, why, args, {"axis": axis, **named})


def _with_infinities(function: Callable[..., Any], values: Any, shares: Any, **more: Any) -> Any:
    """Computes a quantile with NumPy that agrees with storage nodes next to infinities.

    The quantile at an element is the element, and between a number and an infinity it is the infinity. NumPy computes
    the difference of both elements, and gives NaN.
    """
    found = function(values, shares, **more)
    if not np.isnan(found).any() or not np.isinf(values).any():
        return found
    low, high = (function(values, shares, **{**more, "method": method}) for method in ("lower", "higher"))
    with np.errstate(invalid="ignore"):
        right = np.where(low == high, low, low + high)
    return np.where(np.isnan(found), right, found).astype(found.dtype)[()]


def _median(name: str) -> Callable[..., Any]:
    def median(
        a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False, **more: Any
    ) -> Any:
        return _push_or_read(name, a, (), 0.5, axis, {"out": out, "keepdims": keepdims, **more})

    return median


def _quantile(name: str) -> Callable[..., Any]:
    def quantile(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        **more: Any,
    ) -> Any:
        shares = np.true_divide(q, 100) if name.endswith("percentile") else q
        return _push_or_read(name, a, (q,), shares, axis, {"out": out, "method": method, "keepdims": keepdims, **more})

    return quantile


#: Implementations of NumPy's functions, by name.
QUANTILE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _median(name) for name in ("median", "nanmedian")},
    **{name: _quantile(name) for name in ("quantile", "nanquantile", "percentile", "nanpercentile")},
}
