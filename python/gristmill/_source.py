"""Variables of files: what is known about them, reductions of them, and their elements."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Union
from uuid import uuid4

import numpy as np

from . import _gristmill, _options
from ._dtype import numpy_code
from ._errors import Denied, Stale
from ._place import located
from ._watching import watching

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What is taken of an axis of a file: one index, or start, stop and step.
Taken = Union[int, tuple[int, int, int]]

#: Answers of reductions that are remembered, and their bytes.
MAX_ANSWERS = 256
MAX_ANSWER_BYTES = 64 << 20


class Kept:
    """Arrays that are kept, those that were used last, up to a number of bytes; each is made once, also by several
    threads."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._known: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], tuple[Any, int]], most: int) -> Any:
        """What is kept under a key, or is made: it and its bytes."""
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

    def known(self, key: Hashable) -> Any:
        """What is kept under a key, or ``None``."""
        with self._lock:
            if key not in self._known:
                return None
            self._known.move_to_end(key)
            return self._known[key][0]

    def clear(self) -> None:
        with self._lock:
            self._known.clear()
            self._bytes = 0


#: Elements that were read, and answers of reductions.
elements = Kept(1 << 16)
answers = Kept(MAX_ANSWERS)


def _after_fork() -> None:
    global elements, answers
    elements, answers = Kept(1 << 16), Kept(MAX_ANSWERS)


os.register_at_fork(after_in_child=_after_fork)


