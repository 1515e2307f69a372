"""Several files whose variables continue one another along a dimension, as one file."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from .. import _gristmill
from .._errors import Denied, Stale
from .source import Source


class JoinedSource(Source):
    """Files that were opened one by one, as one file along a dimension. It has the variables that all files have alike."""

    def __init__(self, parts: Sequence[Source], dimension: str, states: list[Hashable] | None = None) -> None:
        self.parts = tuple(parts)
        self.dimension = dimension
        #: Name in messages. It begins with the location of the first file.
        self.url = f"{self.parts[0].url} and {len(self.parts) - 1} more"
        #: State of each file. Where an element lies depends on the lengths of all files before it, so copies in other processes
        #: compare them.
        self._states = states if states is not None else [_state(part.opened) for part in self.parts]
        #: The opened parts, and the file that they are together.
        self._joined: tuple[list[_gristmill.Dataset], _gristmill.Dataset] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"parts": self.parts, "dimension": self.dimension, "states": self._states}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["parts"], state["dimension"], state["states"])  # type: ignore[misc]

    @property
    def key(self) -> Hashable:  # type: ignore[override]
        """Identity of the openings of all files."""
        return self.dimension, tuple(part.key for part in self.parts)

    @property
    def origin(self) -> str:  # type: ignore[override]
        """Equal for all copies of the openings, in any process."""
        return " ".join([self.dimension, *(part.origin for part in self.parts)])

    def query(self, question: Callable[[_gristmill.Dataset], Any]) -> Any:
        """Returns what ``question`` returns for the files as one. Files whose grants ended are opened again.

        Raises :class:`Stale` if a file was replaced.
        """
        try:
            return question(self.opened)
        except Denied:
            self.reopen()
            return question(self.opened)

    def reopen(self) -> None:
        for part in self.parts:
            part.reopen()

    @property
    def opened(self) -> _gristmill.Dataset:
        """The files as one.

        Raises :class:`Stale` if one of them was replaced.
        """
        parts = [part.opened for part in self.parts]
        joined = self._joined
        if joined is None or any(part is not before for part, before in zip(parts, joined[0])):
            for part, source, state in zip(parts, self.parts, self._states):
                if _state(part) != state:
                    raise Stale(f"{source.url} was replaced after it was opened; open the files again")
            joined = self._joined = parts, _gristmill.Dataset.join(parts, self.dimension)
        return joined[1]

    def close(self) -> None:
        """Closes all files."""
        self._joined = None
        for part in self.parts:
            part.close()


def _state(opened: _gristmill.Dataset) -> Hashable:
    """Returns what tells one state of a file from another."""
    return opened.state, tuple(opened.dimensions())
