"""Where variables lie: storage nodes, stripes and stored chunks, as far as that is known without reading an element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ._errors import GristmillError

if TYPE_CHECKING:
    from ._source import Source, Variable


@dataclass(frozen=True)
class Held:
    """What one target holds of a variable."""

    #: ``HOST:PORT`` of its node, or a directory of this machine.
    node: str
    #: Its number in the cluster.
    target: int | None
    #: Chunks, whole or in part, and those that are whole there.
    chunks: int
    whole: int
    #: Stored bytes.
    bytes: int


@dataclass(frozen=True)
class Layout:
    """How a variable is stored."""

    #: Bytes of a stripe of its file; ``None`` for a plain file, and for several files.
    stripe_unit: int | None
    #: Files that it lies in.
    files: int
    #: Chunks that are stored, and their bytes as they are stored.
    stored_chunks: int
    stored_bytes: int
    #: What each target has, in the order of the layout; ``None`` where that is not known, or would be long in finding out.
    held: tuple[Held, ...] | None

    @property
    def nodes(self) -> dict[str, Held]:
        """What each node has that has some of it; several targets of one together."""
        found: dict[str, Held] = {}
        for one in self.held or ():
            if one.bytes:
                before = found.get(one.node)
                found[one.node] = one if before is None else _both(before, one)
        return found


def _both(a: Held, b: Held) -> Held:
    return Held(a.node, None, a.chunks + b.chunks, a.whole + b.whole, a.bytes + b.bytes)


_known: WeakKeyDictionary[Source, dict[str, Layout]] = WeakKeyDictionary()
#: Those whose nodes did not say: a picture of an array is not worth waiting for them again.
_silent: WeakKeyDictionary[Source, bool] = WeakKeyDictionary()


def layout_of(variable: Variable) -> Layout | None:
    """How a variable is stored; ``None`` if its nodes cannot be asked. It costs one message at most, once."""
    source, name = variable.source, variable.name
    known = _known.setdefault(source, {})
    if name not in known:
        if source in _silent:
            return None
        try:
            found = source.asked(lambda opened: opened.layout(name))
        except GristmillError:
            _silent[source] = True
            return None
        targets = found.pop("targets")
        held = None if targets is None else tuple(Held(node, *rest) for node, rest in _turned(targets))
        known[name] = Layout(held=held, **found)
    return known[name]


def _turned(
    targets: list[tuple[int | None, str, int, int, int]],
) -> list[tuple[str, tuple[int | None, int, int, int]]]:
    return [(node, (number, *shares)) for number, node, *shares in targets]  # type: ignore[misc]


def together(layouts: list[Layout]) -> Layout:
    """Several variables as one."""
    held = None
    if all(one.held is not None for one in layouts):
        held = tuple(part for one in layouts for part in one.nodes.values())
    units = {one.stripe_unit for one in layouts}
    return Layout(
        units.pop() if len(units) == 1 else None,
        max((one.files for one in layouts), default=0),
        sum(one.stored_chunks for one in layouts),
        sum(one.stored_bytes for one in layouts),
        held,
    )
