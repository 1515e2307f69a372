"""A cache of arrays with a bound on its bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class LruCache:
    """A cache that drops the least recently used values, with a bound on their number and their bytes.

    Several threads that need the same value make it once.
    """

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._known: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], tuple[Any, int]], most: int) -> Any:
        """Returns the value of a key. If it is not there, ``make`` gives the value and its bytes.

        The cache then holds at most ``most`` bytes; a larger value is not kept.
        """
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._known:
                    self._known.move_to_end(key)
                    return self._known[key][0]
            try:
                made, size = make()
            finally:
                with self._lock:
                    self._making.pop(key, None)
            with self._lock:
                if size <= most and key not in self._known:
                    self._known[key] = made, size
                    self._bytes += size
                while self._known and (self._bytes > most or len(self._known) > self._entries):
                    _, (_, freed) = self._known.popitem(last=False)
                    self._bytes -= freed
            return made

    def peek(self, key: Hashable) -> Any:
        """Returns the value of a key, or ``None``."""
        with self._lock:
            if key not in self._known:
                return None
            self._known.move_to_end(key)
            return self._known[key][0]

    def clear(self) -> None:
        """Drops all values."""
        with self._lock:
            self._known.clear()
            self._bytes = 0
