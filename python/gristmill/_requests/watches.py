"""Running requests of this process, and how they are given up."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _gristmill
from .._errors import GristmillError, TimedOut
from . import progress

if TYPE_CHECKING:
    from collections.abc import Iterable

_T = TypeVar("_T")
_R = TypeVar("_R")
_lock = threading.Lock()
_under_way: dict[_gristmill.Watch, int] = {}

#: Threads whose computation was given up. Their next request raises ``KeyboardInterrupt``.
_given_up: set[int] = set()
#: The folder of the whole package, with a separator at its end.
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


class _RequestGroup:
    """A group of requests that are given up together."""

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


_current_group: contextvars.ContextVar[_RequestGroup | None] = contextvars.ContextVar(
    "gristmill_request_group", default=None
)


@contextmanager
def watching() -> Iterator[_gristmill.Watch]:
    """Registers a request for the time of a ``with`` block and gives the watch that the request needs.

    Other threads can then see its progress, and give it up. It raises ``KeyboardInterrupt`` if another thread gives
    it up.
    """
    thread = threading.get_ident()
    with _lock:
        if thread in _given_up:
            _given_up.discard(thread)
            raise KeyboardInterrupt
    watch = _gristmill.Watch(progress.look)
    together = _current_group.get()
    if together is not None:
        together.add(watch)
    with _lock:
        _under_way[watch] = thread
    progress.begin(watch)
    whole = False
    try:
        yield watch
        whole = True
    except TimedOut:
        # The request stops its own watch at a time-out.
        raise
    except GristmillError:
        if watch.stopped:
            # Not a GristmillError, so that no caller tries something else.
            raise KeyboardInterrupt from None
        raise
    finally:
        with _lock:
            _under_way.pop(watch, None)
        progress.end(watch, whole)


def map_in_threads(pool: Any, function: Callable[[_T], _R], each: Iterable[_T]) -> Iterator[_R]:
    """Like ``pool.map``, but gives up the other requests if one fails or Ctrl-C is pressed."""
    together = _RequestGroup()
    before = _current_group.set(together)
    try:
        futures = [pool.submit(contextvars.copy_context().run, function, one) for one in each]
        for future in futures:
            yield future.result()
    except BaseException:
        together.stop()
        raise
    finally:
        _current_group.reset(before)


def give_up_other_threads() -> None:
    """Gives up the requests of all other threads, because no one waits for their results any more.

    Threads that are inside this package without a request are given up at their next request.
    """
    here = threading.get_ident()
    inside = {thread for thread, frame in sys._current_frames().items() if thread != here and _is_inside(frame)}
    with _lock:
        watches = [watch for watch, thread in _under_way.items() if thread != here]
        _given_up.update(inside - set(_under_way.values()))
    for watch in watches:
        watch.stop()


def forget_given_up_threads() -> None:
    """Forgets which threads were given up, because another computation begins, perhaps in the same threads."""
    with _lock:
        _given_up.clear()


def _is_inside(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            return True
        frame = frame.f_back
    return False


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _under_way.clear()
    _given_up.clear()


os.register_at_fork(after_in_child=_after_fork)
