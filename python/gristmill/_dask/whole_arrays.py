"""Arrays of dask that also have an expression of the whole array.

dask needs some tenths of a millisecond for each block of each step, for blocks of any size. An array of a file with
only slices and elementwise operations is an expression, too. So its reductions are one task with one request. For all
other operations dask uses the blocks.
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

from .._arrays.array import Array
from .._arrays.reductions import REDUCTIONS
from .._errors import GristmillError
from .._expressions.axes import normal_axes
from .._expressions.nodes import MAX_DEPTH, Node
from .._pushdown.not_pushed import NotPushed
from .._pushdown.quantiles import median
from .._pushdown.reduce import reduce
from .._pushdown.request import is_pushed

#: Most bytes of the answer of one task. Larger answers are computed block by block.
MAX_ANSWER = 64 << 20

#: Types of scalars, which elementwise operations may have as arguments besides arrays.
_SCALARS = (bool, int, float, np.generic)
_OPERATORS = (
    ["abs", "add", "and", "eq", "floordiv", "ge", "gt", "invert", "le", "lshift", "lt", "mod", "mul", "ne", "neg", "or"]
    + ["pos", "pow", "radd", "rand", "rfloordiv", "rlshift", "rmod", "rmul", "ror", "rpow", "rrshift", "rshift", "rsub"]
    + ["rtruediv", "rxor", "sub", "truediv", "xor"]
)  # fmt: skip
_LIKE = (np.zeros_like, np.ones_like, np.full_like)

#: Reductions that dask computes only along axes with one block.
_MEDIANS = ("median", "nanmedian")
_METHODS = ("mean", "sum", "std", "var", "min", "max", "argmin", "argmax", "any", "all")


class _DaskArrayType(type):
    """A metaclass that makes the class equal to dask's array type.

    xarray requires that all chunked arrays of a call have one type, and these are arrays of dask.
    """

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is da.Array

    def __hash__(cls) -> int:
        return hash(da.Array)


#: Untyped, because dask has no types.
_Dask: Any = da.Array


class WholeArray(_Dask, metaclass=_DaskArrayType):  # type: ignore[misc]
    """An array of dask with the expression of the whole array.

    Pickled copies and persisted arrays have the blocks only.
    """

    #: The expression, or the function that makes it, and the name of the array of dask that it belongs to.
    _whole: tuple[Array | Callable[[], Array | None] | None, str]

    @classmethod
    def wrap(cls, blocks: Any, whole: Array) -> Any:
        """Adds the expression ``whole`` to blocks that are cut from it.

        Returns ``blocks`` if the expression does not fit.
        """
        return cls._made(blocks, whole) if _fits(blocks, whole) else blocks

    @classmethod
    def wrap_later(cls, blocks: Any, make: Callable[[], Array | None]) -> Any:
        """Adds the expression that ``make`` returns when it is needed for the first time."""
        return cls._made(blocks, make)

    @classmethod
    def _made(cls, blocks: Any, whole: Array | Callable[[], Array | None]) -> Any:
        made = cls(blocks.dask, blocks.name, blocks.chunks, meta=blocks._meta)
        made._whole = whole, made._name
        return made

    def _expression(self) -> Array | None:
        """Returns the expression of the whole array.

        Returns ``None`` after a write into the array, which changes the name of an array of dask.
        """
        whole, name = self._whole
        if name != self._name:
            return None
        if whole is not None and not isinstance(whole, Array):
            made = whole()
            whole = made if made is not None and _fits(self, made) else None
            self._whole = whole, name
        return whole if whole is not None and whole._node.depth < MAX_DEPTH else None

    def _elementwise(self, blocks: Any, function: Callable[..., Any], given: Sequence[Any]) -> Any:
        """Adds an expression to the blocks of a result, if all its operands have one. ``function`` computes it."""
        if not isinstance(blocks, da.Array):
            return blocks
        wholes: list[Any] = []
        for one in given:
            if isinstance(one, WholeArray) and (whole := one._expression()) is not None:
                wholes.append(whole)
            elif isinstance(one, _SCALARS) or (isinstance(one, np.ndarray) and one.ndim == 0):
                wholes.append(one)
            else:
                return blocks
        with contextlib.suppress(GristmillError, TypeError, ValueError):
            made = function(*wholes)
            if isinstance(made, Array):
                return WholeArray.wrap(blocks, made)
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
            # NumPy and dask agree about indices of one axis.
            picked = [one for one in picked if not (isinstance(one, (list, np.ndarray)) and np.ndim(one) == 1)]
        return blocks if picked else self._elementwise(blocks, operator.itemgetter(key), [self])

    def _reduced(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Returns a reduction as one task, or ``None`` if dask must reduce the blocks."""
        given = dict(zip(("axis",), args), **kwargs)
        given = {key: value for key, value in given.items() if value is not None and value is not np._NoValue}
        whole = self._expression()
        if len(args) > 1 or not set(given) <= {"axis", "dtype", "keepdims", "ddof"} or 0 in self.shape or whole is None:
            return None
        name = {"amin": "min", "amax": "max"}.get(name, name)
        axes = normal_axes(given.pop("axis", None), self.ndim)
        node = whole._node
        if name.endswith(("argmin", "argmax")) and 1 < len(axes):
            # dask counts positions in the same order only over all axes.
            axes = axes if len(axes) == self.ndim else ()
        gone = set() if given.get("keepdims") else set(axes)
        chunks = tuple(
            (1,) if at in axes else lengths for at, lengths in enumerate(self.chunks) if at not in gone
        )
        shape = tuple(map(sum, chunks))
        question = ReductionTask(name, whole, axes, given, self.chunks)
        try:
            if not axes or 8 * prod(shape) > MAX_ANSWER:
                return None
            if not is_pushed(lambda: reduce_where_stored(name, node, axes, given)):
                return None
        except (GristmillError, TypeError, ValueError):
            return None
        asked = delayed(ReductionTask.__call__, name=f"{name}-gristmill", pure=False)(question)
        return da.from_delayed(asked, shape, meta=np.empty((0,) * len(shape), question.dtype)).rechunk(chunks)


