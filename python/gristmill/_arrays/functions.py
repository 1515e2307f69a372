"""NumPy's functions over arrays. Some are recorded, some run on storage nodes, and all others read the elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from .._expressions.nodes import Const
from .._pushdown.not_pushed import NotPushed
from .fallback import array_type, compute_here, read_arguments, rebind
from .quantile_functions import QUANTILE_FUNCTIONS as QUANTILES
from .reduceat import reduceat
from .reductions import REDUCTIONS, UFUNC_REDUCTIONS, reduction, with_numpy_signature
from .shapes import broadcast_to, concatenate, expand_dims, moveaxis, reshape, squeeze, take, transpose
from .weighted_sums import einsum as weighted_sum

if TYPE_CHECKING:
    from .array import Array


def call_ufunc(which: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a universal function. An elementwise function with one result is recorded; a reduction is computed."""
    name = which.__name__
    out = kwargs.pop("out", None)
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if method == "reduce" and name in UFUNC_REDUCTIONS and isinstance(inputs[0], array_type()):
        axis = inputs[1] if len(inputs) > 1 else kwargs.pop("axis", 0)
        more = {key: value for key, value in kwargs.items() if value is not np._NoValue}
        if out is None and set(more) <= {"axis", "dtype", "keepdims"}:
            return reduction(UFUNC_REDUCTIONS[name], inputs[0], axis, **more)
    if method == "reduceat" and isinstance(inputs[0], array_type()) and set(kwargs) <= {"axis", "dtype"}:
        try:
            found = reduceat(which, *inputs, **kwargs)
        except NotPushed:
            pass
        else:
            return _store_result(out, found)
    later = method == "__call__" and which.nout == 1 and which.signature is None
    if later and set(kwargs) <= {"dtype", "casting"}:
        from .array import elementwise

        dtype = kwargs.get("dtype")
        result = elementwise(name, which, *inputs)
        if dtype is not None and result.dtype != np.dtype(dtype):
            result = elementwise(name, which, *(_cast_input(one, dtype) for one in inputs))
        if out is None:
            return result
        if isinstance(out, array_type()):
            return rebind(out, result._node)
        out[...] = read_arguments(result, name, "its result goes into an array that is here")
        return out
    if out is not None:
        kwargs["out"] = out
    return compute_here(getattr(which, method), f"{name}.{method}", "there is no such kernel", tuple(inputs), kwargs)


def _store_result(out: Any, found: Any) -> Any:
    """Returns a result, or the output after the result was stored in it."""
    if out is None:
        return found
    if isinstance(out, array_type()):
        return rebind(out, Const(found))
    out[...] = found
    return out


def _cast_input(value: Any, dtype: Any) -> Any:
    return value.astype(dtype) if hasattr(value, "astype") else value


def clip(a: Array, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Array:
    """Returns values limited to a minimum and a maximum. One of them may be missing."""
    from .array import elementwise

    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if out is not None:
        raise TypeError("clip takes no out= here; use its result")
    ends = np.iinfo(a.dtype) if a.dtype.kind in "iu" else None
    if ends and type(low) is int and low <= ends.min:
        low = None
    if ends and type(high) is int and high >= ends.max:
        high = None
    if low is not None:
        a = elementwise("maximum", np.maximum, a, low)
    return a if high is None else elementwise("minimum", np.minimum, a, high)


def where(condition: Any, *values: Any) -> Any:
    """Returns elements of one of two arrays, by a condition."""
    from .array import elementwise

    if len(values) != 2:
        return compute_here(np.where, "nonzero", "places are not told", (condition, *values), {})
    return elementwise("where", np.where, condition, *values)


def _full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any
) -> Any:
    one = np.array(fill_value, dtype=a.dtype if dtype is None else dtype)
    return array_type()(Const(np.broadcast_to(one, a.shape if shape is None else shape)))


def _like(value: Any) -> Callable[..., Any]:
    return lambda a, *how, **more: _full_like(a, value, *how, **more)


def _empty_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any
) -> np.ndarray[Any, Any]:
    # An array of NumPy, because callers write into it.
    return np.empty(a.shape if shape is None else shape, a.dtype if dtype is None else dtype)


def result_type(*given: Any) -> np.dtype[Any]:
    """Returns the type of the result of an operation on arrays and types."""
    return np.result_type(*(one.dtype if isinstance(one, array_type()) else one for one in given))


def round_array(a: Array, decimals: Any = 0, out: Any = None) -> Array:
    """Returns values, rounded to a number of decimals."""
    from .array import elementwise

    if out is not None:
        raise TypeError("round takes no out= here; use its result")
    if decimals == 0 and a.dtype.kind == "f":
        return elementwise("rint", np.rint, a)
    return elementwise("round to decimals", methodcaller("round", int(decimals)), a)


def einsum(*operands: Any, **more: Any) -> Any:
    """Computes sums of products, on storage nodes if possible, otherwise in this process."""
    try:
        return weighted_sum(operands, more)
    except NotPushed as error:
        return compute_here(np.einsum, "einsum", str(error), operands, more)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{getattr(np, name): with_numpy_signature(name) for name in REDUCTIONS},
    **{getattr(np, name): function for name, function in QUANTILES.items()},
    np.where: where,
    np.clip: clip,
    np.transpose: transpose,
    np.reshape: reshape,
    np.squeeze: squeeze,
    np.take: take,
    np.expand_dims: expand_dims,
    np.broadcast_to: broadcast_to,
    np.moveaxis: moveaxis,
    np.round: round_array,
    np.around: round_array,
    np.concatenate: concatenate,
    np.zeros_like: _like(0),
    np.ones_like: _like(1),
    np.empty_like: _empty_like,
    np.full_like: _full_like,
    np.result_type: result_type,
    np.einsum: einsum,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.copy: lambda a, **_: a.copy(),
    np.real: lambda a: a.real,
    np.imag: lambda a: a.imag,
    np.iscomplexobj: lambda a: a.dtype.kind == "c",
    np.isrealobj: lambda a: a.dtype.kind != "c",
}
if hasattr(np, "astype"):
    _FUNCTIONS[np.astype] = lambda x, dtype, /, **_: x.astype(dtype)


def call_function(which: Any, args: Any, kwargs: Any) -> Any:
    """Calls a function of NumPy whose arguments contain an array of this package."""
    handler = _FUNCTIONS.get(which)
    if handler is not None:
        return handler(*args, **kwargs)
    name = getattr(which, "__name__", str(which))
    return compute_here(which, name, "there is no such kernel", args, kwargs)
