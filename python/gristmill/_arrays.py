"""The arrays of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from . import _html, _shown
from ._array import Array
from ._dtype import numpy_code
from ._errors import Usage
from ._place import Location
from ._source import Source, Variable


class Arrays(Mapping[str, Array]):
    """The variables of a file, by name (``group/name``), as arrays whose elements stay where they are.

    Those that are no numbers are not in it; :attr:`left_out` says which and why.
    """

    #: The name of the format.
    format: str
    #: The attributes of the file.
    attrs: dict[str, Any]
    #: Lengths of its dimensions.
    sizes: dict[str, int]
    #: Dimensions that may grow.
    unlimited: set[str]
    #: Why variables cannot be read.
    left_out: dict[str, str]

    def __init__(self, url: Location, *, decoded: bool = True) -> None:
        text = os.fsdecode(url)
        self._source = Source(text if "://" in text else os.path.abspath(text))
        opened = self._source.opened
        self._about = {about["name"]: about for about in opened.variables()}
        self._decoded = decoded
        self.format = opened.format
        self.attrs = attributes(opened.attributes())
        self._unread = unread(opened.attributes())
        self._groups = set(opened.groups())
        self.sizes = {name: length for name, length, _ in opened.dimensions()}
        self.unlimited = {name for name, _, unlimited in opened.dimensions() if unlimited}
        self.left_out = {
            name: about["refused"] or f"it is {about['kind']}"
            for name, about in self._about.items()
            if about["refused"] or about["dtype"] is None
        }

    def variable(self, name: str, *, decoded: bool | None = None) -> Variable:
        """A variable."""
        if name in self.left_out:
            raise Usage(f"{name} of {self._source.url} cannot be read: {self.left_out[name]}")
        about = self._about[name]
        if (self._decoded if decoded is None else decoded) and about["decoded"] is None:
            raise Usage(f"the attributes of {name} make no sense; open the file with decoded=False")
        return Variable(self._source, about, self._decoded if decoded is None else decoded)

    def attributes_of(self, name: str) -> dict[str, Any]:
        """The attributes of a variable."""
        return attributes(self._about[name]["attributes"])

    def dims_of(self, name: str) -> tuple[str, ...]:
        """The names of the axes of a variable in its own group, empty where there is none; also of those left out."""
        return tuple(one.split("/")[-1] for one in self._about[name]["dims"])

    def unread_of(self, name: str | None = None) -> dict[str, str]:
        """The attributes of a variable, or of the file, that are left out: what they are."""
        return unread(self._about[name]["attributes"]) if name is not None else self._unread

    def all_names(self) -> list[str]:
        """The names of all variables, also of those that are left out."""
        return list(self._about)

    def groups(self) -> set[str]:
        """The groups, also those without variables, and those that they lie in."""
        found = set(self._groups)
        for name in self._about:
            parts = name.split("/")[:-1]
            found |= {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
        return found

    def __getitem__(self, name: str) -> Array:
        if name not in self._about:
            raise KeyError(f"{name}; there is {', '.join(self)}")
        return Array.of(self.variable(name))

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self._about if name not in self.left_out])

    def __len__(self) -> int:
        return len(self._about) - len(self.left_out)

    def __repr__(self) -> str:
        parts = [f"{name}: {array.shape} {array.dtype}" for name, array in self.items()]
        return f"<gristmill.Arrays of {self._source.url}: {', '.join(parts)}>"

    def __str__(self) -> str:
        facts = _shown.of_arrays(self)
        each = [(name, f"{self[name].shape} {self[name].dtype}") for name in list(self)[: _shown.VARIABLES]]
        return _shown.text(_shown.Facts(facts.title, facts.lines + each, facts.nodes), "gristmill.Arrays")

    def _repr_html_(self) -> str:
        return _html.arrays(self)


def attributes(found: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as netCDF4 gives them: text, numbers of NumPy, arrays of several. Numbers of JSON are Python's own."""
    out: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, tuple):
            if len(value) == 1:
                continue
            dtype, content, scalar, typed = value
            numbers = np.frombuffer(content, dtype=numpy_code(dtype))
            some: Any = numbers.copy() if typed else numbers.tolist()
            out[name] = some[0] if scalar else some
        else:
            out[name] = value
    return out


def unread(found: Mapping[str, Any]) -> dict[str, str]:
    """Attributes that are neither text nor numbers: what they are."""
    return {name: value[0] for name, value in found.items() if isinstance(value, tuple) and len(value) == 1}


def open_arrays(url: Location, *, decoded: bool = True) -> Arrays:
    """Opens a file of a scientific format (netCDF, HDF5, Zarr, ``.npy``) as a mapping of names to arrays.

    >>> import gristmill as gm, numpy as np
    >>> np.save("numbers.npy", np.arange(6.0))
    >>> arrays = gm.open_arrays("numbers.npy")
    >>> list(arrays), float(arrays["data"].max())
    (['data'], 5.0)

    url
        A file or a Zarr folder of this machine, a layout file (``*.grist``), or a file or directory of a cluster.
    decoded
        Whether elements are what the attributes of the CF conventions say (``scale_factor``, ``_FillValue`` and so on), in
        the types that xarray gives, or what is stored.
    """
    return Arrays(url, decoded=decoded)
