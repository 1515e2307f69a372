"""NumPy's functions of arrays: those that are kept for later, those that storage nodes compute, and all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _options
from ._canonical import NotPushed
from ._evaluate import evaluate
from ._expr import Apply, Const, Leaf, Node, Opaque, Windows, cast
from ._reduce import normal_axes, reduce
from ._weighted import einsum as weighted_sum

if TYPE_CHECKING:
    from ._array import Array


def _array() -> type[Array]:
    from ._array import Array

    return Array


def read(value: Any, name: str, why: str) -> Any:
    """An argument of a function that reads: arrays become those of NumPy, also in lists and dictionaries."""
    if isinstance(value, _array()):
        if 0 not in value.shape and next(value._node.leaves(), None) is not None:
            _options.fell_back(name, why)
        return evaluate(value._node)
    if type(value) in (list, tuple):
        return type(value)(read(one, name, why) for one in value)
    if type(value) is dict:
        return {key: read(one, name, why) for key, one in value.items()}
    return value


def _computed_here(function: Callable[..., Any], name: str, why: str, args: Any, kwargs: Any) -> Any:
    out = kwargs.get("out")
    outs = out if isinstance(out, tuple) else (out,)
    ours = [one for one in outs if isinstance(one, _array())]
    if ours:
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
    result = function(*read(args, name, why), **read(kwargs, name, why))
    if not ours:
        return result
    if len(outs) != 1:
        raise TypeError(f"{name} has several results, and out= is an array that is stored elsewhere")
    return _rebound(ours[0], Const(np.asarray(result)))


def _rebound(array: Array, node: Node) -> Array:
    """An array that is an output: it stands for something else from now on."""
    if node.shape != array.shape:
        node = Const(np.broadcast_to(evaluate(node), array.shape)) if isinstance(node, Const) else node
    if node.shape != array.shape:
        raise ValueError(f"out= has the shape {array.shape}, and the result {node.shape}")
    array._node = cast(node, array.dtype)
    return array


def ufunc(which: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A universal function: later, if it is elementwise with one result; a reduction at once."""
    name = which.__name__
    out = kwargs.pop("out", None)
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if method == "reduce" and name in _REDUCED and isinstance(inputs[0], _array()):
        axis = inputs[1] if len(inputs) > 1 else kwargs.pop("axis", 0)
        more = {key: value for key, value in kwargs.items() if value is not np._NoValue}
        if out is None and set(more) <= {"axis", "dtype", "keepdims"}:
            return reduction(_REDUCED[name], inputs[0], axis, **more)
    later = method == "__call__" and which.nout == 1 and which.signature is None
    if later and set(kwargs) <= {"dtype", "casting"}:
        from ._array import elementwise

        dtype = kwargs.get("dtype")
        result = elementwise(name, which, *inputs)
        if dtype is not None and result.dtype != np.dtype(dtype):
            result = elementwise(name, which, *(_cast_input(one, dtype) for one in inputs))
        if out is None:
            return result
        if isinstance(out, _array()):
            return _rebound(out, result._node)
        out[...] = read(result, name, "its result goes into an array that is here")
        return out
    if out is not None:
        kwargs["out"] = out
    return _computed_here(getattr(which, method), f"{name}.{method}", "there is no such kernel", tuple(inputs), kwargs)


def _cast_input(value: Any, dtype: Any) -> Any:
    return value.astype(dtype) if hasattr(value, "astype") else value


_REDUCED = {
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
    if not isinstance(array, _array()):
        return _computed_here(function, name, "an argument is stored elsewhere", (array, axis), {**given, "out": out})
    node = array._node
    if 0 in array.shape or next(node.leaves(), None) is None:
        return function(evaluate(node), axis=axis, **given)
    if out is None and set(more) <= {"keepdims", "ddof", "correction"}:
        try:
            return reduce(name, node, axis, dtype=dtype, **known)
        except NotPushed as error:
            return _computed_here(function, name, str(error), (array,), {"axis": axis, **given})
    if out is not None:
        given["out"] = out
    return _computed_here(
        function, name, "it has arguments that there is no kernel for", (array,), {"axis": axis, **given}
    )


_REDUCTIONS = (
    ["sum", "mean", "std", "var", "min", "max", "amin", "amax", "argmin", "argmax", "any", "all", "count_nonzero"]
    + ["nansum", "nanmean", "nanstd", "nanvar", "nanmin", "nanmax", "nanargmin", "nanargmax"]
)  # fmt: skip


def _reducer(name: str) -> Callable[..., Any]:
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


def transpose(a: Array, axes: Any = None) -> Array:
    """Axes in another order."""
    order = tuple(range(a.ndim))[::-1] if axes is None else tuple(int(axis) % a.ndim for axis in axes)
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"axes {axes} are not those of an array with {a.ndim}")
    return _array()(_transposed(a._node, order))


