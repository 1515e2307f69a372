"""What storage nodes do not compute: elements are read, and NumPy computes here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _options
from ._evaluate import evaluate
from ._expr import Const, Node, cast

if TYPE_CHECKING:
    from ._array import Array


def array_type() -> type[Array]:
    """:class:`gristmill.Array`, whose module needs this one."""
    from ._array import Array

    return Array


def read(value: Any, name: str, why: str) -> Any:
    """An argument of a function that reads: arrays become those of NumPy, also in lists and dictionaries."""
    if isinstance(value, array_type()):
        if 0 not in value.shape and next(value._node.leaves(), None) is not None:
            _options.fell_back(name, why)
        return evaluate(value._node)
    if type(value) in (list, tuple):
        return type(value)(read(one, name, why) for one in value)
    if type(value) is dict:
        return {key: read(one, name, why) for key, one in value.items()}
    return value


def computed_here(function: Callable[..., Any], name: str, why: str, args: Any, kwargs: Any) -> Any:
    """What a function of NumPy gives, of arguments that are read."""
    out = kwargs.get("out")
    outs = out if isinstance(out, tuple) else (out,)
    ours = [one for one in outs if isinstance(one, array_type())]
    if ours:
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
    result = function(*read(args, name, why), **read(kwargs, name, why))
    if not ours:
        return result
    if len(outs) != 1:
        raise TypeError(f"{name} has several results, and out= is an array that is stored elsewhere")
    return rebound(ours[0], Const(np.asarray(result)))


def rebound(array: Array, node: Node) -> Array:
    """An array that is an output: it stands for something else from now on."""
    if node.shape != array.shape:
        node = Const(np.broadcast_to(evaluate(node), array.shape)) if isinstance(node, Const) else node
    if node.shape != array.shape:
        raise ValueError(f"out= has the shape {array.shape}, and the result {node.shape}")
    if not np.can_cast(node.dtype, array.dtype, "same_kind"):
        raise TypeError(f"{node.dtype} does not become {array.dtype} by itself; use astype")
    array._node = cast(node, array.dtype)
    return array
