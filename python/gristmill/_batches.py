"""Questions about the blocks of one array of dask, asked for many blocks at once.

A graph reduces its blocks one by one, from several threads. The first questions are about one block, the next about two, four
and so on (:class:`Tree` says which): never about more than twice as many blocks as were needed so far, so a graph of few blocks
costs little, and one of ten thousand some dozens of requests. The bits of an answer about a block do not depend on what was
asked with it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _box
from ._blocks import Box, Place, Tree
from ._box import Form
from ._canonical import Canonical, NotPushed
from ._errors import GristmillError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Families whose answers are kept, and the bytes of all these answers.
MAX_FAMILIES = 64
MAX_BYTES = 64 << 20

#: What a block of an answer that is kept takes besides its numbers, in bytes.
BLOCK_BYTES = 300

#: Longest that a thread sleeps before it looks whether the one that it waits for is still there, in seconds.
PATIENCE = 10.0


@dataclass(eq=False)
class Asked:
    """A box of blocks that some thread asks for, or asked for."""

    box: Box
    by: threading.Thread
    done: threading.Event = field(default_factory=threading.Event)
    #: The answer; ``None`` if there is none, or none yet.
    found: dict[str, NDArray[Any]] | None = None
    bytes: int = 0


class Family:
    """What was asked about the blocks of one array in one form, and how far ahead."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.tree: Tree = form.tree()
        self.known: dict[Place, Asked] = {}
        #: Blocks that were needed, and how many were asked for: here and below blocks are those of a unit; see ``Form.unit``.
        self.needed: set[Place] = set()
        self.asked = 0
        #: Boxes of which a part was asked for.
        self.begun: set[tuple[int, Place]] = set()
        #: Blocks that are not to be asked for here: the request about them failed.
        self.failed: set[Place] = set()


class _Store:
    """All families of a process. Its lock is held to look things up, never while somebody waits."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.families: OrderedDict[Hashable, Family] = OrderedDict()
        #: Answers, those that were used last at the end.
        self.kept: OrderedDict[Asked, Family] = OrderedDict()
        self.bytes = 0

    def family(self, key: Hashable, form: Callable[[], Form]) -> Family:
        family = self.families.get(key)
        if family is not None:
            self.families.move_to_end(key)
            return family
        family = self.families[key] = Family(form())
        if len(self.families) > MAX_FAMILIES:
            _, old = self.families.popitem(last=False)
            for asked in {id(one): one for one in old.known.values()}.values():
                self.drop(old, asked)
        return family

    def begin(self, family: Family, place: Place) -> Asked:
        """Chooses the box to ask for: the largest one around a block of which nothing was asked for, and not too many blocks
        are."""
        most = 2 * len(family.needed) - family.asked
        box, levels = family.tree.box(0, place), len(family.tree.sizes)
        for level in range(1, levels):
            larger = family.tree.box(level, place)
            if larger.volume > most or (level, larger.first) in family.begun or not family.form.fits(larger):
                break
            box = larger
        asked = Asked(box, threading.current_thread())
        family.asked += box.volume
        family.known.update(dict.fromkeys(box.places(), asked))
        family.begun.update((level, family.tree.box(level, box.first).first) for level in range(box.level, levels))
        return asked

    def keep(self, family: Family, asked: Asked, found: dict[str, NDArray[Any]]) -> None:
        asked.found = found
        asked.bytes = sum(values.nbytes for values in found.values()) + BLOCK_BYTES * asked.box.volume
        self.kept[asked] = family
        self.bytes += asked.bytes
        while self.bytes > MAX_BYTES and len(self.kept) > 1:
            old, of = next(iter(self.kept.items()))
            self.drop(of, old)

    def drop(self, family: Family, asked: Asked) -> None:
        if self.kept.pop(asked, None) is not None:
            self.bytes -= asked.bytes
        for place in asked.box.places():
            if family.known.get(place) is asked:
                del family.known[place]


_store = _Store()


def forget() -> None:
    """Forgets all answers. A forked child does: a lock may be held by a thread that it does not have."""
    global _store
    _store = _Store()


os.register_at_fork(after_in_child=forget)


def known(
    what: Canonical, op: str, reduced: set[int], windows: dict[int, int], skipna: bool
) -> dict[str, NDArray[Any]] | None:
    """The arrays of an answer about a block that is remembered, or ``None``."""
    found = _box.form_of(what, op, reduced, windows, skipna)
    if found is None:
        return None
    key, place, _ = found
    with _store.lock:
        family = _store.families.get(key)
        asked = family and family.known.get(family.form.unit(place))
    return family.form.part(asked.found, asked.box, place) if family and asked and asked.found is not None else None


def of_block(
    what: Canonical, op: str, reduced: set[int], windows: dict[int, int], skipna: bool
) -> dict[str, NDArray[Any]] | None:
    """The arrays of an answer about a block, as :func:`gristmill._ask.ask` gives them; ``None`` where the block is to be
    asked about alone."""
    found = _box.form_of(what, op, reduced, windows, skipna)
    if found is None:
        return None
    key, place, form = found
    store = _store
    while True:
        with store.lock:
            family = store.family(key, form)
            unit = family.form.unit(place)
            if unit in family.failed:
                return None
            family.needed.add(unit)
            asked = family.known.get(unit)
            if asked is None:
                asked = store.begin(family, unit)
                break
            if asked in store.kept:
                store.kept.move_to_end(asked)
        while not asked.done.wait(PATIENCE) and asked.by.is_alive():
            pass
        if asked.found is not None:
            return family.form.part(asked.found, asked.box, place)
        with store.lock:
            store.drop(family, asked)
    arrays = None
    try:
        arrays = family.form.ask(asked.box)
    except (GristmillError, NotPushed):
        # A block beside it may be at fault.
        pass
    finally:
        with store.lock:
            if arrays is None:
                family.failed.add(unit)
                store.drop(family, asked)
            else:
                store.keep(family, asked, arrays)
        asked.done.set()
    return None if arrays is None else family.form.part(arrays, asked.box, place)
