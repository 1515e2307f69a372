"""Arrays of a file, by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._arguments.element_types import numpy_code
from .._errors import Usage
from .._requests.locations import Location
from .._variables.source import Source
from .._variables.variable import Variable
from . import descriptions, html
from .array import Array


class Arrays(Mapping[str, Array]):
    """A mapping from the names of the variables of a file (``group/name``) to arrays.

    The elements stay where they are stored. Only variables of numbers are in it; :attr:`left_out` has the others.
    The methods ``keys``, ``values``, ``items`` and ``get`` are those of any mapping. An unknown name raises
    ``KeyError``.

    >>> import gristmill as gm, xarray as xr
    >>> tos = xr.DataArray([280.5, 281.5], dims="time", attrs={"units": "K"})
    >>> days = xr.Dataset({"tos": tos, "name": ("time", ["a", "b"])}, attrs={"title": "Two days"})
    >>> days.to_netcdf("days.nc", unlimited_dims=["time"])
    >>> arrays = gm.open_arrays("days.nc")
    >>> arrays["tos"].shape, list(arrays), list(arrays.left_out)
    ((2,), ['tos'], ['name'])
    >>> arrays.format, arrays.attrs, arrays.sizes, arrays.unlimited
    ('netCDF-4', {'title': 'Two days'}, {'time': 2}, {'time'})

    The examples of the methods use these ``arrays``.
    """

    #: Name of the format.
    format: str
    #: Attributes of the file.
    attrs: dict[str, Any]
    #: Lengths of the dimensions, by name.
    sizes: dict[str, int]
    #: Names of dimensions that may grow.
    unlimited: set[str]
    #: Reasons why variables cannot be read, by name.
    left_out: dict[str, str]

    def __init__(self, url: Location, *, decoded: bool = True) -> None:
        text = os.fsdecode(url)
        self._source = Source(text if "://" in text else os.path.abspath(text))
        opened = self._source.opened
        self._about = {about["name"]: about for about in opened.variables()}
        self._decoded = decoded
        self.format = opened.format
        self.attrs = to_attributes(opened.attributes())
        self._unread = unread_attributes(opened.attributes())
        self._groups = set(opened.groups())
        self.sizes = {name: length for name, length, _ in opened.dimensions()}
        self.unlimited = {name for name, _, unlimited in opened.dimensions() if unlimited}
        self.left_out = {
            name: about["refused"] or f"it is {about['kind']}"
            for name, about in self._about.items()
            if about["refused"] or about["dtype"] is None
        }

    def variable(self, name: str, *, decoded: bool | None = None) -> Variable:
        """Returns the description of a variable, decoded or as it is stored: name, type, shape and chunks.

        The default for ``decoded`` is that of the file.

        >>> arrays.variable("tos").shape, arrays.variable("tos").dtype
        ((2,), dtype('float64'))

        Raises :class:`Usage` if it cannot be read or decoded, and ``KeyError`` if there is no such variable.
        """
        if name in self.left_out:
            raise Usage(f"{name} of {self._source.url} cannot be read: {self.left_out[name]}")
        about = self._about[name]
        if (self._decoded if decoded is None else decoded) and about["decoded"] is None:
            raise Usage(f"the attributes of {name} make no sense; open the file with decoded=False")
        return Variable(self._source, about, self._decoded if decoded is None else decoded)

    def attributes_of(self, name: str) -> dict[str, Any]:
        """Returns the attributes of a variable by their names: text, numbers, and arrays or lists with one axis.

        >>> arrays.attributes_of("tos")["units"]
        'K'

        Raises ``KeyError`` if there is no such variable.
        """
        return to_attributes(self._about[name]["attributes"])

    def dims_of(self, name: str) -> tuple[str, ...]:
        """Returns the names of the axes of any variable, without their groups; an empty name if the file has none.

        >>> arrays.dims_of("name")
        ('time',)

        Raises ``KeyError`` if there is no such variable.
        """
        return tuple(one.split("/")[-1] for one in self._about[name]["dims"])

    def unread_of(self, name: str | None = None) -> dict[str, str]:
        """Returns the attributes of a variable, or of the file, that are neither text nor numbers, with their kinds.

        >>> arrays.unread_of("tos"), arrays.unread_of()
        ({}, {})

        Raises ``KeyError`` if there is no such variable.
        """
        return unread_attributes(self._about[name]["attributes"]) if name is not None else self._unread

    def all_names(self) -> list[str]:
        """Returns the names of all variables, including those of :attr:`left_out`.

        >>> sorted(arrays.all_names())
        ['name', 'tos']
        """
        return list(self._about)

    def groups(self) -> set[str]:
        """Returns the names of all groups, including groups without variables and parents of groups.

        >>> days.to_netcdf("groups.nc", group="ocean/surface")
        >>> sorted(gm.open_arrays("groups.nc").groups())
        ['ocean', 'ocean/surface']
        """
        found = set(self._groups)
        for name in self._about:
            parts = name.split("/")[:-1]
            found |= {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
        return found

    def __getitem__(self, name: str) -> Array:
        if name not in self._about:
            raise KeyError(f"{name}; there is {', '.join(self)}")
        return Array._from_variable(self.variable(name))

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self._about if name not in self.left_out])

    def __len__(self) -> int:
        return len(self._about) - len(self.left_out)

    def __repr__(self) -> str:
        parts = [f"{name}: {array.shape} {array.dtype}" for name, array in self.items()]
        return f"<gristmill.Arrays of {self._source.url}: {', '.join(parts)}>"

    def __str__(self) -> str:
        facts = descriptions.file_facts(self)
        each = [(name, f"{self[name].shape} {self[name].dtype}") for name in list(self)[: descriptions.VARIABLES]]
        with_arrays = descriptions.Facts(facts.title, facts.lines + each, facts.nodes)
        return descriptions.facts_text(with_arrays, "gristmill.Arrays")

    def _repr_html_(self) -> str:
        return html.file_page(self)


def to_attributes(found: Mapping[str, Any]) -> dict[str, Any]:
    """Converts attributes as netCDF4 does: text, numbers of NumPy, and arrays.

    Numbers of JSON become numbers of Python.
    """
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


def unread_attributes(found: Mapping[str, Any]) -> dict[str, str]:
    """Returns the attributes that are neither text nor numbers, with their kinds."""
    return {name: value[0] for name, value in found.items() if isinstance(value, tuple) and len(value) == 1}


def open_arrays(url: Location, *, decoded: bool = True) -> Arrays:
    """Opens a file with arrays (netCDF, HDF5, Zarr, ``.npy``, ``.csv``) as a mapping of names to arrays.

    >>> import gristmill as gm, numpy as np
    >>> np.save("numbers.npy", np.arange(6.0))
    >>> arrays = gm.open_arrays("numbers.npy")
    >>> list(arrays), float(arrays["data"].max())
    (['data'], 5.0)

    url
        A file or a Zarr folder of this machine, a layout file (``*.grist``), or a file or directory of a cluster.
    decoded
        Selects whether elements are decoded by attributes of the CF conventions (``scale_factor``, ``_FillValue`` and
        so on), into the types that xarray uses, or are the stored values.

    Raises :class:`NotFound`, :class:`Denied`, :class:`Usage` if the file has no such format, :class:`GristmillError`
    if it is damaged, and :class:`Unavailable` if a node does not answer.
    """
    return Arrays(url, decoded=decoded)