def _fits(blocks: Any, whole: Array) -> bool:
    return bool(blocks.shape == whole.shape and blocks.dtype == whole.dtype)


def _without_empty(blocks: Any) -> Any:
    """Removes empty blocks. dask leaves them where a slice takes no element of a block, and mishandles them next to
    others."""
    chunks = tuple(tuple(filter(None, lengths)) or lengths for lengths in blocks.chunks)
    return blocks if chunks == blocks.chunks else blocks.rechunk(chunks)


class ReductionTask:
    """The function of a task that computes a reduction of a whole array."""

    def __init__(
        self, name: str, whole: Array, axes: tuple[int, ...], given: dict[str, Any], chunks: tuple[tuple[int, ...], ...]
    ) -> None:
        self.name, self.whole, self.axes, self.given, self.chunks = name, whole, axes, given, chunks
        one, plainly = np.ones((1,) * whole.ndim, whole.dtype), {**given, "ddof": 0} if "ddof" in given else given
        self.dtype = np.asarray(reduce_here(name, one, axes, plainly)).dtype

    def __call__(self) -> Any:
        try:
            found = reduce_where_stored(self.name, self.whole._node, self.axes, self.given)
        except NotPushed:
            # Only the storage nodes knew that. The whole array may not fit into memory, so dask reduces the blocks.
            from .blocks import cut

            blocks = cut(self.whole, self.chunks)
            found = reduce_here(self.name, blocks, self.axes, self.given).compute(scheduler="synchronous")
        return np.asarray(found).astype(self.dtype, copy=False)


def reduce_where_stored(name: str, node: Node, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    """Computes a reduction where the data is stored.

    Raises :class:`NotPushed` if storage nodes cannot compute it.
    """
    return (median if name in _MEDIANS else reduce)(name, node, axes, **given)


def reduce_here(name: str, array: Any, axes: tuple[int, ...], given: dict[str, Any]) -> Any:
    """Computes the same reduction with NumPy or dask."""
    places = name.endswith(("argmin", "argmax"))
    axis: Any = (axes[0] if len(axes) == 1 else None) if places else axes
    with np.errstate(all="ignore"):
        return getattr(np, name)(array, axis=axis, **given)


def _operator(name: str) -> Callable[..., Any]:
    blocks_of = getattr(da.Array, name)

    def method(self: WholeArray, *others: Any) -> Any:
        blocks = blocks_of(self, *others)
        return self._elementwise(blocks, lambda one, *rest: getattr(one, name)(*rest), (self, *others))

    method.__name__ = name
    return method


def _method(name: str) -> Callable[..., Any]:
    blocks_of = getattr(da.Array, name)

    def method(self: WholeArray, *args: Any, **kwargs: Any) -> Any:
        found = self._reduced(name, args, kwargs)
        return blocks_of(self, *args, **kwargs) if found is None else found

    method.__name__, method.__doc__ = name, blocks_of.__doc__
    return method


for _name in _OPERATORS:
    setattr(WholeArray, f"__{_name}__", _operator(f"__{_name}__"))
for _name in _METHODS:
    setattr(WholeArray, _name, _method(_name))
