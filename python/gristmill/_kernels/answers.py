"""Answers of kernels."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .._arguments.element_types import numpy_code

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Rows:
    """The rows of an answer, in the order of the file.

    Rows of elements have ``index``, the positions as uint64, and ``value``, an array of the input's type in native byte
    order. Rows of lines and records have ``offset``, the positions in bytes as uint64, and ``line``, a list of bytes.

    >>> import gristmill, numpy as np
    >>> np.array([4.0, 0.5, 8.0]).tofile("rows.f64")
    >>> rows = gristmill.run("lookup", "rows.f64", type="f64", where="> 1").rows
    >>> rows.index, rows.value
    (array([0, 2], dtype=uint64), array([4., 8.]))
    >>> list(rows) == [(0, 4.0), (2, 8.0)]
    True
    >>> _ = gristmill.put(b"one\\ntwo\\nsix\\n", cluster.path("words"))
    >>> rows = gristmill.run("grep", cluster.path("words"), pattern="o").rows
    >>> rows.offset, rows.line
    (array([0, 4], dtype=uint64), [b'one', b'two'])
    """

    #: Positions of elements, an array with one axis.
    index: NDArray[np.uint64]
    #: Positions of lines and records in bytes, an array with one axis.
    offset: NDArray[np.uint64]
    #: The elements, an array with one axis.
    value: NDArray[Any]
    #: The lines or records.
    line: list[bytes]

    def __init__(self, position: str, at: bytearray, dtype: str | None, content: bytearray | list[bytes]) -> None:
        import numpy as np

        self._names = (position, "line" if dtype is None else "value")
        setattr(self, position, np.frombuffer(at, dtype=np.uint64))
        if dtype is None:
            self.line = content  # type: ignore[assignment]
        else:
            self.value = np.frombuffer(content, dtype=numpy_code(dtype))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(getattr(self, self._names[1]))

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Iterates over pairs of position and content."""
        return zip(*(getattr(self, name) for name in self._names))

    def __repr__(self) -> str:
        many = len(self)
        return f"<{many} row{'' if many == 1 else 's'} of ({', '.join(self._names)})>"


class Answer(Mapping[str, Any]):
    """The answer of a kernel: a mapping from names of results to values. The names are attributes, too.

    Integers are exact ``int``, floats are ``numpy.float64``, lists are arrays, text is ``str``, and other bytes are
    ``bytes``.

    >>> import gristmill, numpy as np
    >>> np.arange(1.0, 5.0).tofile("four.f64")
    >>> answer = gristmill.run("sum", "four.f64", type="f64")
    >>> answer
    Answer(sum=10.0, count=4)
    >>> float(answer.sum), answer["count"]
    (10.0, 4)
    >>> answer.kernel, answer.numerics, answer.report["bytes_read"]
    ('sum', 'exact', 32)
    >>> answer.rows is None, answer.output is None
    (True, True)

    The methods ``keys``, ``values``, ``items`` and ``get`` are those of any mapping. An unknown name raises
    ``KeyError``, and as an attribute ``AttributeError``.
    """

    #: Name of the kernel.
    kernel: str
    #: The rows, or ``None`` if the kernel gives none.
    rows: Rows | None
    #: The bytes that the kernel gives, as an array: the image of ``gaussian``, the labels of ``kmeans``.
    output: NDArray[Any] | None
    #: Where and how the answer was computed: ``elapsed_seconds``, ``rounds``, ``lanes`` (``None`` if storage nodes
    #: computed), ``bytes_read``, ``bytes_folded_in_storage`` (in the storage daemons of
    #: Ceph), ``bytes_moved`` between targets, the number of their ``messages``, ``bytes_to_client``, ``bytes_not_moved``,
    #: ``chunks_settled`` (known from statistics, without being read),
    #: ``places``, ``revisions`` (decisions that changed meanwhile), and ``shortages`` (nodes of which other work
    #: than folds used 75 % of the processors or more before it began, with that share; only with ``place="auto"``).
    report: dict[str, Any]
    #: The guarantee about the bits of the answer: ``exact``, ``fixed`` or ``approximate``.
    numerics: str

    def __init__(
        self,
        kernel: str,
        values: Mapping[str, Any],
        rows: Rows | None,
        report: dict[str, Any],
        numerics: str,
        output: NDArray[Any] | None = None,
    ) -> None:
        self._values = dict(values)
        self.kernel = kernel
        self.rows = rows
        self.output = output
        self.report = report
        self.numerics = numerics

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        # _values does not exist yet while the answer is unpickled.
        values = self.__dict__.get("_values", {})
        if name in values:
            return values[name]
        has = ", ".join(values)
        raise AttributeError(f"the answer has no {name!r}; it has {has}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        parts = [f"{name}={value_text(value)}" for name, value in self._values.items()]
        if self.rows is not None:
            parts.append(f"rows={self.rows!r}")
        if self.output is not None:
            parts.append(f"output={value_text(self.output)}")
        return f"Answer({', '.join(parts)})"


def output_array(content: bytearray, result: Mapping[str, Any]) -> NDArray[Any]:
    """Makes an array of a kernel's bytes, with the type and the shape that its result states."""
    import numpy as np

    flat = np.frombuffer(content, dtype=numpy_code(result.get("type", "u8")))
    return flat.reshape([int(n) for n in result.get("shape", [-1])])


def to_numpy(value: Any) -> Any:
    import numpy as np

    if isinstance(value, float):
        return np.float64(value)
    if not isinstance(value, list):
        return value
    if all(isinstance(one, int) and -(1 << 63) <= one < 1 << 63 for one in value):
        return np.array(value, dtype=np.int64)
    if all(isinstance(one, float) for one in value):
        return np.array(value, dtype=np.float64)
    if all(isinstance(one, list) and one and all(isinstance(x, float) for x in one) for one in value):
        if len({len(one) for one in value}) == 1:
            return np.array(value, dtype=np.float64)
    items = np.empty(len(value), dtype=object)
    items[:] = value
    return items


def value_text(value: Any) -> str:
    import numpy as np

    if isinstance(value, np.ndarray):
        return np.array2string(value, separator=", ", threshold=8, edgeitems=3, max_line_width=sys.maxsize)
    return repr(float(value)) if isinstance(value, np.float64) else repr(value)
