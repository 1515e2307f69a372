"""Variables of files as variables of xarray, decoded as xarray does."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays.array import Array
from .._arrays.file_arrays import Arrays

if TYPE_CHECKING:
    import xarray as xr

#: Attributes that say how elements are stored. xarray moves them into the encoding when it decodes.
_ENCODING_ATTRIBUTES = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")

#: Names of filters in the encoding of xarray.
_FILTERS = {"deflate": "zlib", "shuffle": "shuffle", "fletcher32": "fletcher32"}


@dataclass(frozen=True)
class Decoding:
    """The decoding that the user selects, with the keywords of :func:`xarray.open_dataset`."""

    mask_and_scale: Any = True
    decode_times: Any = True
    decode_timedelta: Any = None
    use_cftime: Any = None
    concat_characters: Any = True
    decode_coords: Any = True

    @classmethod
    def from_keywords(cls, decode_cf: bool | None, given: Mapping[str, Any]) -> Decoding:
        """Makes a decoding of the keywords that are not ``None``. ``decode_cf=False`` decodes nothing."""
        if decode_cf is False:
            return cls(False, False, False, None, False, False)
        return cls(**{name: value for name, value in given.items() if value is not None})

    def for_variable(self, name: str) -> dict[str, Any]:
        """Returns the keywords for one variable."""
        return {
            "mask_and_scale": _item(self.mask_and_scale, name, True),
            "decode_times": _item(self.decode_times, name, True),
            "decode_timedelta": _item(self.decode_timedelta, name, None),
            "use_cftime": _item(self.use_cftime, name, None),
            "concat_characters": _item(self.concat_characters, name, True),
        }


def _item(given: Any, name: str, default: Any) -> Any:
    return given.get(name, default) if isinstance(given, Mapping) else given


def decode_variables(
    arrays: Arrays, names: Mapping[str, str], more: Mapping[str, xr.Variable], attrs: dict[str, Any], how: Decoding
) -> tuple[dict[str, xr.Variable], dict[str, Any], set[str]]:
    """Returns variables by name, the remaining attributes, and the names of coordinates.

    Numbers stay where they are stored; storage nodes mask and scale them. Variables that become another type, such as
    times, are read and decoded by xarray. So are ``more``, the variables of another reader.
    """
    import xarray as xr

    attributes = {name: arrays.attributes_of(path) for name, path in names.items()}
    _bounds_are_times(attributes, how)
    raw: dict[str, xr.Variable] = {}
    ours = set()
    for name, path in names.items():
        stays = not _changes_kind(name, arrays, path, attributes[name], how)
        if stays:
            ours.add(name)
        raw[name] = _variable(arrays, path, attributes[name], stays and how.for_variable(name)["mask_and_scale"])
        if not stays:
            raw[name] = read_variable(raw[name])
    raw |= more
    settings: dict[str, Any] = {}
    for option in ("mask_and_scale", "decode_times", "decode_timedelta", "concat_characters"):
        settings[option] = {name: False if name in ours else how.for_variable(name)[option] for name in raw}
    if how.decode_times is False:
        # One value for all variables. With a value for each, xarray gives bounds the units of their times.
        settings["decode_times"] = False
    settings["use_cftime"] = {name: None if name in ours else how.for_variable(name)["use_cftime"] for name in raw}
    decode: Any = xr.conventions.decode_cf_variables
    return decode(raw, attrs, decode_coords=how.decode_coords, **settings)  # type: ignore[no-any-return]


def _bounds_are_times(attributes: Mapping[str, dict[str, Any]], how: Decoding) -> None:
    """Copies the units of times to their bounds, which need not have units."""
    if not how.decode_times:
        return
    for attrs in attributes.values():
        units, bounds = attrs.get("units"), attrs.get("bounds")
        if isinstance(units, str) and "since" in units and isinstance(bounds, str) and bounds in attributes:
            for name in ("units", "calendar"):
                if name in attrs:
                    attributes[bounds].setdefault(name, attrs[name])


def _changes_kind(name: str, arrays: Arrays, path: str, attrs: dict[str, Any], how: Decoding) -> bool:
    """Returns whether xarray decodes the numbers of a variable to times, time differences or truth values."""
    import xarray as xr

    if not isinstance(attrs.get("units"), str) and "dtype" not in attrs:
        return False
    empty = xr.Variable("x", np.empty(0, arrays.variable(path, decoded=False).dtype), attrs)
    with warnings.catch_warnings():
        # The warnings appear again when the elements are decoded.
        warnings.simplefilter("ignore")
        try:
            found = xr.conventions.decode_cf_variable(name, empty, **how.for_variable(name))
        except ValueError:
            # The error is raised again for the elements.
            return True
    return found.dtype.kind not in "iuf"


def _variable(arrays: Arrays, path: str, attrs: dict[str, Any], masked: bool) -> xr.Variable:
    """Makes a variable with the attributes and the encoding that xarray's decoding would leave."""
    import xarray as xr

    found = arrays.variable(path, decoded=bool(masked))
    dims = tuple(one.split("/")[-1] or f"dim_{at}" for at, one in enumerate(found.dims or [""] * len(found.shape)))
    array = Array._from_variable(found)
    encoding: dict[str, Any] = {"dtype": found.stored, "source": arrays._source.url}
    filters = set(found._about["filters"] or ())
    if found.chunks:
        encoding["preferred_chunks"] = dict(zip(dims, array.storage_chunks))
    if arrays.format.startswith("Zarr"):
        encoding["chunks"] = array.storage_chunks
    elif arrays.format in ("netCDF-4", "HDF5"):
        encoding["original_shape"] = array.shape
        if filters or array.storage_chunks != array.shape:
            encoding |= {"chunksizes": array.storage_chunks, "contiguous": False}
        encoding |= {theirs: True for name, theirs in _FILTERS.items() if name in filters}
    if masked:
        encoding |= {one: attrs.pop(one) for one in _ENCODING_ATTRIBUTES if one in attrs}
    return xr.Variable(dims, array, attrs, encoding)


def read_variable(one: xr.Variable) -> xr.Variable:
    """Returns a variable with its elements in memory.

    It is for small variables that are always needed, so it is no fallback.
    """
    import xarray as xr

    from .._expressions.evaluation import evaluate

    data = one._data
    if not isinstance(data, Array):
        return one
    return xr.Variable(one.dims, np.array(evaluate(data._node)), one.attrs, one.encoding)
