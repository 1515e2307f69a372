"""Reductions of trees, by one request for moments where that is possible.

xarray and dask have a form of their own for each of NumPy's reductions that leaves out what is missing. All of them come
down to how many elements there are, their sum, the sum of their squared distances from the mean, and their ends.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _canonical as canon
from . import _centred
from ._ask import Moments, ask, moments, picked_cells, reduced_axes
from ._canonical import NotPushed, canonical
from ._errors import DataError
from ._expr import Const, Node, cast

if TYPE_CHECKING:
    from numpy.typing import NDArray


def normal_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as NumPy's reductions take them: ``None``, an integer of any kind, several."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list, np.ndarray)) else (axis,)
    axes = []
    for one in given:
        at = int(one)
        if ndim == 0 and at in (-1, 0):
            # NumPy takes the first axis of a single number.
            continue
        if not -ndim <= at < ndim:
            raise np.exceptions.AxisError(at, ndim)
        axes.append(at % ndim)
    if len(set(axes)) != len(axes):
        raise ValueError("an axis is given twice")
    return tuple(sorted(axes))


def reduce(
    name: str, node: Node, axis: Any = None, *, keepdims: bool = False, dtype: Any = None, ddof: float = 0
) -> Any:
    """A reduction of NumPy, by its name: an array or a scalar of NumPy.

    Raises :class:`NotPushed`, with why.
    """
    axes = normal_axes(axis, node.ndim)
    if not axes:
        raise NotPushed("nothing is reduced")
    skipna = name.startswith("nan") and node.dtype.kind == "f"
    plain = name.removeprefix("nan")
    if plain not in _HOW:
        raise NotPushed(f"there is no {name} on storage nodes")
    counted = None
    if dtype is not None and plain in ("sum", "mean", "var", "std"):
        wanted = np.dtype(dtype)
        if wanted.kind != "f" and (plain != "sum" or wanted.kind not in "iu" or node.dtype.kind not in "iub"):
            raise NotPushed(f"there is no {name} in {wanted}")
        if plain == "sum" and node.dtype.kind in "iub" and (wanted.kind in "iu" or node.dtype == bool):
            # Whole numbers wrap in a narrower type wherever that is done; dask wants counts as floats.
            counted = wanted
        else:
            node = cast(node, np.dtype(dtype))
    if int(ddof) != ddof:
        raise NotPushed("ddof is no whole number")
    if plain in ("argmin", "argmax"):
        given = _place(plain, node, axes, skipna)
    elif plain in ("any", "all"):
        given = _truth(plain, node, axes)
    else:
        given = _HOW[plain](node, axes, skipna, ddof)
    # What is remembered is not to be written to; what is given may be.
    given = np.array(given)
    if counted is not None:
        given = given.astype(counted)
    if keepdims:
        given = np.expand_dims(given, axes)
    return given[()]


#: In which type moments are asked for. Those of f32 are f64, so that whoever adds in f64, as dask does, asks the same.
_WIDER: dict[Any, np.dtype[Any]] = {
    np.dtype(bool): np.dtype(np.int8),
    np.dtype(np.float32): np.dtype(np.float64),
}

#: Families of blocks whose moments were needed after their totals: for the next block both come at once.
_spread: set[Hashable] = set()
MAX_SPREAD = 1024


def narrow(node: Node) -> Node:
    """The same values without what only makes them wider: totals of f32 are f64, ends are elements."""
    args = canon.called(node, "cast")
    return args[0] if args and node.dtype == np.float64 and args[0].dtype == np.float32 else node


def found(node: Node, axes: tuple[int, ...], *, spread: bool = False) -> Moments:
    """How many elements of a node are not missing, and their sum; with ``spread`` all its moments, which cost more. Of eager
    arrays those that are remembered do."""
    try:
        return _found(node, axes, spread)
    except NotPushed as error:
        try:
            return _centred.moved(node, axes, partial(found, spread=True))
        except NotPushed:
            raise error from None


def _found(node: Node, axes: tuple[int, ...], spread: bool) -> Moments:
    what = canonical(narrow(node))
    blocks = what.leaf.blocks
    of_blocks = blocks and (what.leaf.variable.key, blocks.key, what.text, axes)
    if of_blocks and spread:
        if len(_spread) >= MAX_SPREAD:
            _spread.clear()
        _spread.add(of_blocks)
    spread = spread or of_blocks in _spread
    have = _moments(node, axes, remembered=not spread) if spread or of_blocks is None else None
    have = have or moments(what, "totals", axes, node.shape)
    assert have is not None
    return have


def _moments(node: Node, axes: tuple[int, ...], *, remembered: bool) -> Moments | None:
    return moments(canonical(node, _WIDER.get(node.dtype)), "moments", axes, node.shape, remembered=remembered)


def _added(node: Node, axes: tuple[int, ...]) -> Moments | _centred.Sums:
    """How many elements there are, and their sum."""
    try:
        return found(node, axes)
    except NotPushed as error:
        try:
            return _centred.products(node, axes)
        except NotPushed:
            raise error from None


def _nan_where(values: NDArray[Any], missing: NDArray[Any]) -> NDArray[Any]:
    return np.where(missing, np.asarray(np.nan, values.dtype), values) if values.dtype.kind == "f" else values


def _sum(node: Node, axes: tuple[int, ...], skipna: bool, _: float = 0) -> NDArray[Any]:
    if (of := canon.present_of(node)) is not None:
        return _count(of, axes)[0]
    if (of := canon.missing_of(node)) is not None:
        n, size = _count(of, axes)
        return np.asarray(size - n)
    if (of := canon.filled_of(node)) is not None:
        return _sum(of, axes, True)
    if (of_centre := _distance(node, axes)) is not None:
        return _squares(*of_centre, node, axes, skipna)
    have = _added(node, axes)
    total = have.sum.astype(node.dtype) if node.dtype.kind == "f" else have.sum
    return total if skipna else _nan_where(total, have.n < have.size)


def _count(node: Node, axes: tuple[int, ...]) -> tuple[NDArray[Any], int]:
    """How many elements are not missing, and how many there are. A distance from a number is missing where the element
    is, or the number."""
    of_centre = _distance(node, axes)
    if of_centre is None:
        have = _added(node, axes)
        return have.n, have.size
    of, centre = of_centre
    at = _in_cells(centre, node, axes)
    if np.isinf(at).any():
        raise NotPushed("infinities are subtracted")
    have = found(of, axes)
    return np.where(np.isnan(at), 0, have.n), have.size


def _distance(node: Node, axes: tuple[int, ...]) -> tuple[Node, Const] | None:
    """``D`` and ``C`` of ``(D - C)**2`` with one number of ``C`` for each cell."""
    found = canon.squared_distance(node)
    if found is None:
        return None
    centre = found[1].value
    differs = (centre.shape[axis - node.ndim] != 1 for axis in axes if node.ndim - axis <= centre.ndim)
    return None if any(differs) else found


def _in_cells(centre: Const, node: Node, axes: tuple[int, ...]) -> NDArray[Any]:
    """A number for each cell, f64."""
    value = np.broadcast_to(centre.value, (1,) * (node.ndim - centre.value.ndim) + centre.value.shape)
    if any(value.shape[axis] != 1 for axis in axes):
        raise NotPushed("what is subtracted differs within a cell")
    return value.squeeze(axes).astype(np.float64)


def _squares(of: Node, centre: Const, node: Node, axes: tuple[int, ...], skipna: bool) -> NDArray[Any]:
    """The sum of squared distances from a number for each cell: ``m2 + n (mean - centre)^2``."""
    at = _in_cells(centre, node, axes)
    if np.isinf(at).any():
        raise NotPushed("infinities are subtracted")
    have = found(of, axes, spread=True)
    with np.errstate(all="ignore"):
        there = have.m2 + np.where(have.n > 0, have.from_centre(at) ** 2 / have.n, 0.0)
        # An infinity has no distance from the mean, and an infinite one from everything else.
        if have.min is not None:
            there = np.where(np.isinf(have.min) | np.isinf(have.max), np.inf, there)
        elif np.any(np.isnan(have.m2) & (have.n > 0)):
            raise NotPushed("there are infinities")
    # As NumPy has it: a distance from NaN is missing.
    there = np.where(np.isnan(at) & (have.n > 0), 0.0 if skipna else np.nan, there)
    if not skipna:
        there = _nan_where(there, have.n < have.size)
    return there.astype(node.dtype)


def _mean(node: Node, axes: tuple[int, ...], skipna: bool, _: float = 0) -> NDArray[Any]:
    result = node.dtype if node.dtype.kind == "f" else np.dtype(np.float64)
    if (of_centre := _distance(node, axes)) is not None:
        of, centre = of_centre
        total = _squares(of, centre, node, axes, skipna)
        n: Any = _count(node, axes)[0] if skipna else prod(node.shape[axis] for axis in axes)
        with np.errstate(all="ignore"):
            return np.asarray(total.astype(np.float64) / n).astype(result)
    try:
        added = _added(node, axes)
    except DataError:
        if node.dtype.kind not in "iu":
            raise
        # The sum is beyond 64 bits, and the mean is not.
        what = canonical(node)
        return ask(what, "mean", *reduced_axes(what, axes))["mean"]
    mean = added.mean
    if skipna and np.any(added.n == 0):
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=5)
    return np.asarray(mean if skipna else _nan_where(mean, added.n < added.size)).astype(result)


def _var(node: Node, axes: tuple[int, ...], skipna: bool, ddof: float) -> NDArray[Any]:
    result = node.dtype if node.dtype.kind == "f" else np.dtype(np.float64)
    try:
        have = found(node, axes, spread=True)
    except DataError:
        if node.dtype.kind not in "iu":
            raise
        # The sum is beyond 64 bits, and the variance of f64 is not.
        have = found(cast(node, np.dtype(np.float64)), axes, spread=True)
    with np.errstate(all="ignore"):
        if skipna:
            freedom = have.n - ddof
            var = np.where(freedom > 0, have.m2 / freedom, np.nan)
            if np.any(freedom <= 0):
                warnings.warn("Degrees of freedom <= 0 for slice.", RuntimeWarning, stacklevel=5)
        else:
            var = _nan_where(have.m2 / np.maximum(have.n - ddof, 0), have.n < have.size)
    return var.astype(result)


def _std(node: Node, axes: tuple[int, ...], skipna: bool, ddof: float) -> NDArray[Any]:
    if (node.dtype if node.dtype.kind == "f" else np.dtype(np.float64)) == np.float32:
        # One rounding, at the end.
        have = found(node, axes, spread=True)
        with np.errstate(all="ignore"):
            freedom = have.n - ddof if skipna else np.maximum(have.n - ddof, 0)
            root = np.sqrt(np.where(freedom > 0, have.m2 / freedom, np.nan) if skipna else have.m2 / freedom)
        return np.asarray(root if skipna else _nan_where(root, have.n < have.size)).astype(np.float32)
    return np.asarray(np.sqrt(_var(node, axes, skipna, ddof)))


def _ends(which: str) -> Callable[..., NDArray[Any]]:
    def of(node: Node, axes: tuple[int, ...], skipna: bool, _: float = 0) -> NDArray[Any]:
        filled = _filled_cells(node, axes)
        if filled is not None and filled[2] == filled[2]:
            fill, inner, value = filled
            return np.where(fill, np.asarray(value, node.dtype), of(inner, axes, skipna))
        try:
            what = canonical(narrow(node), np.dtype(np.int8) if node.dtype == bool else None)
        except NotPushed as error:
            try:
                return _centred.end(node, axes, lambda inner: of(inner, axes, skipna))
            except NotPushed:
                raise error from None
        have = _moments(node, axes, remembered=not what.masks) if what.masks or not what.leaf.blocks else None
        if have is not None:
            values: NDArray[Any] = getattr(have, which)
            values = values if skipna else _nan_where(values, have.n < have.size)
        else:
            values = ask(what, which, *reduced_axes(what, axes), skipna=skipna)[which]
        if skipna and node.dtype.kind == "f" and np.any(np.isnan(values)):
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=5)
        return values.astype(node.dtype)

    return of


def _nonzero(node: Node, axes: tuple[int, ...], skipna: bool, _: float = 0) -> NDArray[Any]:
    return _sum(cast(node, np.dtype(bool)), axes, False)


def _truth(name: str, node: Node, axes: tuple[int, ...]) -> NDArray[Any]:
    if (of := canon.missing_of(node)) is not None:
        have = found(of, axes)
        return have.n == 0 if name == "all" else have.n < have.size
    if (of := canon.present_of(node)) is not None:
        have = found(of, axes)
        return have.n > 0 if name == "any" else have.n == have.size
    what = canonical(node)
    if what.masks:
        raise NotPushed("what is masked is asked for its truth")
    return ask(what, name, *reduced_axes(what, axes), skipna=False)[name]


def _filled_cells(node: Node, axes: tuple[int, ...]) -> tuple[NDArray[Any], Node, Any] | None:
    """``where(C, E, c)`` with a condition that is here and the same within each cell: where it is false, ``E``, ``c``."""
    args = canon.called(node, "where")
    if not args or not isinstance(args[0], Const) or not isinstance(args[2], Const) or args[0].weak:
        return None
    there = np.broadcast_to(args[0].value, (1,) * (node.ndim - args[0].value.ndim) + args[0].value.shape)
    if there.dtype != bool or args[1].shape != node.shape or args[2].scalar is None:
        return None
    if any(there.shape[axis] != 1 for axis in axes):
        return None
    return ~there.squeeze(axes), cast(args[1], node.dtype), args[2].scalar


def _place(name: str, node: Node, axes: tuple[int, ...], skipna: bool) -> NDArray[Any]:
    """The place of the smallest or the largest. xarray fills cells of which all is missing before it asks."""
    fill = None
    if (filled := _filled_cells(node, axes)) is not None and filled[2] == filled[2]:
        fill, node, _ = filled
    what = canonical(node)
    if what.masks or any(what.split):
        raise NotPushed("places are not told within windows or masks")
    order = [axis for axis in (what.leaf.axes[at] for at in axes) if axis is not None]
    if order != sorted(order):
        raise NotPushed("places are counted in the order of the file")
    if fill is None or not fill.any():
        try:
            return ask(what, name, set(axes), skipna=skipna)[name]
        except DataError as error:
            raise ValueError("All-NaN slice encountered") from error
        except NotPushed:
            # Of a cell between those that are picked all may be missing.
            if not skipna or not picked_cells(what.leaf, set(axes)):
                raise
    nowhere: Any = False if fill is None else fill
    # What is missing loses against everything else, so cells without anything have an answer too.
    worst = "inf" if name == "argmin" else "(-inf)"
    text = what.text or "x"
    have = found(node, axes)
    # Where nothing but infinities is there, their sum is infinite.
    if np.any(np.isinf(have.sum) & (have.n < have.size)) or not skipna:
        raise NotPushed("an infinity cannot be told from what is missing")
    if np.any((have.n == 0) & ~np.asarray(nowhere)):
        raise ValueError("All-NaN slice encountered")
    text = f"where(isnan({text}), {worst}, {text})"
    lost = canon.Canonical(what.leaf, text, what.dtype, {}, what.split, what.inputs)
    return np.where(nowhere, 0, ask(lost, name, set(axes), skipna=False)[name])


_HOW: dict[str, Callable[..., NDArray[Any]]] = {
    "sum": _sum,
    "mean": _mean,
    "var": _var,
    "std": _std,
    "min": _ends("min"),
    "max": _ends("max"),
    "count_nonzero": _nonzero,
    "argmin": _sum,
    "argmax": _sum,
    "any": _sum,
    "all": _sum,
}


#: What a statistic asks for, where that has another name.
_ASKED = {"count": "totals", "sum": "totals", "mean": "totals", "std": "moments", "var": "moments"}


def stats(node: Node, names: list[str], axis: Any, ddof: float = 0) -> dict[str, Any]:
    """Several reductions that leave out what is missing, by one request."""
    if prod(node.shape) == 0:
        raise NotPushed("there is nothing to reduce")
    out = {}
    axes = normal_axes(axis, node.ndim)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        if len({_ASKED.get(name, name) for name in names}) > 1:
            found(node, axes, spread=True)
        for name in names:
            if name == "count":
                out[name] = np.array(found(node, axes).n)[()]
            else:
                out[name] = reduce(f"nan{name}", node, axis, ddof=ddof)
    return out
