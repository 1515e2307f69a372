"""Descriptions of arrays and files for people, as text. :mod:`.html` makes HTML of the same facts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from .._arguments.sizes import size_text
from .._errors import GristmillError
from .._expressions.evaluation import evaluate, take_bounds
from .._variables.layout import Layout, TargetShare, find_layout, merge_layouts
from .expression_text import LEFT_OUT, expression_text, shorten, variables

if TYPE_CHECKING:
    from .._expressions.nodes import Leaf
    from .._variables.variable import Variable
    from .array import Array
    from .file_arrays import Arrays

#: Most nodes, variables and attributes that are shown, and most variables of one expression.
NODES, VARIABLES, ATTRIBUTES, PARTS = 16, 200, 100, 4

#: Most characters of a name and of an attribute.
NAME, TEXT = 200, 400

#: Most elements that are shown, and most bytes of the chunks that are read for them.
ELEMENTS, READ = 100, 4 << 20

#: Characters of the longest bar.
_BAR = 24


@dataclass(frozen=True)
class Facts:
    """A description: a title, lines, and the nodes that store the data."""

    title: str
    lines: list[tuple[str, str]]
    nodes: list[TargetShare]


def array_facts(array: Array) -> Facts:
    """Returns the description of an array. No element is read."""
    node = array._node
    leaves = variables(node)
    shape = ", ".join(f"{shorten(dim, NAME)}: {length}" for dim, length in zip(array.dims, array.shape))
    lines = [("shape", f"({shape})"), ("type", str(array.dtype)), ("bytes", size_text(array.nbytes))]
    nodes: list[TargetShare] = []
    for leaf in leaves[:PARTS]:
        label = "made of" if len(leaves) > 1 else "stored in"
        lines += [(label, _variable_text(leaf.variable)), *_storage_lines(leaf.variable)]
    if len(leaves) > PARTS:
        lines.append(("made of", f"{len(leaves) - PARTS} more variables"))
    layouts = [layout for leaf in leaves[:PARTS] if (layout := find_layout(leaf.variable)) is not None]
    on_nodes = ("://" in leaf.variable.source.url or layout.stripe_unit for leaf, layout in zip(leaves, layouts))
    if layouts and any(on_nodes):
        nodes = list(merge_layouts(layouts).nodes.values())
    return Facts(expression_text(node), lines, nodes)


def short_text(array: Array) -> str:
    """Returns the shape and the type of an array, and its elements if there are few. These are read."""
    head = f"<gristmill.Array {array.shape} {array.dtype}>"
    if array.size > ELEMENTS or sum(map(_bytes_to_read, variables(array._node))) > READ:
        return head
    try:
        # The user did not ask for the elements, so this is no fallback.
        return f"{head}\n{evaluate(array._node)}"
    except GristmillError:
        # An array has a text even if its elements cannot be read.
        return head


def _bytes_to_read(leaf: Leaf) -> int:
    """Returns the bytes of the chunks that contain selected elements."""
    most = leaf.variable.stored.itemsize
    for take, chunk, length in zip(leaf.takes, leaf.variable.chunks or leaf.variable.shape, leaf.variable.shape):
        chunk = max(chunk, 1)
        first, last = take_bounds(take)
        most *= min(-(-last // chunk) * chunk, length) - first // chunk * chunk
    return most


def file_facts(arrays: Arrays) -> Facts:
    """Returns the description of a file."""
    names = list(arrays)[:VARIABLES]
    found = [arrays.variable(name, decoded=False) for name in names]
    sizes = ", ".join(f"{shorten(dim, NAME)}: {length}" for dim, length in list(arrays.sizes.items())[:VARIABLES])
    lines = [("format", arrays.format)]
    if sizes:
        lines.append(("dimensions", sizes))
    layouts = [layout for one in found if (layout := find_layout(one)) is not None]
    every = merge_layouts(layouts)
    lines.append(("stored", size_text(every.stored_bytes)))
    if every.stripe_unit:
        lines.append(("stripes", size_text(every.stripe_unit)))
    if arrays.left_out:
        lines.append(("left out", shorten(", ".join(arrays.left_out), TEXT)))
    remote = "://" in arrays._source.url or every.stripe_unit
    return Facts(arrays._source.url, lines, list(every.nodes.values()) if remote else [])


def _variable_text(variable: Variable) -> str:
    return f"{shorten(variable.name, NAME)} of {shorten(variable.source.url, NAME)}"


def _storage_lines(variable: Variable) -> list[tuple[str, str]]:
    """Returns lines about how a variable is stored."""
    layout = find_layout(variable)
    lines = [("chunks", _chunks_text(variable, layout)), ("compression", compression_text(variable))]
    if layout is not None:
        size = size_text(layout.stored_bytes)
        whole = prod(variable.shape) * variable.stored.itemsize
        if layout.stored_bytes and whole > layout.stored_bytes:
            size += f", {whole / layout.stored_bytes:.1f} times less than {size_text(whole)}"
        lines.append(("stored", size))
        if layout.stripe_unit and layout.shares is not None:
            lines.append(("stripes", f"{size_text(layout.stripe_unit)} on {count_text(len(layout.shares), 'target')}"))
        elif layout.files > 1:
            lines.append(("files", str(layout.files)))
    return lines


def _chunks_text(variable: Variable, layout: Layout | None) -> str:
    size = size_text(prod(variable.chunks) * variable.stored.itemsize)
    text = f"{variable.chunks} of {size}"
    if layout is None:
        return text
    all_ = prod(-(-length // max(chunk, 1)) for length, chunk in zip(variable.shape, variable.chunks))
    stored = "" if layout.stored_chunks >= all_ else f", {layout.stored_chunks} of them stored"
    return f"{all_} x {text}{stored}"


def compression_text(variable: Variable) -> str:
    """Returns the names of the filters of a variable."""
    filters = variable._about.get("filters") or ()
    return ", ".join(map(str, filters)) or "none"


def count_text(number: int, what: str) -> str:
    """Returns a number with a noun: ``1 node``, ``2 nodes``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def inline_text(array: Array, most: int) -> str:
    """Returns a line for a table of variables: expression, location, chunks.

    Sends at most one message for a variable.
    """
    leaves = variables(array._node)
    text = "gristmill.Array"
    if not leaves:
        return shorten(text, most)
    variable = leaves[0].variable
    if len(leaves) > 1 or leaves[0] is not array._node:
        text += f" {expression_text(array._node, max(most - 50, 24))}"
    return shorten(f"{text} {_location_text(variable)}, chunks {array.storage_chunks}", most)


