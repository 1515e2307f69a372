"""``einsum``: weighted sums, as ``weighted`` of xarray uses them, and sums of products, as ``dot`` of xarray uses
them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._expressions.axes import transpose_node
from .._expressions.indexing import index
from .._expressions.nodes import Const, Node, apply, cast
from .._pushdown.asking import ask
from .._pushdown.canonical import canonical
from .._pushdown.not_pushed import NotPushed
from .._pushdown.patterns import match_filled, match_notnan
from .._pushdown.reduce import reduce
from .._requests import options

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most vectors of weights of a request, as ``array::MAX_WEIGHTS``.
MAX_VECTORS = 2


def einsum(operands: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """Computes :func:`numpy.einsum` where one operand has all axes.

    It is a weighted sum if only this operand is stored, and the others are vectors or products of vectors along axes
    that are summed. Otherwise it is the sum of an expression.

    Raises :class:`NotPushed` if storage nodes cannot compute it.
    """
    if not operands or not isinstance(operands[0], str) or set(more) - {"optimize", "dtype", "casting", "order"}:
        raise NotPushed("it is not said by letters alone")
    nodes = [_node(one) for one in operands[1:]]
    if any(0 in node.shape for node in nodes):
        raise NotPushed("there is nothing to add")
    inputs, output = _parse_letters(operands[0], [node.ndim for node in nodes])
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
        found = _weighted_sum(nodes, inputs, lead, reduced)
    except NotPushed:
        found = _sum_of_products(nodes, inputs, lead, reduced, dtype)
    left = [letter for letter in letters if letter in output]
    return found.astype(dtype).transpose([left.index(letter) for letter in output])[()]


def _node(operand: Any) -> Node:
    from .array import Array

    return operand._node if isinstance(operand, Array) else Const(np.asarray(operand))


def _weighted_sum(nodes: list[Node], inputs: list[str], lead: int, reduced: set[int]) -> NDArray[Any]:
    """Computes the sum of one array times vectors of weights."""
    node, letters = nodes[lead], inputs[lead]
    vectors: dict[int, NDArray[Any]] = {}
    for number, (given, said) in enumerate(zip(nodes, inputs)):
        if number == lead:
            continue
        if not isinstance(given, Const):
            raise NotPushed("several of its operands are stored")
        for letter, vector in zip(said, _vectors_of(given)):
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
    if sum(vector.nbytes for vector in vectors.values()) > options.current.max_constant:
        raise NotPushed("its weights are larger than max_constant")
    # The sum of the weights of present elements comes with the weighted sum, so a mean needs one request.
    if (present := match_notnan(node)) is not None:
        node, result, skipna = present, "weights", True
    else:
        filled = match_filled(node)
        node, result, skipna = (node, "sum", False) if filled is None else (filled, "sum", True)
    what = canonical(node, np.dtype(np.int8) if node.dtype == bool else None)
    if what.masks or any(what.split):
        raise NotPushed("weights of what is masked")
    return ask(what, "totals", reduced, skipna=skipna, weights=vectors)[result]


def _sum_of_products(
    nodes: list[Node], inputs: list[str], lead: int, reduced: set[int], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Computes the sum of elementwise products of arrays, in the type of the result."""
    if not reduced or dtype == bool:
        raise NotPushed("nothing is summed")
    letters = inputs[lead]
    product = cast(nodes[lead], dtype)
    for number, (node, said) in enumerate(zip(nodes, inputs)):
        if number != lead:
            order = sorted(range(len(said)), key=lambda axis: letters.index(said[axis]))
            there = tuple(slice(None) if letter in said else None for letter in letters)
            # The lead has the type of the result, so each product has it, too.
            other = index(transpose_node(node, tuple(order)), there)
            product = apply("multiply", np.multiply, [product, other])
    return np.asarray(reduce("sum", product, tuple(reduced)))


def _vectors_of(given: Const) -> list[NDArray[Any] | None]:
    """Returns a vector along each axis whose outer product is the array; ``None`` for axes along which it does not
    vary."""
    value = given.value if not given.weak else np.asarray(given.value)
    varies = [axis for axis, length in enumerate(value.shape) if length > 1]
    if not varies:
        if value.size == 1 and value.ndim == 0:
            raise NotPushed("a weight is a single number")
        return [np.broadcast_to(value.reshape(-1), given.shape[:1])] + [None] * (value.ndim - 1)
    if len(varies) > 1:
        raise NotPushed("weights vary along several axes at once")
    return [value.reshape(-1) if axis == varies[0] else None for axis in range(value.ndim)]


def _parse_letters(subscripts: str, counts: list[int]) -> tuple[list[str], str]:
    """Returns the letters of each operand and of the result. Capital letters stand for ``...``."""
    text = subscripts.replace(" ", "")
    if "->" not in text:
        raise NotPushed("it does not say what comes out")
    left, output = text.split("->")
    parts = left.split(",")
    if len(parts) != len(counts):
        raise ValueError(f"einsum {subscripts!r} has another number of operands")
    rests = [count - len(part.replace("...", "")) for part, count in zip(parts, counts)]
    rest = max((n for part, n in zip(parts, rests) if "..." in part), default=0)
    names = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:rest]

    def without_ellipsis(part: str, count: int) -> str:
        return part.replace("...", names[rest - count :] if count > 0 else "")

    return [without_ellipsis(part, n) for part, n in zip(parts, rests)], without_ellipsis(output, rest)
