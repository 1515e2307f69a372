"""Requests about many blocks of one array of dask at once.

A graph reduces its blocks one by one, in several threads. The first requests are about one block, later ones about
two, four and so on (:class:`BoxTree` has these boxes). A request is never about more blocks than twice the blocks
that were needed so far. So a graph of few blocks costs little, and a graph of ten thousand blocks needs some dozens
of requests. The bits of the answer about a block do not depend on the other blocks of the request.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._errors import GristmillError
from .._expressions.blocks import BlockBox, BlockIndex, BoxTree
from . import block_boxes
from .block_boxes import BlockQuestion
from .canonical import Canonical
from .not_pushed import NotPushed

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Most families that are kept, and most bytes of their answers.
MAX_FAMILIES = 64
MAX_BYTES = 64 << 20

#: Bytes that a block of a kept answer takes, besides its numbers.
BLOCK_BYTES = 300

#: Seconds after which a waiting thread checks that the thread that sends the request still exists.
PATIENCE = 10.0


@dataclass(eq=False)
class BoxRequest:
    """A box of blocks with its request, which is running or has ended."""

    box: BlockBox
    thread: threading.Thread
    done: threading.Event = field(default_factory=threading.Event)
    #: The answer; ``None`` if the request failed or is running.
    found: dict[str, NDArray[Any]] | None = None
    bytes: int = 0


class Family:
    """The requests about the blocks of one array that differ only in the block."""

    def __init__(self, question: BlockQuestion) -> None:
        self.question = question
        self.tree: BoxTree = question.tree()
        self.known: dict[BlockIndex, BoxRequest] = {}
        #: Blocks that were needed, and the number of requested blocks. Here and below a block is a unit of blocks; see
        #: ``BlockQuestion.unit``.
        self.needed: set[BlockIndex] = set()
        self.asked = 0
        #: Boxes of which at least a part was requested.
        self.begun: set[tuple[int, BlockIndex]] = set()
        #: Blocks whose request failed. They are reduced one by one.
        self.failed: set[BlockIndex] = set()


class _AnswerStore:
    """All families of a process. Its lock is never held while a thread waits for an answer."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.families: OrderedDict[Hashable, Family] = OrderedDict()
        #: Answers, with the most recently used ones at the end.
        self.kept: OrderedDict[BoxRequest, Family] = OrderedDict()
        self.bytes = 0

    def family(self, key: Hashable, form: Callable[[], BlockQuestion]) -> Family:
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

    def begin(self, family: Family, place: BlockIndex) -> BoxRequest:
        """Chooses the box to request: the largest box around a block that has no requested block and is not too
        large."""
        most = 2 * len(family.needed) - family.asked
        box, levels = family.tree.box(0, place), len(family.tree.sizes)
        for level in range(1, levels):
            larger = family.tree.box(level, place)
            if larger.volume > most or (level, larger.first) in family.begun or not family.question.fits(larger):
                break
            box = larger
        asked = BoxRequest(box, threading.current_thread())
        family.asked += box.volume
        family.known.update(dict.fromkeys(box.indices(), asked))
        family.begun.update((level, family.tree.box(level, box.first).first) for level in range(box.level, levels))
        return asked

    def keep(self, family: Family, asked: BoxRequest, found: dict[str, NDArray[Any]]) -> None:
        asked.found = found
        asked.bytes = sum(values.nbytes for values in found.values()) + BLOCK_BYTES * asked.box.volume
        self.kept[asked] = family
        self.bytes += asked.bytes
        while self.bytes > MAX_BYTES and len(self.kept) > 1:
            old, owner = next(iter(self.kept.items()))
            self.drop(owner, old)

    def drop(self, family: Family, asked: BoxRequest) -> None:
        if self.kept.pop(asked, None) is not None:
            self.bytes -= asked.bytes
        for place in asked.box.indices():
            if family.known.get(place) is asked:
                del family.known[place]


_store = _AnswerStore()


def forget() -> None:
    """Drops all answers. A forked child does this, because a thread of the parent may hold the lock."""
    global _store
    _store = _AnswerStore()


os.register_at_fork(after_in_child=forget)


def remembered_answer(
    what: Canonical, op: str, reduced: set[int], windows: dict[int, int], skipna: bool
) -> dict[str, NDArray[Any]] | None:
    """Returns the arrays of a kept answer about a block, or ``None``."""
    found = block_boxes.find_block_question(what, op, reduced, windows, skipna)
    if found is None:
        return None
    key, place, _ = found
    with _store.lock:
        family = _store.families.get(key)
        asked = family and family.known.get(family.question.unit(place))
    return family.question.part(asked.found, asked.box, place) if family and asked and asked.found is not None else None


def answer_for_block(
    what: Canonical, op: str, reduced: set[int], windows: dict[int, int], skipna: bool
) -> dict[str, NDArray[Any]] | None:
    """Returns the arrays of an answer about a block, as :func:`asking.ask` does.

    Returns ``None`` if the block needs a request of its own.
    """
    found = block_boxes.find_block_question(what, op, reduced, windows, skipna)
    if found is None:
        return None
    key, place, form = found
    store = _store
    while True:
        with store.lock:
            family = store.family(key, form)
            unit = family.question.unit(place)
            if unit in family.failed:
                return None
            family.needed.add(unit)
            asked = family.known.get(unit)
            if asked is None:
                asked = store.begin(family, unit)
                break
            if asked in store.kept:
                store.kept.move_to_end(asked)
        while not asked.done.wait(PATIENCE) and asked.thread.is_alive():
            pass
        if asked.found is not None:
            return family.question.part(asked.found, asked.box, place)
        with store.lock:
            store.drop(family, asked)
    arrays = None
    try:
        arrays = family.question.ask(asked.box)
    except (GristmillError, NotPushed):
        # Another block of the box may be the reason.
        pass
    finally:
        with store.lock:
            if arrays is None:
                family.failed.add(unit)
                store.drop(family, asked)
            else:
                store.keep(family, asked, arrays)
        asked.done.set()
    return None if arrays is None else family.question.part(arrays, asked.box, place)
