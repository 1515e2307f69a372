"""From trees to what a storage node computes: an expression over variables, as text, and what is left out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ._expr import Apply, Const, Leaf, Node, Windows, cast
from ._inputs import TYPES, Inputs, inputs_of
from ._inputs import NotPushed as NotPushed

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Longest text of an expression; see ``array::MAX_TEXT``.
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
    """An expression over parts of variables. Axes are those of the node, before windows cut any."""

    leaf: Leaf
    #: ``None`` for the variable as it is.
    text: str | None
    dtype: np.dtype[Any]
    #: Axes along which elements are missing, and where they are not.
    masks: dict[int, NDArray[Any]] = field(default_factory=dict)
    #: Lengths of windows of axes, or ``None``.
    split: tuple[int | None, ...] = ()
    #: What the expression reads beside the leaf.
    inputs: Inputs = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.inputs is None:
            self.inputs = Inputs(self.leaf)

    def take(self, axis: int, part: slice) -> Canonical:
        """The same over less of an axis that is neither masked nor cut into windows."""
        inputs = self.inputs.take(axis, part)
        return Canonical(inputs.lead, self.text, self.dtype, self.masks, self.split, inputs)


def canonical(node: Node, dtype: np.dtype[Any] | None = None) -> Canonical:
    """What a storage node computes for this node, brought to a type.

    Raises :class:`NotPushed`.
    """
    split: tuple[int | None, ...] = (None,) * node.ndim
    if isinstance(node, Windows):
        split, node = node.split, node.of
    masks: dict[int, NDArray[Any]] = {}
    while (masked := mask_of(node)) is not None:
        axis, kept, of = masked
        masks[axis] = masks.get(axis, True) & kept
        node = of
    if masks and any(split):
        raise NotPushed("windows of what is masked")
    if dtype is not None:
        node = cast(node, dtype)
    inputs = inputs_of(node)
    text = None if isinstance(node, Leaf) else render(node, inputs)
    if text is not None and len(text) > MAX_TEXT:
        raise NotPushed(f"its expression is longer than {MAX_TEXT} bytes")
    return Canonical(inputs.lead, text, node.dtype, masks, split, inputs)


def render(node: Node, inputs: Inputs) -> str:
    """A node as storage nodes read expressions, with their types, which are NumPy's. What it reads beside the lead, which is
    called ``x``, is put among the inputs."""
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
        # Integers become the floats that NumPy makes of them.
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


def called(node: Node, *names: str) -> tuple[Node, ...] | None:
    """The arguments of a node, if it is one of these operations."""
    return node.args if isinstance(node, Apply) and node.name in names else None


def same_numbers(before: np.dtype[Any], after: np.dtype[Any]) -> bool:
    """Whether a cast changes no number: it makes a float at least as wide of a float."""
    return before.kind == after.kind == "f" and after.itemsize >= before.itemsize


def missing_of(node: Node) -> Node | None:
    """``D`` of ``isnan(D)``."""
    args = called(node, "isnan")
    return args[0] if args else None


def present_of(node: Node) -> Node | None:
    """``D`` of ``~isnan(D)``."""
    args = called(node, "logical_not", "invert")
    return missing_of(args[0]) if args else None


def filled_of(node: Node) -> Node | None:
    """``D`` of ``where(isnan(D), 0, D)`` and of ``where(~isnan(D), D, 0)``: what xarray and dask make of a sum that leaves out
    what is missing."""
    if (wider := called(node, "cast")) and same_numbers(wider[0].dtype, node.dtype):
        of_wider = filled_of(wider[0])
        return None if of_wider is None else cast(of_wider, node.dtype)
    args = called(node, "where")
    if not args:
        return None
    condition, a, b = args
    for of, zero, found in ((missing_of(condition), a, b), (present_of(condition), b, a)):
        if of is not None and isinstance(zero, Const) and zero.scalar == 0 and found.key == of.key:
            return of if of.dtype == node.dtype else None
    return None


def mask_of(node: Node) -> tuple[int, NDArray[Any], Node] | None:
    """``where(C, E, nan)`` with a condition that is here and varies along one axis: the axis, the condition, ``E`` in the type
    of the node. Whatever float it was made since is made of ``E`` as well."""
    if (cast_of := called(node, "cast")) and node.dtype.kind == cast_of[0].dtype.kind == "f":
        masked = mask_of(cast_of[0])
        return None if masked is None else (*masked[:2], cast(masked[2], node.dtype))
    args = called(node, "where")
    if not args:
        return None
    condition, of, other = args
    if not isinstance(condition, Const) or condition.scalar is not None or condition.dtype != bool:
        return None
    if not isinstance(other, Const) or other.scalar is None or other.scalar == other.scalar:
        return None
    if of.shape != node.shape:
        return None
    varies = condition.varies()
    if len(varies) != 1:
        return None
    return node.ndim - condition.ndim + varies[0], condition.value.reshape(-1), cast(of, node.dtype)


def squared_distance(node: Node) -> tuple[Node, Const] | None:
    """``D`` and ``C`` of ``(D - C)**2`` with an array ``C`` that is here."""
    # Squares have one sign, so rounding each to the type of their sum changes no more than the sum is rounded by.
    width = node.dtype.itemsize
    while (cast_of := called(node, "cast")) and cast_of[0].dtype.kind == node.dtype.kind == "f":
        if not 4 <= width <= node.dtype.itemsize:
            break
        node = cast_of[0]
    args = called(node, "power", "square", "multiply")
    if not args:
        return None
    if len(args) == 2:
        power = isinstance(node, Apply) and node.name == "power"
        if power and not (isinstance(args[1], Const) and args[1].scalar == 2):
            return None
        if not power and args[0].key != args[1].key:
            return None
    distance = called(args[0], "subtract")
    if not distance or not isinstance(distance[1], Const) or distance[1].weak:
        return None
    of, centre = distance[0], distance[1]
    return (of, centre) if of.shape == node.shape and of.dtype.kind == "f" else None
