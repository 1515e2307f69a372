"""Running kernels, and what they answer."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Union

from . import _gristmill
from ._dtype import name_of, numpy_code
from ._errors import Usage
from ._place import Location, Size, integer, located, size
from ._watching import watching

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

#: A value of a kernel's parameter; a pair is text ``LOW:HIGH``.
Param = Union[str, int, float, bool, tuple[float, ...], "NDArray[Any]"]


class Rows:
    """The rows of an answer, in the order of the file.

    ``index`` (elements) or ``offset`` (lines and records, in bytes) says where each is, as uint64. Elements are in
    ``value``, an array of the input's type in native byte order; lines and records in ``line``, a list of bytes.

    >>> import gristmill, numpy as np
    >>> np.array([4.0, 0.5, 8.0]).tofile("rows.f64")
    >>> rows = gristmill.run("lookup", "rows.f64", type="f64", where="> 1").rows
    >>> rows.index, rows.value
    (array([0, 2], dtype=uint64), array([4., 8.]))
    """

    index: NDArray[np.uint64]
    offset: NDArray[np.uint64]
    value: NDArray[Any]
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
        """Pairs of position and content."""
        return zip(*(getattr(self, name) for name in self._names))

    def __repr__(self) -> str:
        many = len(self)
        return f"<{many} row{'' if many == 1 else 's'} of ({', '.join(self._names)})>"


class Answer(Mapping[str, Any]):
    """The answer of a kernel: a mapping of the result's names, which are attributes as well.

    Integers are ``int`` and exact, floats ``numpy.float64``, lists arrays, text ``str``, other bytes ``bytes``.

    >>> import gristmill, numpy as np
    >>> np.arange(1.0, 5.0).tofile("four.f64")
    >>> answer = gristmill.run("sum", "four.f64", type="f64")
    >>> answer
    Answer(sum=10.0, count=4)
    >>> float(answer.sum), answer["count"]
    (10.0, 4)
    >>> answer.numerics, answer.report["bytes_read"]
    ('exact', 32)
    """

    #: Name of the kernel.
    kernel: str
    #: The rows, of kernels that give any.
    rows: Rows | None
    #: The bytes that a kernel gives, as an array: the image of ``gaussian``, the labels of ``kmeans``.
    output: NDArray[Any] | None
    #: Where and how it was computed: ``elapsed_seconds``, ``rounds``, ``lanes`` (``None`` where storage nodes folded, which
    #: have their own), ``bytes_read``, ``bytes_moved`` between targets in so many ``messages``, ``bytes_to_client``,
    #: ``bytes_not_moved``, ``chunks_settled`` from their statistics without being read, and ``places``.
    report: dict[str, Any]
    #: What is promised about the bits: ``exact``, ``fixed`` or ``approximate``.
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
        # Not yet there while it is unpickled.
        values = self.__dict__.get("_values", {})
        if name in values:
            return values[name]
        has = ", ".join(values)
        raise AttributeError(f"the answer has no {name!r}; it has {has}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        parts = [f"{name}={_shown(value)}" for name, value in self._values.items()]
        if self.rows is not None:
            parts.append(f"rows={self.rows!r}")
        if self.output is not None:
            parts.append(f"output={_shown(self.output)}")
        return f"Answer({', '.join(parts)})"


def run(
    kernel: str,
    url: Location,
    *,
    type: DTypeLike | None = None,
    record: Size | None = None,
    skip: Size = 0,
    big_endian: bool = False,
    range: tuple[Size, Size | None] | None = None,
    place: str = "auto",
    lanes: int | None = None,
    max_record: Size | None = None,
    timeout: float | None = None,
    params: Mapping[str, Param] | None = None,
    **more: Param,
) -> Answer:
    """Runs a kernel over a file, where the file is.

    >>> import gristmill, numpy as np
    >>> np.array([1e100, 1.0, -1e100]).tofile("data.f64")
    >>> gristmill.run("sum", "data.f64", type="f64")
    Answer(sum=1.0, count=3)
    >>> gristmill.run("histogram", "data.f64", type="f64", bins=2, params={"range": (0, 2)}).counts
    array([0, 1])

    kernel
        What to compute; ``gristmill kernels`` lists them.
    url
        A file of a cluster (``grist://HOST:PORT/PATH``), a plain file, or the layout file (``*.grist``) of a striped
        one.
    type
        Type of the elements: ``"f64"``, ``np.float64``, ``">f4"`` and so on; without it the file is text. ``"i8"`` and
        ``"u8"`` are refused as text, for they mean bits to Gristmill and bytes to NumPy.
    record, skip, range
        Bytes of a record, bytes before the first, and ``(start, length)`` in bytes of what is wanted of the file, to
        its end where the length is ``None``. Sizes may be text as ``"64KiB"``.
    place
        ``"storage"``, ``"client"``, or ``"auto"``: wherever less is moved.
    lanes, max_record
        Threads that fold here (all cores where nothing is said); the longest line (4 MiB).
    timeout
        Seconds until :class:`TimedOut` is raised.
    params, more
        Parameters of the kernel. Those that share their name with something above, as ``range`` of the histogram, are
        given in ``params``.

    Kernels that give bytes have them in ``output``, as an array:

    >>> (np.arange(16).reshape(4, 4) * 15).astype("u1").tofile("image.u8")
    >>> gristmill.run("gaussian", "image.u8", type="u1", shape=(4, 4), mask="3x3").output[0]
    array([19, 30, 45, 56], dtype=uint8)

    Other threads of Python go on meanwhile, and Ctrl-C ends it.
    """
    given = {**(params or {}), **more}
    if params is not None and (both := set(params) & set(more)):
        raise Usage(f"parameter {min(both)!r} is given twice; give it once")
    has = dict(_gristmill.parameters(kernel))
    if params is None and range is not None and "range" in has:
        raise Usage(
            f"{kernel} has a parameter 'range' of its own: give it as params={{'range': (low, high)}}, "
            "and params={} as well as range if bytes of the file are meant"
        )
    name = None
    if type is not None:
        name, order = name_of(type)
        if order is False and big_endian:
            raise Usage(f"type={type!r} is little-endian and big_endian=True was given; leave one of them out")
        big_endian = bool(order or big_endian)
    elif big_endian:
        raise Usage("big_endian=True needs a type")
    asked = {
        "kernel": str(kernel),
        "params": [(key, _text(key, value, name if has.get(key) else None)) for key, value in given.items()],
        "type": name,
        "record": None if record is None else size(record, "record"),
        "skip": size(skip, "skip"),
        "big_endian": big_endian,
        "range": _range(range),
        "place": place,
        "lanes": None if lanes is None else size(integer(lanes, "lanes"), "lanes"),
        "max_record": None if max_record is None else size(max_record, "max_record"),
        "timeout": None if timeout is None else float(timeout),
    }
    connection, path = located(url)
    try:
        with watching() as watch:
            values, rows, report, numerics = _gristmill.run(connection, path, asked, watch)
    except Usage as error:
        if type is None and "say which with type=" in str(error):
            raise Usage(f"{error}; for a variable of netCDF, HDF5 or Zarr use gristmill.open_dataset") from None
        raise
    result = {key: _value(value) for key, value in values.items()}
    output = None
    if isinstance(rows, bytearray):
        output, rows = _array(rows, result), None
    return Answer(kernel, result, None if rows is None else Rows(*rows), report, numerics, output)


def _array(content: bytearray, result: Mapping[str, Any]) -> NDArray[Any]:
    """The bytes of a kernel that says what they are."""
    import numpy as np

    flat = np.frombuffer(content, dtype=numpy_code(result.get("type", "u8")))
    return flat.reshape([int(n) for n in result.get("shape", [-1])])


def _range(given: tuple[Size, Size | None] | None) -> tuple[int, int | None] | None:
    if given is None:
        return None
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise Usage(f"range={given!r} is no range; give (start, length) in bytes, or (start, None) for the rest")
    start, length = given
    return size(start, "range"), None if length is None else size(length, "range")


def _text(name: str, value: object, dtype: str | None = None) -> str:
    """A parameter as the kernels read it; floats so that the very number is read back, lists with commas, a range with a colon. Arrays
    are bytes of the type of the file if that is given, for a parameter that may be a file."""
    import numpy as np

    if isinstance(value, np.ndarray):
        if value.ndim > 0 and dtype is not None:
            content = value.astype(numpy_code(dtype)).tobytes()
            return "data:" + base64.b64encode(content).decode().rstrip("=")
        value = value.tolist()
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if isinstance(value, (tuple, list)) and all(np.ndim(one) == 0 for one in value):
        if name != "range":
            return ",".join(_text(name, one) for one in value)
        if len(value) == 2:
            return ":".join(_text(name, one) for one in value)
        raise Usage(f"parameter range={value!r} is no range; give (low, high)")
    raise Usage(f"parameter {name}={value!r} is not text, a number, a boolean or a list of numbers")


def _value(value: Any) -> Any:
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


def _shown(value: Any) -> str:
    import numpy as np

    if isinstance(value, np.ndarray):
        return np.array2string(value, separator=", ", threshold=8, edgeitems=3, max_line_width=sys.maxsize)
    return repr(float(value)) if isinstance(value, np.float64) else repr(value)
