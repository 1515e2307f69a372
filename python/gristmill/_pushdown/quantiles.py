"""Exact medians and quantiles, by passes over the stored data. Each pass determines some bits of the results.

A pass costs the nodes as much as a mean, and its answer grows with the number of cells. Reading is better for few
elements, for many cells, and for a file of this machine; see :func:`_refuse_if_reading_is_better`.
"""

from __future__ import annotations

import warnings
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _gristmill
from .._expressions.axes import normal_axes
from .._expressions.nodes import Node
from .._requests import options
from .asking import ask, reduced_axes
from .canonical import Canonical, canonical
from .found_moments import drop_widening
from .not_pushed import NotPushed

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most fractions of a request, as ``array::MAX_QUANTILES``.
MAX_SHARES = 16

#: Most passes of a request. Reading is better than more.
MAX_PASSES = 5

#: Passes are used if reading moves at least this many times the bytes of their answers, which come from several nodes.
MIN_SAVING = 8

#: Arrays of more bytes are never read for a quantile, even if that would be faster.
MAX_READ = 4 << 30


def quantiles(name: str, node: Node, shares: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Computes ``np.median``, ``np.quantile`` and so on, by their names. ``shares`` are fractions from 0 to 1.

    Raises :class:`NotPushed` if storage nodes cannot compute it, or if reading is better.
    """
    axes = normal_axes(axis, node.ndim)
    if not axes or 0 in node.shape:
        raise NotPushed("nothing is reduced")
    if node.dtype.kind not in "iuf":
        raise NotPushed(f"there is no {name} of {node.dtype}")
    fractions = np.asarray(shares, np.float64)
    if fractions.ndim > 1 or not 1 <= fractions.size <= MAX_SHARES or not np.all((fractions >= 0) & (fractions <= 1)):
        raise NotPushed(f"quantiles are 1 to {MAX_SHARES} numbers from 0 to 1")
    what = canonical(drop_widening(node))
    skipna = name.startswith("nan") and node.dtype.kind == "f"
    reduced, windows = reduced_axes(what, axes)
    if not set(what.masks) <= reduced or what.masks and not skipna:
        raise NotPushed("elements are masked along an axis")
    cells = prod(node.shape) // prod(node.shape[axis] for axis in axes)
    _refuse_if_reading_is_better(name, what, cells, node, fractions.size)
    each = ask(what, "quantile", reduced, windows, skipna=skipna, numbers=tuple(fractions.ravel().tolist()))
    values = np.stack([each[str(at)] for at in range(fractions.size)])
    if skipna and np.isnan(values).any():
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=4)
    if keepdims:
        values = np.expand_dims(values, tuple(1 + axis for axis in axes))
    values = values.reshape(fractions.shape + values.shape[1:])
    return values.astype(_result_type(name, node.dtype, shares))[()]


def _refuse_if_reading_is_better(name: str, what: Canonical, cells: int, node: Node, count: int) -> None:
    """Raises :class:`NotPushed` if reading the elements is better than passes."""
    place = options.current.place
    if place == "storage":
        return
    if place == "client":
        raise NotPushed("every pass of it would read what is stored")
    elements, variable = prod(node.shape), what.leaf.variable
    if elements * node.dtype.itemsize > MAX_READ:
        return
    if variable.is_local:
        raise NotPushed("several passes over a file that is here take longer than reading it")
    passes, told = _gristmill.quantile_passes(cells, count, 8 * np.dtype(what.dtype).itemsize)
    stored = variable.stored_bytes * elements // prod(variable.shape)
    if passes > MAX_PASSES or stored < MIN_SAVING * passes * told:
        raise NotPushed(f"{passes} passes over what is stored cost more than reading its {stored} bytes")


def _result_type(name: str, dtype: np.dtype[Any], shares: Any) -> np.dtype[Any]:
    """Returns the type that NumPy gives the result."""
    function, one = getattr(np, name), np.ones(1, dtype)
    return np.asarray(function(one) if name.endswith("median") else function(one, shares)).dtype


def median(name: str, node: Node, axis: Any = None, *, keepdims: bool = False) -> NDArray[Any]:
    """Computes ``np.median`` or ``np.nanmedian``.

    Raises :class:`NotPushed` as :func:`quantiles` does.
    """
    return np.asarray(quantiles(name, node, 0.5, axis, keepdims=keepdims))
