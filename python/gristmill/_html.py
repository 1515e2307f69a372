"""Arrays and files as HTML, for notebooks: readable on light and dark ground, and nothing in it is run."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ._layout import Held
from ._shown import ATTRIBUTES, NAME, NODES, TEXT, VARIABLES, Facts, attribute, of_array, of_arrays, others
from ._size import readable
from ._spoken import shortened

if TYPE_CHECKING:
    from ._array import Array
    from ._arrays import Arrays

#: Width of the longest bar, in pixels.
_BAR = 180

#: The colour of a bar: that of the notebook, or of the page, where it has one.
_COLOUR = "var(--jp-brand-color1, var(--vscode-charts-blue, var(--color-brand-primary, #2f7fc1)))"

_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top;background:none;border:none"
_NUMBER = _CELL.replace("left", "right") + ";font-variant-numeric:tabular-nums;white-space:nowrap"
_LABEL = _CELL + ";opacity:.65;font-weight:normal;white-space:nowrap"
_BOX = "display:inline-block;vertical-align:top;margin:0 32px 8px 0;max-width:100%;overflow-x:auto"
_TABLE = "border-collapse:collapse;border:none;margin:0;font-size:inherit"


def array(shown: Array) -> str:
    """An array."""
    facts = of_array(shown)
    return _page("gristmill.Array", facts, "")


def arrays(shown: Arrays) -> str:
    """A file with its variables and its attributes."""
    rows = []
    for name in list(shown)[:VARIABLES]:
        one = shown[name]
        dims = ", ".join(f"{shortened(dim, NAME)}: {length}" for dim, length in zip(one.dims, one.shape))
        rows.append(
            f'<tr><td style="{_CELL}"><code>{escape(shortened(name, NAME))}</code></td>'
            f'<td style="{_CELL}">({escape(dims)})</td><td style="{_CELL}">{escape(str(one.dtype))}</td>'
            f'<td style="{_NUMBER}">{readable(one.nbytes)}</td>'
            f'<td style="{_CELL}">chunks {escape(str(one.storage_chunks))}</td></tr>'
        )
    if len(shown) > VARIABLES:
        rows.append(f'<tr><td style="{_CELL}" colspan="5">… and {len(shown) - VARIABLES} more</td></tr>')
    table = f'<table style="{_TABLE}"><tbody>{"".join(rows)}</tbody></table>'
    pairs = "".join(
        f'<tr><th style="{_LABEL}">{escape(shortened(name, NAME))}</th>'
        f'<td style="{_CELL};white-space:pre-wrap">{escape(attribute(value))}</td></tr>'
        for name, value in list(shown.attrs.items())[:ATTRIBUTES]
    )
    if pairs:
        table += (
            f"<details><summary>Attributes: {len(shown.attrs)}</summary>"
            f'<table style="{_TABLE}"><tbody>{pairs}</tbody></table></details>'
        )
    return _page("gristmill.Arrays", of_arrays(shown), table)


def _page(head: str, facts: Facts, more: str) -> str:
    rows = "".join(
        f'<tr><th style="{_LABEL}">{escape(name)}</th>'
        f'<td style="{_CELL};overflow-wrap:anywhere">{escape(shortened(value, TEXT))}</td></tr>'
        for name, value in facts.lines
    )
    nodes = f'<div style="{_BOX}">{_nodes(facts.nodes)}</div>' if facts.nodes else ""
    return (
        '<div class="gristmill-repr" style="color:inherit;line-height:1.4">'
        f'<div style="margin-bottom:6px"><strong>{escape(head)}</strong> '
        f'<code style="background:none;color:inherit">{escape(facts.title)}</code></div>'
        f'<div style="{_BOX}"><table style="{_TABLE}"><tbody>{rows}</tbody></table></div>{nodes}{more}</div>'
    )


def _nodes(nodes: list[Held]) -> str:
    most = max(one.bytes for one in nodes)
    rows = []
    for one in nodes[:NODES]:
        width = max(1, round(_BAR * one.bytes / most))
        rows.append(
            f'<tr><td style="{_CELL}">{escape(shortened(one.node, NAME))}</td>'
            f'<td style="{_NUMBER}">{one.chunks}</td><td style="{_NUMBER}">{readable(one.bytes)}</td>'
            f'<td style="{_CELL}"><svg width="{_BAR}" height="10" role="img" aria-label="{readable(one.bytes)}">'
            f'<rect width="{_BAR}" height="10" rx="2" fill="currentColor" opacity=".12"/>'
            f'<rect width="{width}" height="10" rx="2" style="fill:{_COLOUR}"/></svg></td></tr>'
        )
    if len(nodes) > NODES:
        rows.append(f'<tr><td style="{_CELL}" colspan="4">{escape(others(nodes))}</td></tr>')
    head = "".join(
        f'<th style="{_NUMBER if name in ("chunks", "bytes") else _CELL};opacity:.65;font-weight:normal">{name}</th>'
        for name in ("storage node", "chunks", "bytes", "")
    )
    return f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