def _location_text(variable: Variable) -> str:
    url = variable.source.url
    if "://" not in url:
        return f"in {url.rsplit('/', 1)[-1]}"
    if variable.source.opened.id is None:
        # Finding the nodes of the files of a directory needs a request.
        return f"on {url.split('://', 1)[1].split('/', 1)[0] or 'a cluster'}"
    layout = find_layout(variable)
    if layout is None or layout.shares is None:
        return "on storage nodes"
    return f"on {count_text(len(layout.nodes), 'node')}"


def facts_text(facts: Facts, head: str) -> str:
    """Formats a description as lines, with a bar for each node."""
    lines = [f"{head} {facts.title}", *(f"  {name:<12} {value}" for name, value in facts.lines)]
    most = max((one.bytes for one in facts.nodes), default=0)
    width = max((len(one.node) for one in facts.nodes[:NODES]), default=0)
    for at, one in enumerate(facts.nodes[:NODES]):
        bar = "█" * max(1, round(_BAR * one.bytes / most))
        lines.append(f"  {'' if at else 'nodes':<12} {one.node:<{width}} {size_text(one.bytes):>11}  {bar}")
    if len(facts.nodes) > NODES:
        lines.append(f"  {'':<12} {further_nodes(facts.nodes)}")
    return "\n".join(lines)


def further_nodes(nodes: list[TargetShare]) -> str:
    """Returns a line for the nodes that have no line of their own."""
    rest = [one.bytes for one in nodes[NODES:]]
    return f"{LEFT_OUT} and {count_text(len(rest), 'node')} more, {size_text(min(rest))} to {size_text(max(rest))} each"


def attribute_text(value: Any) -> str:
    """Returns the text of an attribute, cut to a bound."""
    # An array may be long, so only its first elements are shown.
    if hasattr(value, "ravel") and getattr(value, "size", 0) > ATTRIBUTES:
        value = value.ravel()[:ATTRIBUTES].tolist()
    return shorten(str(value), TEXT)
