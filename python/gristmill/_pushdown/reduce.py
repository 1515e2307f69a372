"""Reductions of trees, by one request for moments if possible.

xarray and dask have their own forms of NumPy's reductions that leave out missing elements. All of these can be
computed from the number of elements, their sum, the sum of their squared distances from the mean, their minimum and
their maximum.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .._expressions.axes import normal_axes
from .._expressions.nodes import Node, cast
from .extremes import reduce_ends, reduce_place, reduce_truth
from .found_moments import find_moments
from .not_pushed import NotPushed
from .sums import reduce_mean, reduce_nonzero, reduce_std, reduce_sum, reduce_var

if TYPE_CHECKING:
    from numpy.typing import NDArray


def reduce(
    name: str, node: Node, axis: Any = None, *, keepdims: bool = False, dtype: Any = None, ddof: float = 0
) -> Any:
    """Computes a reduction of NumPy by its name, and returns an array or a scalar of NumPy.

    Raises :class:`NotPushed` if storage nodes cannot compute it.
    """
    axes = normal_axes(axis, node.ndim)
    if not axes:
        raise NotPushed("nothing is reduced")
    skipna = name.startswith("nan") and node.dtype.kind == "f"
    plain = name.removeprefix("nan")
    if plain not in _REDUCERS:
        raise NotPushed(f"there is no {name} on storage nodes")
    counted = None
    if dtype is not None and plain in ("sum", "mean", "var", "std"):
        wanted = np.dtype(dtype)
        if wanted.kind != "f" and (plain != "sum" or wanted.kind not in "iu" or node.dtype.kind not in "iub"):
            raise NotPushed(f"there is no {name} in {wanted}")
        if plain == "sum" and node.dtype.kind in "iub" and (wanted.kind in "iu" or node.dtype == bool):
            # Integers wrap in a narrower type before or after the sum. dask asks for counts as floats.
            counted = wanted
        else:
            node = cast(node, np.dtype(dtype))
    if int(ddof) != ddof:
        raise NotPushed("ddof is no whole number")
    if plain in ("argmin", "argmax"):
        given = reduce_place(plain, node, axes, skipna)
    elif plain in ("any", "all"):
        given = reduce_truth(plain, node, axes)
    else:
        given = _REDUCERS[plain](node, axes, skipna, ddof)
    # A copy, because callers may write to the result, and must not write to the cache.
    given = np.array(given)
    if counted is not None:
        given = given.astype(counted)
    if keepdims:
        given = np.expand_dims(given, axes)
    return given[()]


_REDUCERS: dict[str, Callable[..., NDArray[Any]]] = {
    "sum": reduce_sum,
    "mean": reduce_mean,
    "var": reduce_var,
    "std": reduce_std,
    "min": reduce_ends("min"),
    "max": reduce_ends("max"),
    "count_nonzero": reduce_nonzero,
    "argmin": reduce_sum,
    "argmax": reduce_sum,
    "any": reduce_sum,
    "all": reduce_sum,
}

#: Operations that statistics need, if their names differ.
_OPERATIONS = {"count": "totals", "sum": "totals", "mean": "totals", "std": "moments", "var": "moments"}


def stats(node: Node, names: list[str], axis: Any, ddof: float = 0) -> dict[str, Any]:
    """Computes several reductions that leave out missing elements, by one request.

    Raises :class:`NotPushed` if storage nodes cannot compute them.
    """
    if prod(node.shape) == 0:
        raise NotPushed("there is nothing to reduce")
    out = {}
    axes = normal_axes(axis, node.ndim)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        if len({_OPERATIONS.get(name, name) for name in names}) > 1:
            find_moments(node, axes, spread=True, with_ends=True)
        for name in names:
            if name == "count":
                out[name] = np.array(find_moments(node, axes).n)[()]
            else:
                out[name] = reduce(f"nan{name}", node, axis, ddof=ddof)
    return out
