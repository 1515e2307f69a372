"""Where variables are stored: nodes, stripes and chunks. No element is read for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from .._errors import GristmillError

if TYPE_CHECKING:
    from .source import Source
    from .variable import Variable


@dataclass(frozen=True)
class TargetShare:
    """The part of a variable that one target holds."""

    #: ``HOST:PORT`` of the node, or a directory of this machine.
    node: str
    #: Number of the target in the cluster.
    target: int | None
    #: Chunks of which the target holds at least a part, and chunks that it holds completely.
    chunks: int
    whole: int
    #: Stored bytes on the target.
    bytes: int


@dataclass(frozen=True)
class Layout:
    """The layout of a variable."""

    #: Bytes of a stripe; ``None`` for a plain file and for several files.
    stripe_unit: int | None
    #: Number of files that hold the variable.
    files: int
    #: Stored chunks, and their bytes after compression.
    stored_chunks: int
    stored_bytes: int
    #: Share of each target, in the order of the layout. ``None`` if it is unknown or takes long to find out.
    shares: tuple[TargetShare, ...] | None

    @property
    def nodes(self) -> dict[str, TargetShare]:
        """Shares by node. The targets of a node are added."""
        found: dict[str, TargetShare] = {}
        for one in self.shares or ():
            if one.bytes:
                before = found.get(one.node)
                found[one.node] = one if before is None else _add_shares(before, one)
        return found


def _add_shares(a: TargetShare, b: TargetShare) -> TargetShare:
    return TargetShare(a.node, None, a.chunks + b.chunks, a.whole + b.whole, a.bytes + b.bytes)


_layouts: WeakKeyDictionary[Source, dict[str, Layout]] = WeakKeyDictionary()

#: Files whose nodes did not answer. Showing an array does not wait for them again.
_silent: WeakKeyDictionary[Source, bool] = WeakKeyDictionary()


def find_layout(variable: Variable) -> Layout | None:
    """Returns the layout of a variable, or ``None`` if its nodes do not answer. Sends at most one message, once."""
    source, name = variable.source, variable.name
    known = _layouts.setdefault(source, {})
    if name not in known:
        if source in _silent:
            return None
        try:
            found = source.query(lambda opened: opened.layout(name))
        except GristmillError:
            _silent[source] = True
            return None
        targets = found.pop("targets")
        shares = None if targets is None else tuple(TargetShare(node, *rest) for node, rest in _named_shares(targets))
        known[name] = Layout(shares=shares, **found)
    return known[name]


def _named_shares(
    targets: list[tuple[int | None, str, int, int, int]],
) -> list[tuple[str, tuple[int | None, int, int, int]]]:
    return [(node, (number, *shares)) for number, node, *shares in targets]  # type: ignore[misc]


def merge_layouts(layouts: list[Layout]) -> Layout:
    """Adds the layouts of several variables."""
    shares = None
    if all(one.shares is not None for one in layouts):
        shares = tuple(part for one in layouts for part in one.nodes.values())
    units = {one.stripe_unit for one in layouts}
    return Layout(
        units.pop() if len(units) == 1 else None,
        max((one.files for one in layouts), default=0),
        sum(one.stored_chunks for one in layouts),
        sum(one.stored_bytes for one in layouts),
        shares,
    )
