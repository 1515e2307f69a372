"""The canonical form of a tree: an expression as text, its inputs, masks and windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._expressions.nodes import Apply, Const, Leaf, Node, Windows, cast
from .inputs import TYPES, Inputs, find_inputs
from .not_pushed import NotPushed
from .patterns import match_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most bytes of the text of an expression, as ``array::MAX_TEXT``.
MAX_TEXT = 4096
_BINARY = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "true_divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
_LOGIC = {"logical_and": "&", "bitwise_and": "&", "logical_or": "|", "bitwise_or": "|"}
_FUNCTIONS = {
    "isnan": "isnan",
    "isfinite": "isfinite",
    "minimum": "min",
    "maximum": "max",
    "absolute": "abs",
    "sqrt": "sqrt",
    "exp": "exp",
    "log": "log",
    "log10": "log10",
    "floor": "floor",
    "ceil": "ceil",
    "rint": "round",
}


@dataclass
class Canonical:
    """An expression over selections of variables. Axes are those of the node before windows cut any."""

    leaf: Leaf
    #: Text of the expression; ``None`` for the plain variable.
    text: str | None
    dtype: np.dtype[Any]
    #: For each axis with missing elements, a mask that is true where elements are not missing.
    masks: dict[int, NDArray[Any]] = field(default_factory=dict)
    #: For each axis the length of its windows, or ``None``.
    split: tuple[int | None, ...] = ()
    #: Inputs of the expression.
    inputs: Inputs = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.inputs is None:
            self.inputs = Inputs(self.leaf)

    def take(self, axis: int, part: slice) -> Canonical:
        """Selects a part of an axis that is neither masked nor cut into windows."""
        inputs = self.inputs.take(axis, part)
        return Canonical(inputs.lead, self.text, self.dtype, self.masks, self.split, inputs)


def canonical(node: Node, dtype: np.dtype[Any] | None = None) -> Canonical:
    """Returns the canonical form of a node, cast to a type if one is given.

    Raises :class:`NotPushed` if storage nodes cannot compute it.
    """
    split: tuple[int | None, ...] = (None,) * node.ndim
    if isinstance(node, Windows):
        split, node = node.split, node.of
    masks: dict[int, NDArray[Any]] = {}
    while (masked := match_mask(node)) is not None:
        axis, kept, of = masked
        masks[axis] = masks.get(axis, True) & kept
        node = of
    if masks and any(split):
        raise NotPushed("windows of what is masked")
    if dtype is not None:
        node = cast(node, dtype)
    inputs = find_inputs(node)
    text = None if isinstance(node, Leaf) else render(node, inputs)
    if text is not None and len(text) > MAX_TEXT:
        raise NotPushed(f"its expression is longer than {MAX_TEXT} bytes")
    return Canonical(inputs.lead, text, node.dtype, masks, split, inputs)


def render(node: Node, inputs: Inputs) -> str:
    """Returns the text of a node in the language of storage nodes, with NumPy's types. Adds its leaves to the inputs.

    Raises :class:`NotPushed` if storage nodes cannot compute it.
    """
    if node.dtype not in TYPES:
        raise NotPushed(f"{node.dtype} is no type that storage nodes compute in")
    if isinstance(node, Leaf):
        return inputs.name(node)
    if isinstance(node, Const):
        return inputs.name(node) if node.scalar is None else _literal(node)
    if not isinstance(node, Apply):
        raise NotPushed(f"{getattr(node, 'name', 'reshape')} is not elementwise")
    name, args = node.name, node.args
    if name == "cast":
        if args[0].dtype.kind == "f" and node.dtype.kind in "iu":
            raise NotPushed("a cast from floats to integers depends on the processor")
        return f"{TYPES[node.dtype]}({render(args[0], inputs)})"
    if name in _BINARY:
        return f"({render(args[0], inputs)} {_BINARY[name]} {render(args[1], inputs)})"
    if name in _LOGIC and (name.startswith("logical") or node.dtype == bool):
        return f"({_truth(args[0], inputs)} {_LOGIC[name]} {_truth(args[1], inputs)})"
    if name == "logical_not" or (name == "invert" and node.dtype == bool):
        return f"(~{_truth(args[0], inputs)})"
    if name == "negative":
        return f"(-{render(args[0], inputs)})"
    if name == "square":
        return f"({render(cast(args[0], node.dtype), inputs)} ** 2)"
    if name == "isinf":
        return f"(~isfinite({render(args[0], inputs)}) & ~isnan({render(args[0], inputs)}))"
    if name == "where":
        return f"where({_truth(args[0], inputs)}, {render(args[1], inputs)}, {render(args[2], inputs)})"
    if name in ("conjugate", "positive"):
        return render(args[0], inputs)
    if len(args) == 1 and node.dtype.kind == "f" and args[0].dtype.kind != "f":
        # NumPy converts integers to this type of float.
        args = (cast(args[0], node.dtype),)
    if name in _FUNCTIONS:
        return f"{_FUNCTIONS[name]}({', '.join(render(arg, inputs) for arg in args)})"
    raise NotPushed(f"storage nodes do not compute {name}")


def _truth(node: Node, inputs: Inputs) -> str:
    return render(node, inputs) if node.dtype == bool else f"bool({render(node, inputs)})"


def _literal(node: Const) -> str:
    value = node.scalar
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool):
        return "true" if plain else "false"
    text = repr(plain)
    if text.startswith("-"):
        text = f"({text})"
    return text if node.weak else f"{TYPES[node.dtype]}({text})"
