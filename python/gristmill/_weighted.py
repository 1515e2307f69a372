"""Sums of products, as ``weighted`` of xarray makes them of an array and weights, and ``dot`` of several arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _options
from ._ask import ask
from ._canonical import canonical, filled_of, present_of
from ._expr import Const, Node, apply, cast
from ._indexing import index
from ._inputs import NotPushed
from ._reduce import reduce
from ._shapes import transposed

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most vectors of weights of a request; see ``array::MAX_WEIGHTS``.
MAX_VECTORS = 2


def einsum(operands: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """What :func:`numpy.einsum` gives, where one operand has all axes: a weighted sum, if it alone is stored and the others are
    vectors, or products of vectors, along axes that are summed; else the sum of an expression.

    Raises :class:`NotPushed`, with why.
    """
    if not operands or not isinstance(operands[0], str) or set(more) - {"optimize", "dtype", "casting", "order"}:
        raise NotPushed("it is not said by letters alone")
    nodes = [_node(one) for one in operands[1:]]
    if any(0 in node.shape for node in nodes):
        raise NotPushed("there is nothing to add")
    inputs, output = _letters(operands[0], [node.ndim for node in nodes])
    lead = max(range(len(inputs)), key=lambda at: (len(inputs[at]), any(nodes[at].leaves())))
    letters = inputs[lead]
    if len(set(output)) != len(output) or any(len(set(said)) != len(said) for said in inputs):
        raise NotPushed("an axis is taken twice")
    if any(letter not in letters for letter in "".join(inputs) + output):
        raise NotPushed("none of its operands has all axes")
    reduced = {axis for axis, letter in enumerate(letters) if letter not in output}
    dtype = np.dtype(more.get("dtype") or np.result_type(*(node.dtype for node in nodes)))
    try:
        if dtype.kind != "f":
            raise NotPushed("weighted sums are of floats")
        found = _weighed(nodes, inputs, lead, reduced)
    except NotPushed:
        found = _products(nodes, inputs, lead, reduced, dtype)
    left = [letter for letter in letters if letter in output]
    return found.astype(dtype).transpose([left.index(letter) for letter in output])[()]


def _node(operand: Any) -> Node:
    from ._array import Array

    return operand._node if isinstance(operand, Array) else Const(np.asarray(operand))


def _weighed(nodes: list[Node], inputs: list[str], lead: int, reduced: set[int]) -> NDArray[Any]:
    """The sum of one array times vectors."""
    node, letters = nodes[lead], inputs[lead]
    vectors: dict[int, NDArray[Any]] = {}
    for number, (given, said) in enumerate(zip(nodes, inputs)):
        if number == lead:
            continue
        if not isinstance(given, Const):
            raise NotPushed("several of its operands are stored")
        for letter, vector in zip(said, _factors(given)):
            if vector is None:
                continue
            axis = letters.index(letter)
            if axis not in reduced:
                raise NotPushed("weights differ between cells")
            vectors[axis] = vectors.get(axis, 1.0) * vector.astype(np.float64)
    if not vectors:
        raise NotPushed("nothing weighs")
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
    return ask(what, "totals", reduced, skipna=skipna, weights=vectors)[told]


def _products(nodes: list[Node], inputs: list[str], lead: int, reduced: set[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The sum of products of arrays, element by element, each in the type of the result."""
    if not reduced or dtype == bool:
        raise NotPushed("nothing is summed")
    letters = inputs[lead]
    product = cast(nodes[lead], dtype)
    for number, (node, said) in enumerate(zip(nodes, inputs)):
        if number != lead:
            order = sorted(range(len(said)), key=lambda axis: letters.index(said[axis]))
            there = tuple(slice(None) if letter in said else None for letter in letters)
            # With the lead in the type of the result each product is in it.
            other = index(transposed(node, tuple(order)), there)
            product = apply("multiply", np.multiply, [product, other])
    return np.asarray(reduce("sum", product, tuple(reduced)))


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