def _transposed(node: Node, order: tuple[int, ...]) -> Node:
    if order == tuple(range(node.ndim)):
        return node
    if isinstance(node, Leaf):
        return Leaf(node.variable, node.takes, [node.axes[axis] for axis in order])
    if isinstance(node, Const):
        return Const(np.broadcast_to(node.value, node.shape).transpose(order))
    if isinstance(node, Apply):
        args = [_transposed(_padded(arg, node.ndim), order) if arg.ndim else arg for arg in node.args]
        return Apply(node.name, node.function, args, node.dtype)
    return Opaque("transpose", methodcaller("transpose", order), [node], tuple(node.shape[axis] for axis in order))


def _padded(node: Node, ndim: int) -> Node:
    """A node with axes of length 1 before its own."""
    from ._indexing import index

    return index(node, (None,) * (ndim - node.ndim) + (Ellipsis,)) if node.ndim < ndim else node


def reshape(a: Array, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Array:
    """Another shape: later, if it only cuts axes, or adds or drops some of length 1."""
    wanted = np.broadcast_to(np.empty((), np.int8), a.shape).reshape(newshape if shape is None else shape).shape
    node = a._node
    if wanted == a.shape:
        return a
    if order == "C" and (split := _split(a.shape, wanted)) is not None:
        return _array()(Windows(node, split))
    if order == "C" and [n for n in wanted if n != 1] == [n for n in a.shape if n != 1]:
        from ._indexing import index

        keys = tuple(0 if n == 1 else slice(None) for n in a.shape)
        return _array()(index(index(node, keys), tuple(None if n == 1 else slice(None) for n in wanted)))
    return _array()(Opaque("reshape", methodcaller("reshape", wanted, order=order), [node], wanted))


def _split(before: tuple[int, ...], after: tuple[int, ...]) -> list[int | None] | None:
    """The windows into which axes are cut; ``None`` if something else is done to them."""
    split: list[int | None] = []
    at = 0
    for length in before:
        if at < len(after) and after[at] == length and (len(before) - len(split)) <= len(after) - at:
            whole = after[at + 1 :]
            # An axis that stays, unless it is cut into windows of one element.
            if len(whole) >= len(before) - len(split) - 1:
                split.append(None)
                at += 1
                continue
        if at + 1 < len(after) and after[at] * after[at + 1] == length:
            split.append(after[at + 1])
            at += 2
            continue
        return None
    return split if at == len(after) and any(split) else None


def take(a: Any, indices: Any, axis: Any = None, **more: Any) -> Any:
    """Elements of an axis."""
    if axis is None or more or not isinstance(a, _array()) or np.ndim(indices) > 1:
        return _computed_here(np.take, "take", "it is flattened", (a, indices), {"axis": axis, **more})
    at = int(axis) % a.ndim
    return a[(slice(None),) * at + (indices if np.ndim(indices) == 0 else np.asarray(indices),)]


def squeeze(a: Array, axis: Any = None) -> Array:
    """Without axes of length 1."""
    axes = [at for at, n in enumerate(a.shape) if n == 1] if axis is None else normal_axes(axis, a.ndim)
    if any(a.shape[at] != 1 for at in axes):
        raise ValueError("an axis that is squeezed is longer than 1")
    return a[tuple(0 if at in axes else slice(None) for at in range(a.ndim))]


def clip(a: Array, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Array:
    """Values within two ends, either of which may be left out."""
    from ._array import elementwise

    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if out is not None:
        raise TypeError("clip takes no out= here; use its result")
    if low is not None:
        a = elementwise("maximum", np.maximum, a, low)
    return a if high is None else elementwise("minimum", np.minimum, a, high)


def where(condition: Any, *values: Any) -> Any:
    from ._array import elementwise

    if len(values) != 2:
        return _computed_here(np.where, "nonzero", "places are not told", (condition, *values), {})
    return elementwise("where", np.where, condition, *values)


def _like(value: Any) -> Callable[..., Any]:
    def make(a: Any, *fill: Any, dtype: Any = None, shape: Any = None, **_: Any) -> Any:
        of = np.asarray(fill[0] if fill else value, dtype=a.dtype if dtype is None else dtype)
        return _array()(Const(np.broadcast_to(of, a.shape if shape is None else shape)))

    return make


def _full_like(a: Any, fill_value: Any, **more: Any) -> Any:
    return _like(None)(a, fill_value, **more)


def result_type(*given: Any) -> np.dtype[Any]:
    return np.result_type(*(one.dtype if isinstance(one, _array()) else one for one in given))


def expand_dims(a: Any, axis: Any) -> Any:
    count = a.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    axes = normal_axes(axis, count)
    return a[tuple(None if at in axes else slice(None) for at in range(count))]


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    wanted = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if wanted == array.shape:
        return array
    return _array()(Opaque("broadcast_to", partial(np.broadcast_to, shape=wanted), [array._node], wanted))


def concatenate(arrays: Any, axis: Any = 0, **more: Any) -> Any:
    """Arrays one behind the other, later."""
    if axis is None or more:
        return _computed_here(np.concatenate, "concatenate", "it is flattened", (arrays, axis), more)
    from ._array import node_of

    arrays = list(arrays)
    at = int(axis) % arrays[0].ndim
    if len(arrays) == 1:
        return arrays[0]
    empty = [np.broadcast_to(np.empty((), np.int8), one.shape) for one in arrays]
    for one in empty[1:]:
        if one.ndim != empty[0].ndim or any(
            a != b for i, (a, b) in enumerate(zip(one.shape, empty[0].shape)) if i != at
        ):
            raise ValueError("shapes of what is concatenated do not fit together")
    length = sum(one.shape[at] for one in empty)
    shape = (*empty[0].shape[:at], length, *empty[0].shape[at + 1 :])
    nodes = [node_of(one) for one in arrays]
    return _array()(Opaque("concatenate", partial(_concatenated, at), nodes, shape))


def _concatenated(axis: int, *values: Any) -> Any:
    return np.concatenate(values, axis)


def rounded(a: Array, decimals: Any = 0, out: Any = None) -> Array:
    """Rounded to so many decimals."""
    from ._array import elementwise

    if out is not None:
        raise TypeError("round takes no out= here; use its result")
    if decimals == 0 and a.dtype.kind == "f":
        return elementwise("rint", np.rint, a)
    return elementwise("round to decimals", methodcaller("round", int(decimals)), a)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    from_, to = (list(normal(one, a.ndim)) for one in (source, destination))
    rest = [axis for axis in range(a.ndim) if axis not in from_]
    for place, axis in sorted(zip(to, from_)):
        rest.insert(place, axis)
    return transpose(a, rest)


def normal(axis: Any, ndim: int) -> list[int]:
    return [int(one) % ndim for one in np.atleast_1d(axis)]


def einsum(*operands: Any, **more: Any) -> Any:
    """Sums of products: of one array and weights along some of its axes, where the data is stored."""
    try:
        return weighted_sum(operands, more)
    except NotPushed as error:
        return _computed_here(np.einsum, "einsum", str(error), operands, more)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{getattr(np, name): _reducer(name) for name in _REDUCTIONS},
    np.where: where,
    np.clip: clip,
    np.transpose: transpose,
    np.reshape: reshape,
    np.squeeze: squeeze,
    np.take: take,
    np.expand_dims: expand_dims,
    np.broadcast_to: broadcast_to,
    np.moveaxis: moveaxis,
    np.round: rounded,
    np.around: rounded,
    np.concatenate: concatenate,
    np.zeros_like: _like(0),
    np.ones_like: _like(1),
    np.empty_like: _like(0),
    np.full_like: _full_like,
    np.result_type: result_type,
    np.einsum: einsum,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.copy: lambda a, **_: a.copy(),
    np.real: lambda a: a.real,
    np.imag: lambda a: a.imag,
    np.iscomplexobj: lambda a: False,
    np.isrealobj: lambda a: True,
}


if hasattr(np, "astype"):
    _FUNCTIONS[np.astype] = lambda x, dtype, /, **_: x.astype(dtype)


def function(which: Any, args: Any, kwargs: Any) -> Any:
    """A function of NumPy that was given an array of ours."""
    handler = _FUNCTIONS.get(which)
    if handler is not None:
        return handler(*args, **kwargs)
    name = getattr(which, "__name__", str(which))
    return _computed_here(which, name, "there is no such kernel", args, kwargs)
