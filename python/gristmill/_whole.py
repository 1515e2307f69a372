"""Arrays of dask that also know what they are as a whole.

dask needs some tenths of a millisecond for each block of each step, whatever is in the block. An array of files that was only
sliced and computed with elementwise is an expression as well as a graph of blocks, so its reductions are one task with one
request. Everything else that dask does with it, it does with the blocks.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from ._array import Array
from ._canonical import NotPushed
from ._errors import GristmillError
from ._expr import MAX_DEPTH, Node
from ._quantiles import median
from ._reduce import normal_axes, reduce
from ._reductions import REDUCTIONS
from ._request import is_pushed

#: Largest answer of one task, in bytes. Blocks of larger ones are asked for by themselves.
MAX_ANSWER = 64 << 20

#: What an elementwise operation may be given beside arrays: what is the same for each element.
_SCALARS = (bool, int, float, np.generic)

_OPERATORS = (
    ["abs", "add", "and", "eq", "floordiv", "ge", "gt", "invert", "le", "lshift", "lt", "mod", "mul", "ne", "neg", "or"]
    + ["pos", "pow", "radd", "rand", "rfloordiv", "rlshift", "rmod", "rmul", "ror", "rpow", "rrshift", "rshift", "rsub"]
    + ["rtruediv", "rxor", "sub", "truediv", "xor"]
)  # fmt: skip

_LIKE = (np.zeros_like, np.ones_like, np.full_like)

#: What dask computes along axes of which the array is one block, or not at all.
_MEDIANS = ("median", "nanmedian")

_METHODS = ("mean", "sum", "std", "var", "min", "max", "argmin", "argmax", "any", "all")


class _AsDask(type):
    """Equal to the type of dask's arrays: xarray looks whether all arrays of a call are of one type, and does not take those
    of another library together with dask's. These are dask's."""

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is da.Array

    def __hash__(cls) -> int:
        return hash(da.Array)


#: Without types, as dask has none of its own.
_Dask: Any = da.Array


class Whole(_Dask, metaclass=_AsDask):  # type: ignore[misc]
    """Blocks, and the expression that they are cut from. A copy by pickle, and what has been persisted, is blocks alone."""

    _made: tuple[Array, str]

    @classmethod
    def of(cls, blocks: Any, whole: Array) -> Any:
        """Blocks that are cut from ``whole``."""
        if blocks.npartitions < 2 or blocks.shape != whole.shape or blocks.dtype != whole.dtype:
            return blocks
        made = cls(blocks.dask, blocks.name, blocks.chunks, meta=blocks._meta)
        made._made = whole, made._name
        return made

    def _is(self) -> Array | None:
        """What it is as a whole; ``None`` once something was written into it, which gives dask's arrays another name."""
        whole, name = self._made
        return whole if name == self._name and whole._node.depth < MAX_DEPTH else None

    def _elementwise(self, blocks: Any, function: Callable[..., Any], given: Sequence[Any]) -> Any:
        """The blocks of a result with what they are as a whole, if that is known of all that it was made of."""
        if not isinstance(blocks, da.Array):
            return blocks
        wholes: list[Any] = []
        for one in given:
            if isinstance(one, Whole) and (whole := one._is()) is not None:
                wholes.append(whole)
            elif isinstance(one, _SCALARS) or (isinstance(one, np.ndarray) and one.ndim == 0):
                wholes.append(one)
            else:
                return blocks
        with contextlib.suppress(GristmillError, TypeError, ValueError):
            made = function(*wholes)
            if isinstance(made, Array):
                return Whole.of(blocks, made)
        return blocks

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        blocks = super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        if method != "__call__" or kwargs or ufunc.nout != 1 or ufunc.signature is not None:
            return blocks
        return self._elementwise(blocks, ufunc, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if args and args[0] is self and function is getattr(np, name, None) and name in (*REDUCTIONS, *_MEDIANS):
            found = self._reduced(name, args[1:], kwargs)
            if found is not None:
                return found
        blocks = super().__array_function__(function, types, args, kwargs)
        if function is np.where and len(args) == 3 and not kwargs:
            return self._elementwise(blocks, function, args)
        if function in _LIKE and args and args[0] is self and set(kwargs) <= {"dtype", "fill_value"}:
            return self._elementwise(blocks, lambda one: function(one, *args[1:], **kwargs), [self])
        return blocks

    def astype(self, dtype: Any, **kwargs: Any) -> Any:
        return self._elementwise(super().astype(dtype, **kwargs), lambda one: one.astype(dtype), [self])

    def rechunk(self, *args: Any, **kwargs: Any) -> Any:
        return self._elementwise(super().rechunk(*args, **kwargs), Array.copy, [self])

    def copy(self) -> Any:
        return self._elementwise(super().copy(), Array.copy, [self])

    def __getitem__(self, key: Any) -> Any:
        blocks = _without_empty(super().__getitem__(key))
        keys = np.index_exp[key]
        picked = [one for one in keys if not (one is Ellipsis or isinstance(one, (int, np.integer, slice)))]
        if len(picked) == 1 and all(isinstance(one, slice) for one in keys if one is not picked[0]):
            # NumPy and dask have it alike: elements of one axis.
            picked = [one for one in picked if not (isinstance(one, (list, np.ndarray)) and np.ndim(one) == 1)]
        return blocks if picked else self._elementwise(blocks, operator.itemgetter(key), [self])

    def _reduced(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A reduction as one task; ``None`` where its blocks are to be reduced."""
        given = dict(zip(("axis",), args), **kwargs)
        given = {key: value for key, value in given.items() if value is not None and value is not np._NoValue}
        whole = self._is()
        if len(args) > 1 or not set(given) <= {"axis", "dtype", "keepdims", "ddof"} or 0 in self.shape or whole is None:
            return None
        name = {"amin": "min", "amax": "max"}.get(name, name)
        axes = normal_axes(given.pop("axis", None), self.ndim)
        node = whole._node
        if name.endswith(("argmin", "argmax")) and 1 < len(axes):
            # dask's places are counted in the same order, over all axes only.
            axes = axes if len(axes) == self.ndim else ()
        gone = set() if given.get("keepdims") else set(axes)
        chunks = tuple(
            (1,) if at in axes else lengths for at, lengths in enumerate(self.chunks) if at not in gone
        )
        shape = tuple(map(sum, chunks))
        question = Question(name, whole, axes, given, self.chunks)
        try:
            if not axes or 8 * prod(shape) > MAX_ANSWER or not is_pushed(lambda: reduced_there(name, node, axes, given)):
                return None
        except (GristmillError, TypeError, ValueError):
            return None
        asked = delayed(Question.__call__, name=f"{name}-gristmill", pure=False)(question)
        return da.from_delayed(asked, shape, meta=np.empty((0,) * len(shape), question.dtype)).rechunk(chunks)


def _without_empty(blocks: Any) -> Any:
    """Blocks without those of no elements, which dask leaves where a slice takes none of a block, and then loses beside others."""
    chunks = tuple(tuple(filter(None, lengths)) or lengths for lengths in blocks.chunks)
    return blocks if chunks == blocks.chunks else blocks.rechunk(chunks)


class Question:
    """A reduction, for a task."""

    def __init__(
        self, name: str, whole: Array, axes: tuple[int, ...], given: dict[str, Any], chunks: tuple[tuple[int, ...], ...]
    ) -> None:
        self.name, self.whole, self.axes, self.given, self.chunks = name, whole, axes, given, chunks
        one, plainly = np.ones((1,) * whole.ndim, whole.dtype), {**given, "ddof": 0} if "ddof" in given else given
        self.dtype = np.asarray(reduced_here(name, one, axes, plainly)).dtype

    def __call__(self) -> Any:
        try:
            found = reduced_there(self.name, self.whole._node, self.axes, self.given)
        except NotPushed:
            # What storage nodes do with it was not to be known before. The whole may be more than there is room for.
            from ._chunks import cut

            blocks = cut(self.whole, self.chunks)
            found = reduced_here(self.name, blocks, self.axes, self.given).compute(scheduler="synchronous")
        return np.asarray(found).astype(self.dtype, copy=False)


def reduced_there(name: str, node: Node, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    """A reduction where the data is stored."""
    return (median if name in _MEDIANS else reduce)(name, node, axes, **given)


def reduced_here(name: str, array: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    """The same by NumPy, or dask."""
    places = name.endswith(("argmin", "argmax"))
    axis: Any = (axes[0] if len(axes) == 1 else None) if places else axes
    with np.errstate(all="ignore"):
        return getattr(np, name)(array, axis=axis, **given)


def _operator(name: str) -> Callable[..., Any]:
    blocks_of = getattr(da.Array, name)

    def method(self: Whole, *others: Any) -> Any:
        blocks = blocks_of(self, *others)
        return self._elementwise(blocks, lambda one, *rest: getattr(one, name)(*rest), (self, *others))

    method.__name__ = name
    return method


def _method(name: str) -> Callable[..., Any]:
    blocks_of = getattr(da.Array, name)

    def method(self: Whole, *args: Any, **kwargs: Any) -> Any:
        found = self._reduced(name, args, kwargs)
        return blocks_of(self, *args, **kwargs) if found is None else found

    method.__name__, method.__doc__ = name, blocks_of.__doc__
    return method


for _name in _OPERATORS:
    setattr(Whole, f"__{_name}__", _operator(f"__{_name}__"))
for _name in _METHODS:
    setattr(Whole, _name, _method(_name))
