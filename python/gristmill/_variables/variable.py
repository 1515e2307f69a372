"""Variables of files: descriptions, elements and reductions, with caches."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from .._arguments.element_types import numpy_code
from .._errors import Stale
from .._requests import options, tracing
from .._requests.locations import locate
from .._requests.watches import watching
from .cache import LruCache
from .source import Source

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The selection of an axis of a file: one index, or start, stop and step.
RegularTake = Union[int, tuple[int, int, int]]

#: Most answers of reductions that are kept, and their bytes.
MAX_ANSWERS = 256
MAX_ANSWER_BYTES = 64 << 20

#: Caches of elements and of answers of reductions.
elements = LruCache(1 << 16)
answers = LruCache(MAX_ANSWERS)


def _after_fork() -> None:
    global elements, answers
    elements, answers = LruCache(1 << 16), LruCache(MAX_ANSWERS)


os.register_at_fork(after_in_child=_after_fork)


class Variable:
    """A variable of a file, decoded by its CF attributes or as it is stored."""

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
        """Bytes of the variable in its file."""
        return int(self._about["stored_bytes"])

    @property
    def is_local(self) -> bool:
        """Whether the file is on this machine."""
        return locate(self.source.url)[0] is None

    def read(self, taken: tuple[RegularTake, ...]) -> NDArray[Any]:
        """Returns the elements of a hyperslab, possibly from the cache. Callers must not write to them."""

        def make() -> tuple[NDArray[Any], int]:
            array = self._read(taken)
            return array, array.nbytes

        return elements.get((self.key, taken), make, options.current.cache_bytes)  # type: ignore[no-any-return]

    def _read(self, taken: tuple[RegularTake, ...]) -> NDArray[Any]:
        with watching() as watch:
            dtype, shape, content, size = self.source.query(
                lambda opened: opened.read(self.name, list(taken), self.decoded, watch)
            )
        tracing.add_to_traces(reads=1, bytes_in=size)
        array = np.frombuffer(content, dtype=numpy_code(dtype)).reshape(shape)
        if array.dtype != self.dtype:
            raise Stale(f"{self.name} of {self.source.url} has other elements than before; open it again")
        return array

    def chunk(self, place: tuple[int, ...]) -> NDArray[Any] | None:
        """Returns the elements of a chunk if they are in the cache, else ``None``.

        ``place`` is its number along each axis.
        """
        return elements.peek((self.key, "chunk", place))  # type: ignore[no-any-return]

    def read_chunks(self, low: Sequence[int], high: Sequence[int]) -> dict[tuple[int, ...], NDArray[Any]]:
        """Reads the chunks with numbers from ``low`` to ``high``, which is not included, and keeps each in the
        cache."""
        bounds = [
            [min(number * chunk, length) for number in range(first, last + 1)]
            for first, last, chunk, length in zip(low, high, self.chunks, self.shape)
        ]
        every = self._read(tuple((of_axis[0], of_axis[-1], 1) for of_axis in bounds))
        found = {}
        for place in product(*(range(first, last) for first, last in zip(low, high))):
            at = [number - first for number, first in zip(place, low)]
            part = tuple(slice(ends[n] - ends[0], ends[n + 1] - ends[0]) for n, ends in zip(at, bounds))
            # A view would keep the whole array in memory.
            one = found[place] = every[part].copy()
            key, most = (self.key, "chunk", place), options.current.cache_bytes
            elements.get(key, lambda one=one: (one, one.nbytes), most)  # type: ignore[misc]
        return found

    def reduce(self, asked: dict[str, Any], key: Hashable | None) -> dict[str, NDArray[Any]]:
        """Sends a reduction and returns its arrays by name. With a ``key`` the answer is kept, or comes from the cache.

        Raises :class:`Usage` if storage nodes do not support the request, and :class:`DataError` if the data allow no
        answer.
        """

        def make() -> tuple[dict[str, NDArray[Any]], int]:
            variables = [("x", self.name, self.decoded), *asked["variables"]]
            question = {**asked, "variables": variables, "place": options.current.place}
            with watching() as watch:
                values, report = self.source.query(lambda opened: opened.reduce(question, watch))
            tracing.add_to_traces(requests=1, bytes_in=report["bytes_to_client"], bytes_folded=report["bytes_read"])
            arrays = {name: _array(value) for name, value in values.items() if isinstance(value, dict)}
            return arrays, sum(array.nbytes for array in arrays.values())

        if key is None:
            return make()[0]
        return answers.get((self.key, key), make, MAX_ANSWER_BYTES)  # type: ignore[no-any-return]

    def cached_answer(self, key: Hashable) -> dict[str, NDArray[Any]] | None:
        """Returns the answer that is kept under a key, or ``None``."""
        return answers.peek((self.key, key))  # type: ignore[no-any-return]


def _variable(source: Source, about: dict[str, Any], decoded: bool) -> Variable:
    return Variable(source, about, decoded)


def _array(value: dict[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(bool) if value["type"] == "bool" else np.dtype(numpy_code(value["type"]))
    return np.frombuffer(value["data"], dtype=dtype).reshape(value["shape"])
