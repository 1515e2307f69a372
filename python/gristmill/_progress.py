"""How far requests are, for a person who watches: a line of a terminal, or an output of a notebook.

All requests of the process that are under way share one bar. It is drawn by the threads that wait for them, so there is none
where nobody waits.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from . import _options
from ._size import readable

if TYPE_CHECKING:
    from . import _gristmill

#: Requests that take less, in seconds, are over before a bar could be read.
PATIENCE = 0.5

#: Seconds between two pictures.
REFRESH = 0.1

#: Characters of the bar itself, at most, and of one that is worth its place; columns of a terminal that does not say.
_WIDTH, _LEAST, _COLUMNS = 30, 6, 80


@dataclass(frozen=True)
class State:
    """What a bar shows."""

    #: Stored bytes that requests are through with, and all of them.
    done: int
    total: int
    #: Seconds since the first began.
    seconds: float
    #: Where they run: ``storage``, ``client``, both, or what is not known yet.
    places: frozenset[str]
    #: Requests, those that are over too.
    requests: int
    #: Whether one of them was given up, or failed.
    failed: bool = False

    @property
    def part(self) -> float:
        """From 0 to 1."""
        return self.done / self.total if self.total else 0.0

    def text(self) -> str:
        """The numbers, in words."""
        speed = readable(self.done / self.seconds) if self.seconds else "0 B"
        text = f"{readable(self.done)} of {readable(self.total)}, {speed}/s"
        if self.places:
            where = {"storage": "on storage nodes", "client": "here"}
            text += ", " + " and ".join(where[place] for place in sorted(self.places, reverse=True))
        return text + (f", {self.requests} requests" if self.requests > 1 else "")


class Display(Protocol):
    """Something that shows a bar."""

    def draw(self, state: State) -> None: ...
    def close(self, state: State) -> None: ...


class Terminal:
    """One line of standard error, which is gone at the end."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def draw(self, state: State) -> None:
        try:
            # Of some terminals it is not known, and 0.
            columns = os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS
        except OSError:
            columns = _COLUMNS
        line = f"{state.part:4.0%} {state.text()}"
        width = min(_WIDTH, columns - len(line) - 2)
        if width >= _LEAST:
            full = round(width * state.part)
            line = f"{'█' * full}{'░' * (width - full)} {line}"
        self._stream.write(f"\r{line[: columns - 1]}\033[K")
        self._stream.flush()

    def close(self, state: State) -> None:
        self._stream.write("\r\033[K")
        self._stream.flush()


class Notebook:
    """An output of a cell, which is changed in place and says at the end what was done."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, state: State) -> None:
        width = f"{100 * state.part:.1f}%"
        self._show(
            '<div style="display:flex;align-items:center;gap:12px;color:inherit">'
            '<svg width="240" height="12" role="img" aria-label="progress">'
            '<rect width="240" height="12" rx="3" fill="currentColor" opacity=".12"/>'
            f'<rect width="{width}" height="12" rx="3" style="fill:var(--jp-brand-color1, #2f7fc1)"/></svg>'
            f"<span>{state.part:.0%} {state.text()}</span></div>",
            f"{state.part:.0%} {state.text()}",
        )

    def close(self, state: State) -> None:
        text = f"{'ended early, ' if state.failed else ''}{state.text()}, {state.seconds:.1f} s"
        self._show(f'<div style="opacity:.65">{text}</div>', text)

    def _show(self, html: str, text: str) -> None:
        display: Any = importlib.import_module("IPython.display").display
        bundle = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


class Bar:
    """The bar of all requests of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._under_way: set[_gristmill.Watch] = set()
        self._shown: Display | None = None
        #: Of those that are over.
        self._done = self._total = self._requests = 0
        self._places: set[str] = set()
        self._failed = False
        self._began = self._drawn = 0.0
        #: ``with progress()`` that are open: one bar for all that is asked in them.
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
                # Begun before a fork.
                return
            self._under_way.remove(watch)
            place, done, total = watch.state
            # The last that nodes say of themselves is their answer, which says nothing of how far they are.
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
                wanted = _options.current.progress
                if wanted is False or (wanted == "auto" and now - self._began < PATIENCE):
                    return
                self._shown = _display(wanted is True)
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


def begins(watch: _gristmill.Watch) -> None:
    """A request begins."""
    _bar.begins(watch)


def ends(watch: _gristmill.Watch, whole: bool) -> None:
    """A request is over; ``whole`` if it has its answer."""
    _quietly(_bar.ends, watch, whole)


def look() -> None:
    """Called by every thread that waits for a request, now and then."""
    _quietly(_bar.look)


def _quietly(what: Any, *args: Any) -> None:
    try:
        what(*args)
    except Exception:
        # A terminal that went away is no reason for a request to fail. Ctrl-C is no Exception, and goes on.
        _bar._shown = None


def _display(asked_for: bool) -> Display | None:
    """Where a person watches, if one does. In a program that runs in a terminal only if it asked for a bar: the terminal may
    be in use."""
    python = sys.modules.get("IPython")
    shell = python.get_ipython() if python is not None else None
    if getattr(shell, "kernel", None) is not None:
        return Notebook()
    interactive = shell is not None or hasattr(sys, "ps1")
    try:
        watched = sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        # It is closed.
        watched = False
    return Terminal(sys.stderr) if watched and (asked_for or interactive) else None


class progress:  # noqa: N801
    """Shows how far requests are, in a ``with``: one bar of the bytes that were folded or read, of all that they are about, where
    they run, and how fast.

    >>> import gristmill as gm, numpy as np
    >>> np.save("some.npy", np.arange(6.0))
    >>> with gm.progress():
    ...     float(gm.open_arrays("some.npy")["data"].sum())
    15.0

    It is one line of the standard error of a terminal, or an output of a notebook. Into a file or a pipe nothing is written. See
    ``progress`` of :class:`set_options` for a bar without a ``with``.
    """

    def __enter__(self) -> progress:
        self._options = _options.set_options(progress=True)
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
