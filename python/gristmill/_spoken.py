"""Trees as people read them: short, and bounded however large a tree is."""

from __future__ import annotations

from ._canonical import _BINARY, _LOGIC
from ._expr import Apply, Const, Leaf, Node, Opaque, Picked, Take, Windows

#: Characters of an expression that are shown.
SHOWN = 160

#: Parts of a tree that are looked at, and levels.
PARTS, LEVELS = 200, 16

#: What stands for what is left out.
MORE = "…"

_INFIX = {**_BINARY, **_LOGIC, "bitwise_xor": "^"}
_PREFIX = {"negative": "-", "invert": "~", "logical_not": "~"}


def spoken(node: Node, most: int = SHOWN) -> str:
    """An expression with the names of its variables."""
    text = _Speaker().say(node, 0)
    if text.startswith("(") and isinstance(node, Apply) and node.name in _INFIX:
        text = text[1:-1]
    return shortened(text, most)


def shortened(text: str, most: int) -> str:
    """At most so many characters."""
    return text if len(text) <= most else text[: max(most - len(MORE), 0)] + MORE


def variables(node: Node) -> list[Leaf]:
    """A part of each variable that a tree is made of, in the order of their occurrence."""
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


class _Speaker:
    def __init__(self) -> None:
        self.left = PARTS

    def say(self, node: Node, level: int) -> str:
        self.left -= 1
        if self.left < 0 or level > LEVELS:
            return MORE
        if isinstance(node, Leaf):
            return taken(node)
        if isinstance(node, Const):
            return _constant(node)
        if isinstance(node, Windows):
            lengths = ", ".join(str(length) for length in node.split if length is not None)
            return f"windows({self.say(node.of, level + 1)}, {lengths})"
        if not isinstance(node, (Apply, Opaque)):
            return type(node).__name__
        args = [self.say(arg, level + 1) for arg in node.args]
        if node.name in _INFIX and len(args) == 2:
            return f"({args[0]} {_INFIX[node.name]} {args[1]})"
        if node.name in _PREFIX and len(args) == 1:
            return f"{_PREFIX[node.name]}{args[0]}"
        name = str(node.dtype) if node.name == "cast" else node.name
        return f"{name}({', '.join(args)})"


def taken(leaf: Leaf) -> str:
    """A variable and what is taken of it: ``tos[0:12, :, 3]``."""
    whole = [(0, length, 1) for length in leaf.variable.shape]
    if list(leaf.takes) == whole:
        return leaf.variable.name
    each = [":" if take == all_ else _take(take) for take, all_ in zip(leaf.takes, whole)]
    return f"{leaf.variable.name}[{', '.join(each)}]"


def _take(take: Take) -> str:
    if isinstance(take, int):
        return str(take)
    if isinstance(take, Picked):
        return f"{len(take)} picked"
    start, stop, step = take
    return f"{start}:{stop}" if step == 1 else f"{start}:{stop}:{step}"


def _constant(node: Const) -> str:
    value = node.scalar
    return f"<array {node.shape}>" if value is None else str(value)
