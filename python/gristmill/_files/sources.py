"""Sources of new files: paths, bytes, arrays and open files."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, Protocol

from .._errors import Usage
from .._requests.locations import local_path

if TYPE_CHECKING:
    import numpy as np

#: Endings of formats that hold more than the elements of an array.
_FORMAT_ENDINGS = (".nc", ".nc4", ".h5", ".hdf5", ".zarr", ".csv")


class Readable(Protocol):
    """A binary file, or another object with ``read``."""

    def read(self, size: int, /) -> bytes: ...


def readable_source(source: Any, name: str) -> str | Readable:
    """Returns a source as a path or as an object with ``read``. ``name`` is the name of the new file.

    Raises :class:`Usage` for other types, and for arrays that cannot be stored under this name.
    """
    head = b""
    if isinstance(source, (str, os.PathLike)):
        return local_path(source)
    if hasattr(source, "__array_interface__"):
        import numpy as np

        array = np.asarray(source, order="C")
        if array.dtype.hasobject:
            raise Usage(f"an array of {array.dtype} holds references, not values; give it a type with values")
        end = os.path.splitext(name.rstrip("/"))[1].lower()
        if end == ".npy":
            head = _npy_head(array)
        elif end in _FORMAT_ENDINGS:
            raise Usage(
                f"{name} would have the bytes of the array and nothing of a file in {end}; "
                "give an xarray.DataArray, or a name in .npy"
            )
        source = array.reshape(-1).view(np.uint8) if array.size else b""
    elif hasattr(source, "read"):
        return source  # type: ignore[no-any-return]
    try:
        view = memoryview(source)
    except TypeError as error:
        raise Usage(f"{type(source).__name__} is neither a path, nor bytes, nor an array, nor a file") from error
    flat = view.cast("B") if view.c_contiguous and view.nbytes else view.tobytes()
    return BytesReader(head, memoryview(flat))


def _npy_head(array: np.ndarray[Any, Any]) -> bytes:
    """Returns the header that ``numpy.save`` writes before the elements of an array in C order."""
    import numpy as np

    whole = io.BytesIO()
    about = np.lib.format.header_data_from_array_1_0(array)
    about["fortran_order"] = False
    try:
        np.lib.format.write_array_header_1_0(whole, about)
    except ValueError:
        # A type with many fields needs a header that is longer than version 1 allows.
        whole = io.BytesIO()
        np.lib.format.write_array_header_2_0(whole, about)
    return whole.getvalue()


class BytesReader:
    """Bytes in memory with the interface of a file."""

    def __init__(self, head: bytes, view: memoryview) -> None:
        self._parts = [memoryview(head), view]
        #: Number of all bytes.
        self.length = len(head) + len(view)

    def read(self, size: int, /) -> bytes:
        while self._parts:
            part, rest = self._parts[0][:size].tobytes(), self._parts[0][size:]
            self._parts[0] = rest
            if not rest:
                del self._parts[0]
            if part:
                return part
        return b""
