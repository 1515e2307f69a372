"""Sums of products, as ``weighted`` of xarray makes them of an array and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _options
from ._ask import ask
from ._canonical import NotPushed, canonical, filled_of, present_of
from ._expr import Const, Node

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most vectors of weights of a request; see ``array::MAX_WEIGHTS``.
MAX_VECTORS = 2


def einsum(operands: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """What :func:`numpy.einsum` gives, where one operand is stored and the others are vectors, or products of vectors, along
    axes that are summed.

    Raises :class:`NotPushed`, with why.
    """
    from ._array import Array

    if not operands or not isinstance(operands[0], str) or set(more) - {"optimize", "dtype", "casting", "order"}:
        raise NotPushed("it is not said by letters alone")
    arrays = operands[1:]
    inputs, output = _letters(operands[0], [np.ndim(one) if not isinstance(one, Array) else one.ndim for one in arrays])
    stored = [
        at for at, one in enumerate(arrays) if isinstance(one, Array) and next(one._node.leaves(), None) is not None
    ]
    if len(stored) != 1:
        raise NotPushed("several of its operands are stored")
    at = stored[0]
    node: Node = arrays[at]._node
    letters = inputs[at]
    if len(set(letters)) != len(letters) or any(letter not in letters for letter in "".join(inputs)):
        raise NotPushed("it is no weighted sum")
    reduced = {axis for axis, letter in enumerate(letters) if letter not in output}
    if [letter for letter in letters if letter in output] != list(output):
        raise NotPushed("its axes come in another order")
    vectors: dict[int, NDArray[Any]] = {}
    dtypes = [node.dtype]
    for number, (one, said) in enumerate(zip(arrays, inputs)):
        if number == at:
            continue
        given = (
            Const(one._node.value)
            if isinstance(one, Array) and isinstance(one._node, Const)
            else Const(np.asarray(one))
        )
        dtypes.append(given.dtype)
        for letter, vector in zip(said, _factors(given)):
            if vector is None:
                continue
            axis = letters.index(letter)
            if axis not in reduced:
                raise NotPushed("weights differ between cells")
            vectors[axis] = vectors.get(axis, 1.0) * vector.astype(np.float64)
    if len(vectors) > MAX_VECTORS or any(not np.isfinite(vector).all() for vector in vectors.values()):
        raise NotPushed(f"weights are not finite, or along more than {MAX_VECTORS} axes")
    if sum(vector.nbytes for vector in vectors.values()) > _options.current.max_constant:
        raise NotPushed("its weights are larger than max_constant")
    # The weights of what is there come with the sum: whoever makes a mean of both asks once.
    if (present := present_of(node)) is not None:
        node, told, skipna = present, "weights", True
    else:
        filled = filled_of(node)
        node, told, skipna = (node, "sum", False) if filled is None else (filled, "sum", True)
    what = canonical(node, np.dtype(np.int8) if node.dtype == bool else None)
    if what.masks or any(what.split):
        raise NotPushed("weights of what is masked")
    found = ask(what, "totals", reduced, skipna=skipna, weights=vectors)[told]
    return found.astype(more.get("dtype") or np.result_type(*dtypes))[()]


def _factors(given: Const) -> list[NDArray[Any] | None]:
    """A vector along each axis whose product the array is; ``None`` along those that it does not vary."""
    value = given.value if not given.weak else np.asarray(given.value)
    varies = [axis for axis, length in enumerate(value.shape) if length > 1]
    if not varies:
        if value.size == 1 and value.ndim == 0:
            raise NotPushed("a weight is a single number")
        return [np.broadcast_to(value.reshape(-1), given.shape[:1])] + [None] * (value.ndim - 1)
    if len(varies) > 1:
        raise NotPushed("weights vary along several axes at once")
    return [value.reshape(-1) if axis == varies[0] else None for axis in range(value.ndim)]


def _letters(said: str, counts: list[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, those of ``...`` as capitals."""
    text = said.replace(" ", "")
    if "->" not in text:
        raise NotPushed("it does not say what comes out")
    left, output = text.split("->")
    parts = left.split(",")
    if len(parts) != len(counts):
        raise ValueError(f"einsum {said!r} has another number of operands")
    rests = [count - len(part.replace("...", "")) for part, count in zip(parts, counts)]
    rest = max((n for part, n in zip(parts, rests) if "..." in part), default=0)
    names = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:rest]

    def spoken(part: str, count: int) -> str:
        return part.replace("...", names[rest - count :] if count > 0 else "")

    return [spoken(part, n) for part, n in zip(parts, rests)], spoken(output, rest)
