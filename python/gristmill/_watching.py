"""Requests that are under way in this process: giving them up, and whoever looks at how far they are."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from . import _gristmill, _progress
from ._errors import GristmillError, TimedOut

if TYPE_CHECKING:
    from collections.abc import Iterable

_T = TypeVar("_T")
_R = TypeVar("_R")

_lock = threading.Lock()
_under_way: dict[_gristmill.Watch, int] = {}

#: Threads that are to ask nothing more for what they are at: their computation was given up.
_given_up: set[int] = set()

_HERE = os.path.dirname(__file__)


class _Together:
    """Requests that are given up together."""

    def __init__(self) -> None:
        self._watches: set[_gristmill.Watch] = set()
        self._over = False

    def add(self, watch: _gristmill.Watch) -> None:
        with _lock:
            self._watches.add(watch)
            over = self._over
        if over:
            watch.stop()

    def stop(self) -> None:
        with _lock:
            self._over = True
            watches = list(self._watches)
        for watch in watches:
            watch.stop()


_together: contextvars.ContextVar[_Together | None] = contextvars.ContextVar("gristmill_together", default=None)


@contextmanager
def watching() -> Iterator[_gristmill.Watch]:
    """A request that is begun with what it gives can be seen, and given up by others than its own thread: it then raises
    ``KeyboardInterrupt``, as that is why."""
    thread = threading.get_ident()
    with _lock:
        if thread in _given_up:
            _given_up.discard(thread)
            raise KeyboardInterrupt
    watch = _gristmill.Watch(_progress.look)
    together = _together.get()
    if together is not None:
        together.add(watch)
    with _lock:
        _under_way[watch] = thread
    _progress.begins(watch)
    whole = False
    try:
        yield watch
        whole = True
    except TimedOut:
        # It is given up as well, but not by anybody else.
        raise
    except GristmillError:
        if watch.stopped:
            # Nothing else is to be asked instead of it.
            raise KeyboardInterrupt from None
        raise
    finally:
        with _lock:
            _under_way.pop(watch, None)
        _progress.ends(watch, whole)


def in_threads(pool: Any, function: Callable[[_T], _R], each: Iterable[_T]) -> Iterator[_R]:
    """``pool.map``, of which nothing is left under way when one fails or Ctrl-C is pressed."""
    together = _Together()
    before = _together.set(together)
    try:
        futures = [pool.submit(contextvars.copy_context().run, function, one) for one in each]
        for future in futures:
            yield future.result()
    except BaseException:
        together.stop()
        raise
    finally:
        _together.reset(before)


def give_up_other_threads() -> None:
    """Gives up what other threads asked for, and what those that are in this package are about to ask, for others' answers
    perhaps: nobody waits for their results any more."""
    here = threading.get_ident()
    inside = {thread for thread, frame in sys._current_frames().items() if thread != here and _is_inside(frame)}
    with _lock:
        watches = [watch for watch, thread in _under_way.items() if thread != here]
        _given_up.update(inside - set(_under_way.values()))
    for watch in watches:
        watch.stop()


def begin_again() -> None:
    """Another computation begins, with the same threads perhaps."""
    with _lock:
        _given_up.clear()


def _is_inside(frame: FrameType | None) -> bool:
    while frame is not None:
        if os.path.dirname(frame.f_code.co_filename) == _HERE:
            return True
        frame = frame.f_back
    return False


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _under_way.clear()
    _given_up.clear()


os.register_at_fork(after_in_child=_after_fork)