class Source:
    """A file with variables, opened when it is needed: it can be pickled, and used in a forked child."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = threading.Lock()
        self._opened: _gristmill.Dataset | None = None
        #: What it was when it was closed: its id and its variables.
        self._before: tuple[str | None, list[dict[str, Any]]] | None = None
        self._process = 0
        #: Of this very opening: what is remembered of one state of a file is not used for another.
        self.key: Hashable = object()
        #: Equal for what was pickled of one opening: variables of one file, whichever process they are in.
        self.origin = uuid4().hex

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "origin": self.origin}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["url"])  # type: ignore[misc]
        self.origin = state["origin"]

    def asked(self, question: Callable[[_gristmill.Dataset], Any]) -> Any:
        """The answer to a question about the file. Leave to ask runs out after some hours, and is asked for again, which is as
        good if the file is the same."""
        opened = self.opened
        try:
            return question(opened)
        except Denied:
            again = _gristmill.Dataset(*located(self.url))
            if again.id != opened.id or again.variables() != opened.variables():
                raise Stale(f"{self.url} was replaced while it was used; open it again") from None
            self._opened = again
            return question(again)

    @property
    def opened(self) -> _gristmill.Dataset:
        """The file; its description is read once."""
        if self._process != os.getpid():
            # Threads stayed with the parent, and a lock may be held by one of them.
            self._lock, self._opened, self._process = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._opened is None:
                opened = _gristmill.Dataset(*located(self.url))
                if self._before is not None:
                    if self._before != (opened.id, opened.variables()):
                        raise Stale(f"{self.url} was replaced since it was closed; open it again")
                    # What was read before may be of another state, if the file looks the same.
                    self._before, self.key = None, object()
                self._opened = opened
            return self._opened


    def close(self) -> None:
        """Lets go of the file. It is opened again when it is needed, if it is still the same."""
        if self._process != os.getpid():
            # In a forked child nothing was opened yet, and the lock may be held by a thread of the parent.
            return
        with self._lock:
            if self._opened is not None:
                self._before = self._opened.id, self._opened.variables()
            self._opened = None


class Variable:
    """A variable of a file, decoded by the CF attributes or as it is stored."""

    def __init__(self, source: Source, about: dict[str, Any], decoded: bool) -> None:
        self.source = source
        self.name: str = about["name"]
        self.dims = tuple(about["dims"])
        self.shape = tuple(about["shape"])
        self.chunks = tuple(about["chunks"] or ())
        self.stored = np.dtype(numpy_code(about["dtype"]))
        self.decoded = decoded
        self.dtype = np.dtype(numpy_code(about["decoded"])) if decoded else self.stored
        self._about = about

    @property
    def key(self) -> Hashable:
        return self.source.key, self.name, self.decoded

    def __reduce__(self) -> tuple[Any, ...]:
        return _variable, (self.source, self._about, self.decoded)

    @property
    def stored_bytes(self) -> int:
        """Bytes that it takes in its file."""
        return int(self._about["stored_bytes"])

    @property
    def is_here(self) -> bool:
        """Whether it is in files of this machine."""
        return located(self.source.url)[0] is None

    def read(self, taken: tuple[Taken, ...]) -> NDArray[Any]:
        """The elements of a hyperslab; those that were read lately are not read again. Not to be written to."""

        def make() -> tuple[NDArray[Any], int]:
            array = self._read(taken)
            return array, array.nbytes

        return elements.get((self.key, taken), make, _options.current.cache_bytes)  # type: ignore[no-any-return]

    def _read(self, taken: tuple[Taken, ...]) -> NDArray[Any]:
        with watching() as watch:
            dtype, shape, content, size = self.source.asked(
                lambda opened: opened.read(self.name, list(taken), self.decoded, watch)
            )
        _options.note(reads=1, bytes_in=size)
        array = np.frombuffer(content, dtype=numpy_code(dtype)).reshape(shape)
        if array.dtype != self.dtype:
            raise Stale(f"{self.name} of {self.source.url} has other elements than before; open it again")
        return array

    def chunk(self, place: tuple[int, ...]) -> NDArray[Any] | None:
        """The elements of a chunk, by its number along each axis, if they are here."""
        return elements.known((self.key, "chunk", place))  # type: ignore[no-any-return]

    def read_chunks(self, low: Sequence[int], high: Sequence[int]) -> dict[tuple[int, ...], NDArray[Any]]:
        """The elements of the chunks from ``low`` to the ones before ``high``, by their numbers; they are kept."""
        bounds = [
            [min(number * chunk, length) for number in range(first, last + 1)]
            for first, last, chunk, length in zip(low, high, self.chunks, self.shape)
        ]
        every = self._read(tuple((of_axis[0], of_axis[-1], 1) for of_axis in bounds))
        found = {}
        for place in product(*(range(first, last) for first, last in zip(low, high))):
            at = [number - first for number, first in zip(place, low)]
            part = tuple(slice(ends[n] - ends[0], ends[n + 1] - ends[0]) for n, ends in zip(at, bounds))
            # A copy, or all would stay here with each of them.
            one = found[place] = every[part].copy()
            elements.get((self.key, "chunk", place), lambda one=one: (one, one.nbytes), _options.current.cache_bytes)  # type: ignore[misc]
        return found

    def reduce(self, asked: dict[str, Any], key: Hashable | None) -> dict[str, NDArray[Any]]:
        """The answer of a reduction, as arrays by name; remembered under the key, if there is one."""

        def make() -> tuple[dict[str, NDArray[Any]], int]:
            variables = [("x", self.name, self.decoded), *asked["variables"]]
            question = {**asked, "variables": variables, "place": _options.current.place}
            with watching() as watch:
                values, report = self.source.asked(lambda opened: opened.reduce(question, watch))
            _options.note(requests=1, bytes_in=report["bytes_to_client"], bytes_folded=report["bytes_read"])
            arrays = {name: _array(value) for name, value in values.items() if isinstance(value, dict)}
            return arrays, sum(array.nbytes for array in arrays.values())

        if key is None:
            return make()[0]
        return answers.get((self.key, key), make, MAX_ANSWER_BYTES)  # type: ignore[no-any-return]

    def known(self, key: Hashable) -> dict[str, NDArray[Any]] | None:
        """The answer that is remembered under a key."""
        return answers.known((self.key, key))  # type: ignore[no-any-return]


def _variable(source: Source, about: dict[str, Any], decoded: bool) -> Variable:
    return Variable(source, about, decoded)


def _array(value: dict[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(bool) if value["type"] == "bool" else np.dtype(numpy_code(value["type"]))
    return np.frombuffer(value["data"], dtype=dtype).reshape(value["shape"])
