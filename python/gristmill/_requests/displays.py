"""Bars that show how far requests are: a line of a terminal, or an output of a notebook."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from typing import Any, Protocol

from .._arguments.sizes import size_text

#: Most and fewest characters of a bar, and columns of a terminal whose width is unknown.
_WIDTH, _LEAST, _COLUMNS = 30, 6, 80


@dataclass(frozen=True)
class State:
    """The numbers that a bar shows."""

    #: Stored bytes that requests have finished, and all stored bytes of these requests.
    done: int
    total: int
    #: Seconds since the first request began.
    seconds: float
    #: Where the requests run: ``storage``, ``client``, both, or nothing if that is not known yet.
    places: frozenset[str]
    #: Number of requests, including those that have ended.
    requests: int
    #: Whether a request failed or was given up.
    failed: bool = False

    @property
    def part(self) -> float:
        """The finished share, from 0 to 1."""
        return self.done / self.total if self.total else 0.0

    def text(self) -> str:
        """Returns the numbers as text."""
        speed = size_text(self.done / self.seconds) if self.seconds else "0 B"
        text = f"{size_text(self.done)} of {size_text(self.total)}, {speed}/s"
        if self.places:
            where = {"storage": "on storage nodes", "client": "here"}
            text += ", " + " and ".join(where[place] for place in sorted(self.places, reverse=True))
        return text + (f", {self.requests} requests" if self.requests > 1 else "")


class Display(Protocol):
    """A place where a bar is shown."""

    def draw(self, state: State) -> None: ...
    def close(self, state: State) -> None: ...


class Terminal:
    """A line of standard error. It is erased at the end."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def draw(self, state: State) -> None:
        try:
            # Some terminals report a width of 0.
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
    """An output of a cell. It changes in place, and shows a summary at the end."""

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


def find_display(asked_for: bool) -> Display | None:
    """Returns the display that a person watches, or ``None``.

    A program in a terminal gets a bar only if ``asked_for`` is true, because the program may use the terminal itself.
    """
    python = sys.modules.get("IPython")
    shell = python.get_ipython() if python is not None else None
    if getattr(shell, "kernel", None) is not None:
        return Notebook()
    interactive = shell is not None or hasattr(sys, "ps1")
    try:
        watched = sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        # Standard error is closed.
        watched = False
    return Terminal(sys.stderr) if watched and (asked_for or interactive) else None
