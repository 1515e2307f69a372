"""Medians and quantiles, exactly: passes over what is stored, each of which settles some bits of the elements that are wanted.

A pass costs the nodes as much as a mean, and its answer grows with the number of cells. Reading is better where elements
are few, where there are many cells, and where the file is here; see :func:`_worthwhile`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _gristmill, _options
from ._ask import ask, reduced_axes
from ._canonical import Canonical, NotPushed, canonical
from ._expr import Node
from ._here import array_type, computed_here
from ._reduce import narrow, normal_axes

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most shares of a request, as ``array::MAX_QUANTILES``.
MAX_SHARES = 16

#: Most passes that are better than reading.
MAX_PASSES = 5

#: How many times as many stored bytes as all passes tell have to be read to be worth them: several nodes tell them.
MOVED = 8

#: Elements of so many bytes are not to be held at once, though reading them would be faster.
MAX_READ = 4 << 30


def quantiles(name: str, node: Node, shares: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """``np.median`` and the others, by their name; ``shares`` are fractions, whatever the function calls them.

    Raises :class:`NotPushed`, with why.
    """
    axes = normal_axes(axis, node.ndim)
    if not axes or 0 in node.shape:
        raise NotPushed("nothing is reduced")
    if node.dtype.kind not in "iuf":
        raise NotPushed(f"there is no {name} of {node.dtype}")
    fractions = np.asarray(shares, np.float64)
    if fractions.ndim > 1 or not 1 <= fractions.size <= MAX_SHARES or not np.all((fractions >= 0) & (fractions <= 1)):
        raise NotPushed(f"quantiles are 1 to {MAX_SHARES} numbers from 0 to 1")
    what = canonical(narrow(node))
    skipna = name.startswith("nan") and node.dtype.kind == "f"
    reduced, windows = reduced_axes(what, axes)
    if not set(what.masks) <= reduced or what.masks and not skipna:
        raise NotPushed("elements are masked along an axis")
    _worthwhile(name, what, prod(node.shape) // prod(node.shape[axis] for axis in axes), node, fractions.size)
    each = ask(what, "quantile", reduced, windows, skipna=skipna, numbers=tuple(fractions.ravel().tolist()))
    values = np.stack([each[str(at)] for at in range(fractions.size)])
    if skipna and np.isnan(values).any():
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=4)
    if keepdims:
        values = np.expand_dims(values, tuple(1 + axis for axis in axes))
    values = values.reshape(fractions.shape + values.shape[1:])
    return values.astype(_dtype_of(name, node.dtype, shares))[()]


def _worthwhile(name: str, what: Canonical, cells: int, node: Node, count: int) -> None:
    """Refuses what is better read."""
    place = _options.current.place
    if place == "storage":
        return
    if place == "client":
        raise NotPushed("every pass of it would read what is stored")
    elements, variable = prod(node.shape), what.leaf.variable
    if elements * node.dtype.itemsize > MAX_READ:
        return
    if variable.is_here:
        raise NotPushed("several passes over a file that is here take longer than reading it")
    passes, told = _gristmill.quantile_passes(cells, count, 8 * np.dtype(what.dtype).itemsize)
    stored = variable.stored_bytes * elements // prod(variable.shape)
    if passes > MAX_PASSES or stored < MOVED * passes * told:
        raise NotPushed(f"{passes} passes over what is stored cost more than reading its {stored} bytes")


def _dtype_of(name: str, dtype: np.dtype[Any], shares: Any) -> np.dtype[Any]:
    """The type that NumPy gives such a result."""
    function, one = getattr(np, name), np.ones(1, dtype)
    return np.asarray(function(one) if name.endswith("median") else function(one, shares)).dtype


def _or_read(name: str, array: Any, given: tuple[Any, ...], shares: Any, axis: Any, more: dict[str, Any]) -> Any:
    """A quantile: on storage nodes if they can, else here. ``given`` is what follows the array in the call."""
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
        function = partial(_beside_infinities, function)
    return computed_here(function, name, why, args, {"axis": axis, **named})


def _beside_infinities(function: Callable[..., Any], values: Any, shares: Any, **more: Any) -> Any:
    """A quantile by NumPy that is the same as on nodes: on an element it is that element, and beside an infinity that infinity. NumPy
    takes the difference of two elements first, and gives NaN."""
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
        return _or_read(name, a, (), 0.5, axis, {"out": out, "keepdims": keepdims, **more})

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
        return _or_read(name, a, (q,), shares, axis, {"out": out, "method": method, "keepdims": keepdims, **more})

    return quantile


#: NumPy's functions.
BY_NAME: dict[str, Callable[..., Any]] = {
    **{name: _median(name) for name in ("median", "nanmedian")},
    **{name: _quantile(name) for name in ("quantile", "nanquantile", "percentile", "nanpercentile")},
}


def median(name: str, node: Node, axis: Any = None, *, keepdims: bool = False) -> NDArray[Any]:
    """``np.median`` or ``np.nanmedian``."""
    return np.asarray(quantiles(name, node, 0.5, axis, keepdims=keepdims))
