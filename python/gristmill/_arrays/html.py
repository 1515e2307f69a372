"""Arrays and files as HTML for notebooks, for light and dark themes, without scripts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .._arguments.sizes import size_text
from .._variables.layout import TargetShare
from .descriptions import (
    ATTRIBUTES,
    NAME,
    NODES,
    TEXT,
    VARIABLES,
    Facts,
    array_facts,
    attribute_text,
    file_facts,
    further_nodes,
)
from .expression_text import shorten

if TYPE_CHECKING:
    from .array import Array
    from .file_arrays import Arrays

#: Width of the longest bar, in pixels.
_BAR = 180

#: Colour of a bar: the colour of the notebook or of the page, if it has one.
_COLOUR = "var(--jp-brand-color1, var(--vscode-charts-blue, var(--color-brand-primary, #2f7fc1)))"
_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top;background:none;border:none"
_NUMBER = _CELL.replace("left", "right") + ";font-variant-numeric:tabular-nums;white-space:nowrap"
_LABEL = _CELL + ";opacity:.65;font-weight:normal;white-space:nowrap"
_BOX = "display:inline-block;vertical-align:top;margin:0 32px 8px 0;max-width:100%;overflow-x:auto"
_TABLE = "border-collapse:collapse;border:none;margin:0;font-size:inherit"


def array_page(shown: Array) -> str:
    """Returns the HTML of an array."""
    facts = array_facts(shown)
    return _page("gristmill.Array", facts, "")


def file_page(shown: Arrays) -> str:
    """Returns the HTML of a file, with its variables and attributes."""
    rows = []
    for name in list(shown)[:VARIABLES]:
        one = shown[name]
        dims = ", ".join(f"{shorten(dim, NAME)}: {length}" for dim, length in zip(one.dims, one.shape))
        rows.append(
            f'<tr><td style="{_CELL}"><code>{escape(shorten(name, NAME))}</code></td>'
            f'<td style="{_CELL}">({escape(dims)})</td><td style="{_CELL}">{escape(str(one.dtype))}</td>'
            f'<td style="{_NUMBER}">{size_text(one.nbytes)}</td>'
            f'<td style="{_CELL}">chunks {escape(str(one.storage_chunks))}</td></tr>'
        )
    if len(shown) > VARIABLES:
        rows.append(f'<tr><td style="{_CELL}" colspan="5">… and {len(shown) - VARIABLES} more</td></tr>')
    table = f'<table style="{_TABLE}"><tbody>{"".join(rows)}</tbody></table>'
    pairs = "".join(
        f'<tr><th style="{_LABEL}">{escape(shorten(name, NAME))}</th>'
        f'<td style="{_CELL};white-space:pre-wrap">{escape(attribute_text(value))}</td></tr>'
        for name, value in list(shown.attrs.items())[:ATTRIBUTES]
    )
    if pairs:
        table += (
            f"<details><summary>Attributes: {len(shown.attrs)}</summary>"
            f'<table style="{_TABLE}"><tbody>{pairs}</tbody></table></details>'
        )
    return _page("gristmill.Arrays", file_facts(shown), table)


def _page(head: str, facts: Facts, more: str) -> str:
    rows = "".join(
        f'<tr><th style="{_LABEL}">{escape(name)}</th>'
        f'<td style="{_CELL};overflow-wrap:anywhere">{escape(shorten(value, TEXT))}</td></tr>'
        for name, value in facts.lines
    )
    nodes = f'<div style="{_BOX}">{_nodes(facts.nodes)}</div>' if facts.nodes else ""
    return (
        '<div class="gristmill-repr" style="color:inherit;line-height:1.4">'
        f'<div style="margin-bottom:6px"><strong>{escape(head)}</strong> '
        f'<code style="background:none;color:inherit">{escape(facts.title)}</code></div>'
        f'<div style="{_BOX}"><table style="{_TABLE}"><tbody>{rows}</tbody></table></div>{nodes}{more}</div>'
    )


def _nodes(nodes: list[TargetShare]) -> str:
    most = max(one.bytes for one in nodes)
    rows = []
    for one in nodes[:NODES]:
        width = max(1, round(_BAR * one.bytes / most))
        rows.append(
            f'<tr><td style="{_CELL}">{escape(shorten(one.node, NAME))}</td>'
            f'<td style="{_NUMBER}">{one.chunks}</td><td style="{_NUMBER}">{size_text(one.bytes)}</td>'
            f'<td style="{_CELL}"><svg width="{_BAR}" height="10" role="img" aria-label="{size_text(one.bytes)}">'
            f'<rect width="{_BAR}" height="10" rx="2" fill="currentColor" opacity=".12"/>'
            f'<rect width="{width}" height="10" rx="2" style="fill:{_COLOUR}"/></svg></td></tr>'
        )
    if len(nodes) > NODES:
        rows.append(f'<tr><td style="{_CELL}" colspan="4">{escape(further_nodes(nodes))}</td></tr>')
    head = "".join(
        f'<th style="{_NUMBER if name in ("chunks", "bytes") else _CELL};opacity:.65;font-weight:normal">{name}</th>'
        for name in ("storage node", "chunks", "bytes", "")
    )
    return f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
