"""The fallback: operations that storage nodes do not compute read their elements, and NumPy computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._expressions.evaluation import evaluate
from .._expressions.nodes import Const, Node, cast
from .._requests import tracing

if TYPE_CHECKING:
    from .array import Array


def array_type() -> type[Array]:
    """Returns :class:`gristmill.Array`. Its module imports this one."""
    from .array import Array

    return Array


def read_arguments(value: Any, name: str, why: str) -> Any:
    """Replaces arrays by arrays of NumPy in an argument, also inside lists, tuples and dictionaries.

    ``name`` is the operation, and ``why`` says why it cannot run where the data is stored.
    """
    if isinstance(value, array_type()):
        if 0 not in value.shape and next(value._node.leaves(), None) is not None:
            tracing.record_fallback(name, why)
        return evaluate(value._node)
    if type(value) in (list, tuple):
        return type(value)(read_arguments(one, name, why) for one in value)
    if type(value) is dict:
        return {key: read_arguments(one, name, why) for key, one in value.items()}
    return value


def compute_here(function: Callable[..., Any], name: str, why: str, args: Any, kwargs: Any) -> Any:
    """Calls a function of NumPy with arguments whose elements are read."""
    out = kwargs.get("out")
    outs = out if isinstance(out, tuple) else (out,)
    ours = [one for one in outs if isinstance(one, array_type())]
    if ours:
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
    result = function(*read_arguments(args, name, why), **read_arguments(kwargs, name, why))
    if not ours:
        return result
    if len(outs) != 1:
        raise TypeError(f"{name} has several results, and out= is an array that is stored elsewhere")
    return rebind(ours[0], Const(np.asarray(result)))


def rebind(array: Array, node: Node) -> Array:
    """Gives an array that is used as output another expression, and returns it.

    Raises ``ValueError`` for another shape and ``TypeError`` for a type that needs an explicit cast.
    """
    if node.shape != array.shape:
        node = Const(np.broadcast_to(evaluate(node), array.shape)) if isinstance(node, Const) else node
    if node.shape != array.shape:
        raise ValueError(f"out= has the shape {array.shape}, and the result {node.shape}")
    if not np.can_cast(node.dtype, array.dtype, "same_kind"):
        raise TypeError(f"{node.dtype} does not become {array.dtype} by itself; use astype")
    array._node = cast(node, array.dtype)
    return array
