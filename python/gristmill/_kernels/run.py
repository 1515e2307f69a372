"""Running kernels."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

from .. import _gristmill
from .._arguments.element_types import element_type_name, numpy_code
from .._arguments.sizes import Size, parse_integer, parse_size
from .._errors import Usage
from .._requests.locations import Location, locate
from .._requests.watches import watching
from .answers import Answer, Rows, output_array, to_numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

#: A value of a parameter of a kernel. A pair stands for the text ``LOW:HIGH``.
Param = Union[str, int, float, bool, tuple[float, ...], "NDArray[Any]"]


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
    growing: bool = False,
    params: Mapping[str, Param] | None = None,
    **more: Param,
) -> Answer:
    """Runs a kernel over a file, where the file is stored, and returns its answer.

    >>> import gristmill, numpy as np
    >>> np.array([1e100, 1.0, -1e100]).tofile("data.f64")
    >>> gristmill.run("sum", "data.f64", type="f64")
    Answer(sum=1.0, count=3)
    >>> gristmill.run("histogram", "data.f64", type="f64", bins=2, params={"range": (0, 2)}).counts
    array([0, 1])

    kernel
        Name of the kernel; ``gristmill kernels`` lists all.
    url
        A file of a cluster (``grist://HOST:PORT/PATH``), a plain file, or the layout file (``*.grist``) of a striped
        file.
    type
        Type of the elements: ``"f64"``, ``np.float64``, ``">f4"`` and so on. Without it the file is text. The texts
        ``"i8"`` and ``"u8"`` are refused, because they count bits in Gristmill and bytes in NumPy.
    record
        Bytes of a record.
    skip
        Bytes before the first record or element.
    range
        ``(start, length)`` in bytes: the part of the file to read. A length of ``None`` means the rest of the file.
        Sizes may be text such as ``"64KiB"``.
    big_endian
        Selects big-endian elements.
    place
        ``"storage"``, ``"client"``, or ``"auto"``, which moves fewer bytes. ``"osd"`` folds in the storage daemons of Ceph
        that keep the objects of the nodes, and is refused where they cannot.
    lanes
        Number of threads of this process, if the kernel runs here. The default is one for each core.
    max_record
        Most bytes of a line. The default is 4 MiB.
    timeout
        Seconds until :class:`TimedOut` is raised.
    growing
        Folds what the file has now, in whole records, although programs append to it. Without it, a file that grows
        meanwhile is an error (:class:`Stale`). For plain files and files of attached mounts.
    params, more
        Parameters of the kernel. Give a parameter in ``params`` if a keyword above has the same name, as ``range`` of
        the histogram.

    Raises :class:`Usage` for an unknown kernel or parameter, :class:`NotFound`, :class:`Denied`, :class:`DataError`
    if the data allow no answer, :class:`Stale` if the file was replaced meanwhile, :class:`Unavailable` if a node
    does not answer, :class:`Busy`, and :class:`TimedOut`.

    The bytes that a kernel gives are an array in ``output``:

    >>> (np.arange(16).reshape(4, 4) * 15).astype("u1").tofile("image.u8")
    >>> gristmill.run("gaussian", "image.u8", type="u1", shape=(4, 4), mask="3x3").output[0]
    array([19, 30, 45, 56], dtype=uint8)

    Other Python threads continue meanwhile. Ctrl-C gives the request up.
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
        name, order = element_type_name(type)
        if order is False and big_endian:
            raise Usage(f"type={type!r} is little-endian and big_endian=True was given; leave one of them out")
        big_endian = bool(order or big_endian)
    elif big_endian:
        raise Usage("big_endian=True needs a type")
    asked = {
        "kernel": str(kernel),
        "params": [(key, _parameter_text(key, value, name if has.get(key) else None)) for key, value in given.items()],
        "type": name,
        "record": None if record is None else parse_size(record, "record"),
        "skip": parse_size(skip, "skip"),
        "big_endian": big_endian,
        "range": _parse_range(range),
        "place": place,
        "lanes": None if lanes is None else parse_size(parse_integer(lanes, "lanes"), "lanes"),
        "max_record": None if max_record is None else parse_size(max_record, "max_record"),
        "timeout": None if timeout is None else float(timeout),
        "growing": bool(growing),
    }
    connection, path = locate(url)
    try:
        with watching() as watch:
            values, rows, report, numerics = _gristmill.run(connection, path, asked, watch)
    except Usage as error:
        if type is None and "say which with type=" in str(error):
            raise Usage(f"{error}; for a variable of netCDF, HDF5 or Zarr use gristmill.open_dataset") from None
        raise
    result = {key: to_numpy(value) for key, value in values.items()}
    output = None
    if isinstance(rows, bytearray):
        output, rows = output_array(rows, result), None
    return Answer(kernel, result, None if rows is None else Rows(*rows), report, numerics, output)


def _parse_range(given: tuple[Size, Size | None] | None) -> tuple[int, int | None] | None:
    if given is None:
        return None
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise Usage(f"range={given!r} is not a range; give (start, length) in bytes, or (start, None) for the rest")
    start, length = given
    return parse_size(start, "range"), None if length is None else parse_size(length, "range")


def _parameter_text(name: str, value: object, dtype: str | None = None) -> str:
    """Formats a parameter as kernels parse it: floats with all digits, lists with commas, a range with a colon.

    An array becomes bytes of the element type ``dtype``, for a parameter that may be a file.

    Raises :class:`Usage` for other types.
    """
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
            return ",".join(_parameter_text(name, one) for one in value)
        if len(value) == 2:
            return ":".join(_parameter_text(name, one) for one in value)
        raise Usage(f"parameter range={value!r} is not a range; give (low, high)")
    raise Usage(f"parameter {name}={value!r} is not text, a number, a boolean or a list of numbers")
