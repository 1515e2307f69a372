"""What is said of arrays and files to people: facts and tables, as text. :mod:`._html` makes pages of the same."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ._errors import GristmillError
from ._evaluate import ends, evaluate
from ._layout import Held, Layout, layout_of, together
from ._size import readable
from ._spoken import MORE, shortened, spoken, variables

if TYPE_CHECKING:
    from ._array import Array
    from ._arrays import Arrays
    from ._expr import Leaf
    from ._source import Variable

#: Nodes, variables and attributes that are shown; variables of one expression.
NODES, VARIABLES, ATTRIBUTES, PARTS = 16, 200, 100, 4

#: Characters of a name and of an attribute that are shown.
NAME, TEXT = 200, 400

#: Elements of an array that are shown, and bytes of the chunks that are read for them.
ELEMENTS, READ = 100, 4 << 20

#: Characters of a bar.
_BAR = 24


@dataclass(frozen=True)
class Facts:
    """Something with a title, lines about it, and the nodes that have it."""

    title: str
    lines: list[tuple[str, str]]
    nodes: list[Held]


def of_array(array: Array) -> Facts:
    """What is known of an array; no element is read."""
    node = array._node
    leaves = variables(node)
    shape = ", ".join(f"{shortened(dim, NAME)}: {length}" for dim, length in zip(array.dims, array.shape))
    lines = [("shape", f"({shape})"), ("type", str(array.dtype)), ("bytes", readable(array.nbytes))]
    nodes: list[Held] = []
    for leaf in leaves[:PARTS]:
        lines += [("made of" if len(leaves) > 1 else "stored in", _place(leaf.variable)), *_stored(leaf.variable)]
    if len(leaves) > PARTS:
        lines.append(("made of", f"{len(leaves) - PARTS} more variables"))
    layouts = [layout for leaf in leaves[:PARTS] if (layout := layout_of(leaf.variable)) is not None]
    if layouts and any("://" in leaf.variable.source.url or layout.stripe_unit for leaf, layout in zip(leaves, layouts)):
        nodes = list(together(layouts).nodes.values())
    return Facts(spoken(node), lines, nodes)


def in_short(array: Array) -> str:
    """What an array is, and its elements if these are few: they are read."""
    head = f"<gristmill.Array {array.shape} {array.dtype}>"
    if array.size > ELEMENTS or sum(map(_to_read, variables(array._node))) > READ:
        return head
    try:
        # Nobody asked for them, so it is no fallback.
        return f"{head}\n{evaluate(array._node)}"
    except GristmillError:
        # It has a description wherever its elements are.
        return head


def _to_read(leaf: Leaf) -> int:
    """Bytes of the chunks of which some elements are taken."""
    most = leaf.variable.stored.itemsize
    for take, chunk, length in zip(leaf.takes, leaf.variable.chunks or leaf.variable.shape, leaf.variable.shape):
        chunk = max(chunk, 1)
        first, last = ends(take)
        most *= min(-(-last // chunk) * chunk, length) - first // chunk * chunk
    return most


def of_arrays(arrays: Arrays) -> Facts:
    """What is known of a file."""
    names = list(arrays)[:VARIABLES]
    found = [arrays.variable(name, decoded=False) for name in names]
    sizes = ", ".join(f"{shortened(dim, NAME)}: {length}" for dim, length in list(arrays.sizes.items())[:VARIABLES])
    lines = [("format", arrays.format)]
    if sizes:
        lines.append(("dimensions", sizes))
    layouts = [layout for one in found if (layout := layout_of(one)) is not None]
    every = together(layouts)
    lines.append(("stored", readable(every.stored_bytes)))
    if every.stripe_unit:
        lines.append(("stripes", readable(every.stripe_unit)))
    if arrays.left_out:
        lines.append(("left out", shortened(", ".join(arrays.left_out), TEXT)))
    remote = "://" in arrays._source.url or every.stripe_unit
    return Facts(arrays._source.url, lines, list(every.nodes.values()) if remote else [])


def _place(variable: Variable) -> str:
    return f"{shortened(variable.name, NAME)} of {shortened(variable.source.url, NAME)}"


def _stored(variable: Variable) -> list[tuple[str, str]]:
    """How a variable is stored."""
    layout = layout_of(variable)
    lines = [("chunks", _chunks(variable, layout)), ("compression", compression(variable))]
    if layout is not None:
        size = readable(layout.stored_bytes)
        whole = prod(variable.shape) * variable.stored.itemsize
        if layout.stored_bytes and whole > layout.stored_bytes:
            size += f", {whole / layout.stored_bytes:.1f} times less than {readable(whole)}"
        lines.append(("stored", size))
        if layout.stripe_unit and layout.held is not None:
            lines.append(("stripes", f"{readable(layout.stripe_unit)} on {count(len(layout.held), 'target')}"))
        elif layout.files > 1:
            lines.append(("files", str(layout.files)))
    return lines


def _chunks(variable: Variable, layout: Layout | None) -> str:
    size = readable(prod(variable.chunks) * variable.stored.itemsize)
    text = f"{variable.chunks} of {size}"
    if layout is None:
        return text
    all_ = prod(-(-length // max(chunk, 1)) for length, chunk in zip(variable.shape, variable.chunks))
    stored = "" if layout.stored_chunks >= all_ else f", {layout.stored_chunks} of them stored"
    return f"{all_} x {text}{stored}"


def compression(variable: Variable) -> str:
    """The filters of a variable."""
    filters = variable._about.get("filters") or ()
    return ", ".join(map(str, filters)) or "none"


def count(number: int, what: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def inline(array: Array, most: int) -> str:
    """One line for a table of variables: what it is, where it is, its chunks. No message is sent for it."""
    leaves = variables(array._node)
    text = "gristmill.Array"
    if not leaves:
        return shortened(text, most)
    variable = leaves[0].variable
    if len(leaves) > 1 or leaves[0] is not array._node:
        text += f" {spoken(array._node, max(most - 50, 24))}"
    return shortened(f"{text} {_where(variable)}, chunks {array.storage_chunks}", most)


def _where(variable: Variable) -> str:
    url = variable.source.url
    if "://" not in url:
        return f"in {url.rsplit('/', 1)[-1]}"
    if variable.source.opened.id is None:
        # A directory: which of its files lie where is a question.
        return f"on {url.split('://', 1)[1].split('/', 1)[0] or 'a cluster'}"
    layout = layout_of(variable)
    if layout is None or layout.held is None:
        return "on storage nodes"
    return f"on {count(len(layout.nodes), 'node')}"


def text(facts: Facts, head: str) -> str:
    """Facts as lines, with a bar for each node."""
    lines = [f"{head} {facts.title}", *(f"  {name:<12} {value}" for name, value in facts.lines)]
    most = max((one.bytes for one in facts.nodes), default=0)
    width = max((len(one.node) for one in facts.nodes[:NODES]), default=0)
    for at, one in enumerate(facts.nodes[:NODES]):
        bar = "█" * max(1, round(_BAR * one.bytes / most))
        lines.append(f"  {'' if at else 'nodes':<12} {one.node:<{width}} {readable(one.bytes):>11}  {bar}")
    if len(facts.nodes) > NODES:
        lines.append(f"  {'':<12} {others(facts.nodes)}")
    return "\n".join(lines)


def others(nodes: list[Held]) -> str:
    """A line for the nodes that have no line."""
    rest = [one.bytes for one in nodes[NODES:]]
    return f"{MORE} and {count(len(rest), 'node')} more, {readable(min(rest))} to {readable(max(rest))} each"


def attribute(value: Any) -> str:
    """An attribute, shortly."""
    # Of an array the first elements: it may be a long one.
    if hasattr(value, "ravel") and getattr(value, "size", 0) > ATTRIBUTES:
        value = value.ravel()[:ATTRIBUTES].tolist()
    return shortened(str(value), TEXT)
