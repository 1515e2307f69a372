"""Files with variables."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Any
from uuid import uuid4

from .. import _gristmill
from .._errors import Denied, Stale
from .._requests.locations import locate


class Source:
    """A file with variables. It is opened when it is needed, can be pickled, and works in a forked child."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = threading.Lock()
        self._opened: _gristmill.Dataset | None = None
        #: Id and variables of the file when it was closed.
        self._closed_state: tuple[str | None, list[dict[str, Any]]] | None = None
        self._process = 0
        #: Identity of this opening. Caches use it, so that they do not mix two states of a file.
        self.key: Hashable = object()
        #: Equal for all copies of one opening, in any process.
        self.origin = uuid4().hex

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "origin": self.origin}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["url"])  # type: ignore[misc]
        self.origin = state["origin"]

    def query(self, question: Callable[[_gristmill.Dataset], Any]) -> Any:
        """Returns what ``question`` returns for the open file.

        Grants end after some hours. The file is then opened again, if it is still the same.

        Raises :class:`Stale` if the file was replaced.
        """
        opened = self.opened
        try:
            return question(opened)
        except Denied:
            self.reopen()
            return question(self.opened)

    def reopen(self) -> None:
        """Opens the file again, for new grants.

        Raises :class:`Stale` if the file was replaced.
        """
        opened = self.opened
        again = _gristmill.Dataset(*locate(self.url))
        if again.id != opened.id or again.variables() != opened.variables():
            raise Stale(f"{self.url} was replaced while it was used; open it again") from None
        self._opened = again

    @property
    def opened(self) -> _gristmill.Dataset:
        """The open file. Its description is read once.

        Raises :class:`Stale` if the file was replaced since it was closed.
        """
        if self._process != os.getpid():
            # The threads exist in the parent only, and one of them may hold the lock.
            self._lock, self._opened, self._process = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._opened is None:
                opened = _gristmill.Dataset(*locate(self.url))
                if self._closed_state is not None:
                    if self._closed_state != (opened.id, opened.variables()):
                        raise Stale(f"{self.url} was replaced since it was closed; open it again")
                    # A changed file can look the same, so nothing is reused that was read before.
                    self._closed_state, self.key = None, object()
                self._opened = opened
            return self._opened

    def close(self) -> None:
        """Closes the file. It is opened again when it is needed, if it is still the same."""
        if self._process != os.getpid():
            # A forked child has opened nothing yet, and a thread of the parent may hold the lock.
            return
        with self._lock:
            if self._opened is not None:
                self._closed_state = self._opened.id, self._opened.variables()
            self._opened = None
