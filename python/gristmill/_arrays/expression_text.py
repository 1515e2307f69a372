"""Short texts of trees, for people. Their length has a bound for any tree."""

from __future__ import annotations

from .._expressions.nodes import Apply, Const, Leaf, Node, Opaque, Windows
from .._expressions.takes import IndexList, Take
from .._pushdown.canonical import _BINARY, _LOGIC

#: Most characters of an expression.
MAX_CHARACTERS = 160

#: Most nodes and levels of a tree that are written.
PARTS, LEVELS = 200, 16

#: Stands for parts that are left out.
LEFT_OUT = "…"
_INFIX = {**_BINARY, **_LOGIC, "bitwise_xor": "^"}
_PREFIX = {"negative": "-", "invert": "~", "logical_not": "~"}


def expression_text(node: Node, most: int = MAX_CHARACTERS) -> str:
    """Returns the text of an expression with the names of its variables."""
    text = _TextWriter().write(node, 0)
    if text.startswith("(") and isinstance(node, Apply) and node.name in _INFIX:
        text = text[1:-1]
    return shorten(text, most)


def shorten(text: str, most: int) -> str:
    """Cuts a text to a number of characters."""
    return text if len(text) <= most else text[: max(most - len(LEFT_OUT), 0)] + LEFT_OUT


def variables(node: Node) -> list[Leaf]:
    """Returns one leaf for each variable of a tree, in the order of occurrence."""
    found: dict[object, Leaf] = {}
    seen: set[int] = set()
    todo = [node]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Leaf):
            found.setdefault(one.variable.key, one)
        todo += reversed(one.children())
    return list(found.values())


class _TextWriter:
    def __init__(self) -> None:
        self.left = PARTS

    def write(self, node: Node, level: int) -> str:
        self.left -= 1
        if self.left < 0 or level > LEVELS:
            return LEFT_OUT
        if isinstance(node, Leaf):
            return leaf_text(node)
        if isinstance(node, Const):
            return _constant_text(node)
        if isinstance(node, Windows):
            lengths = ", ".join(str(length) for length in node.split if length is not None)
            return f"windows({self.write(node.of, level + 1)}, {lengths})"
        if not isinstance(node, (Apply, Opaque)):
            return type(node).__name__
        args = [self.write(arg, level + 1) for arg in node.args]
        if node.name in _INFIX and len(args) == 2:
            return f"({args[0]} {_INFIX[node.name]} {args[1]})"
        if node.name in _PREFIX and len(args) == 1:
            return f"{_PREFIX[node.name]}{args[0]}"
        name = str(node.dtype) if node.name == "cast" else node.name
        return f"{name}({', '.join(args)})"


def leaf_text(leaf: Leaf) -> str:
    """Returns the name of a variable with its selection: ``tos[0:12, :, 3]``."""
    whole = [(0, length, 1) for length in leaf.variable.shape]
    if list(leaf.takes) == whole:
        return leaf.variable.name
    each = [":" if take == all_ else _take_text(take) for take, all_ in zip(leaf.takes, whole)]
    return f"{leaf.variable.name}[{', '.join(each)}]"


def _take_text(take: Take) -> str:
    if isinstance(take, int):
        return str(take)
    if isinstance(take, IndexList):
        return f"{len(take)} picked"
    start, stop, step = take
    return f"{start}:{stop}" if step == 1 else f"{start}:{stop}:{step}"


def _constant_text(node: Const) -> str:
    value = node.scalar
    return f"<array {node.shape}>" if value is None else str(value)
