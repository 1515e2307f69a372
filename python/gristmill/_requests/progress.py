"""Progress of requests, shown as a line of a terminal or an output of a notebook.

All running requests of the process share one bar. The threads that wait for requests draw it.
"""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import options
from .displays import Display, State, find_display

if TYPE_CHECKING:
    from .. import _gristmill

#: Seconds that a request runs before a bar appears.
PATIENCE = 0.5

#: Seconds between two updates of the bar.
REFRESH = 0.1


class Bar:
    """The progress bar of all requests of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._under_way: set[_gristmill.Watch] = set()
        self._shown: Display | None = None
        #: Counts of the requests that have ended.
        self._done = self._total = self._requests = 0
        self._places: set[str] = set()
        self._failed = False
        self._began = self._drawn = 0.0
        #: Number of open ``with progress()`` blocks. All requests in them share one bar.
        self._held = 0

    def begins(self, watch: _gristmill.Watch) -> None:
        with self._lock:
            if not self._under_way and not (self._held and self._requests):
                self._done = self._total = self._requests = 0
                self._places.clear()
                self._failed = False
                self._began = time.monotonic()
            self._under_way.add(watch)
            self._requests += 1

    def ends(self, watch: _gristmill.Watch, whole: bool) -> None:
        with self._lock:
            if watch not in self._under_way:
                # The request began before a fork.
                return
            self._under_way.remove(watch)
            place, done, total = watch.state
            # Nodes report no progress with their answer.
            self._done, self._total = self._done + (total if whole else done), self._total + total
            self._failed |= not whole
            if place is not None:
                self._places.add(place)
            if not self._under_way and not self._held:
                self._close()

    def hold(self, more: int) -> None:
        with self._lock:
            self._held += more
            if more > 0 and self._held == 1 and not self._under_way:
                self._requests = 0
            if not self._held and not self._under_way:
                self._close()

    def look(self) -> None:
        with self._lock:
            now = time.monotonic()
            if self._shown is None:
                wanted = options.current.progress
                if wanted is False or (wanted == "auto" and now - self._began < PATIENCE):
                    return
                self._shown = find_display(wanted is True)
                if self._shown is None:
                    return
            if now - self._drawn >= REFRESH:
                self._drawn = now
                self._shown.draw(self.state(now))

    def state(self, now: float) -> State:
        done, total, places = self._done, self._total, set(self._places)
        for watch in self._under_way:
            place, of_it, all_ = watch.state
            done, total = done + of_it, total + all_
            if place is not None:
                places.add(place)
        return State(done, total, now - self._began, frozenset(places), self._requests, self._failed)

    def _close(self) -> None:
        shown, self._shown, self._drawn = self._shown, None, 0.0
        if shown is not None:
            shown.close(self.state(time.monotonic()))


_bar = Bar()


def begin(watch: _gristmill.Watch) -> None:
    """Notes that a request begins."""
    _bar.begins(watch)


def end(watch: _gristmill.Watch, whole: bool) -> None:
    """Notes that a request ends. ``whole`` says whether it has its answer."""
    _quietly(_bar.ends, watch, whole)


def look() -> None:
    """Draws the bar, if it is time. Every thread that waits for a request calls this every 50 milliseconds."""
    _quietly(_bar.look)


def _quietly(what: Any, *args: Any) -> None:
    try:
        what(*args)
    except Exception:
        # A request must not fail because its terminal was closed. KeyboardInterrupt is not an Exception, and passes.
        _bar._shown = None


class progress:  # noqa: N801
    """Shows the progress of the requests in a ``with`` block.

    The bar shows the finished stored bytes, all stored bytes, where the requests run, and the bytes per second.

    >>> import gristmill as gm, numpy as np
    >>> np.save("some.npy", np.arange(6.0))
    >>> with gm.progress():
    ...     float(gm.open_arrays("some.npy")["data"].sum())
    15.0

    The bar is a line of standard error in a terminal, or an output of a notebook. Nothing is written to a file or a
    pipe. The option ``progress`` of :class:`set_options` shows bars without a ``with`` block.
    """

    def __enter__(self) -> progress:
        self._options = options.set_options(progress=True)
        _bar.hold(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            _quietly(_bar.hold, -1)
        finally:
            self._options.__exit__()


def _after_fork() -> None:
    global _bar
    _bar = Bar()


os.register_at_fork(after_in_child=_after_fork)
