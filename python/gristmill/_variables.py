"""Variables of files as variables of xarray, decoded as xarray decodes them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._array import Array
from ._arrays import Arrays

if TYPE_CHECKING:
    import xarray as xr

#: Attributes that say how elements are stored; xarray keeps them apart once they are heard.
_CODED = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")

#: Filters by their names in netCDF.
_FILTERS = {"deflate": "zlib", "shuffle": "shuffle", "fletcher32": "fletcher32"}


@dataclass(frozen=True)
class Decoding:
    """What is to be decoded; the values are those of :func:`xarray.open_dataset`."""

    mask_and_scale: Any = True
    decode_times: Any = True
    decode_timedelta: Any = None
    use_cftime: Any = None
    concat_characters: Any = True
    decode_coords: Any = True

    @classmethod
    def of(cls, decode_cf: bool | None, given: Mapping[str, Any]) -> Decoding:
        """What was given, where something was; nothing at all with ``decode_cf=False``."""
        if decode_cf is False:
            return cls(False, False, False, None, False, False)
        return cls(**{name: value for name, value in given.items() if value is not None})

    def of_variable(self, name: str) -> dict[str, Any]:
        """What is to be decoded of one variable."""
        return {
            "mask_and_scale": _item(self.mask_and_scale, name, True),
            "decode_times": _item(self.decode_times, name, True),
            "decode_timedelta": _item(self.decode_timedelta, name, None),
            "use_cftime": _item(self.use_cftime, name, None),
            "concat_characters": _item(self.concat_characters, name, True),
        }


def _item(given: Any, name: str, default: Any) -> Any:
    return given.get(name, default) if isinstance(given, Mapping) else given


def decoded(
    arrays: Arrays, names: Mapping[str, str], more: Mapping[str, xr.Variable], attrs: dict[str, Any], how: Decoding
) -> tuple[dict[str, xr.Variable], dict[str, Any], set[str]]:
    """Variables by name, the attributes that are left, and the names of coordinates.

    Numbers stay where they are, masked and scaled by our own expressions. What becomes something else, as times do, is
    read and decoded by xarray itself, together with ``more``, that another reader gave.
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
        raw[name] = _variable(arrays, path, attributes[name], stays and how.of_variable(name)["mask_and_scale"])
        if not stays:
            raw[name] = read(raw[name])
    raw |= more
    settings: dict[str, Any] = {}
    for option in ("mask_and_scale", "decode_times", "decode_timedelta", "concat_characters"):
        settings[option] = {name: False if name in ours else how.of_variable(name)[option] for name in raw}
    if how.decode_times is False:
        # Of all at once: else xarray gives bounds the units of their times.
        settings["decode_times"] = False
    settings["use_cftime"] = {name: None if name in ours else how.of_variable(name)["use_cftime"] for name in raw}
    return xr.conventions.decode_cf_variables(raw, attrs, decode_coords=how.decode_coords, **settings)  # type: ignore[return-value]


def _bounds_are_times(attributes: Mapping[str, dict[str, Any]], how: Decoding) -> None:
    """Gives the bounds of times the units of these, which they need not repeat."""
    if not how.decode_times:
        return
    for attrs in attributes.values():
        units, bounds = attrs.get("units"), attrs.get("bounds")
        if isinstance(units, str) and "since" in units and isinstance(bounds, str) and bounds in attributes:
            for name in ("units", "calendar"):
                if name in attrs:
                    attributes[bounds].setdefault(name, attrs[name])


def _changes_kind(name: str, arrays: Arrays, path: str, attrs: dict[str, Any], how: Decoding) -> bool:
    """Whether xarray makes of these numbers times, time differences or truth values."""
    import xarray as xr

    if not isinstance(attrs.get("units"), str) and "dtype" not in attrs:
        return False
    empty = xr.Variable("x", np.empty(0, arrays.variable(path, decoded=False).dtype), attrs)
    with warnings.catch_warnings():
        # They come once more when the elements are decoded.
        warnings.simplefilter("ignore")
        try:
            found = xr.conventions.decode_cf_variable(name, empty, **how.of_variable(name))
        except ValueError:
            # It is raised again for the elements.
            return True
    return found.dtype.kind not in "iuf"


def _variable(arrays: Arrays, path: str, attrs: dict[str, Any], masked: bool) -> xr.Variable:
    """A variable with attributes and encoding as xarray's own decoding leaves them."""
    import xarray as xr

    found = arrays.variable(path, decoded=bool(masked))
    dims = tuple(one.split("/")[-1] or f"dim_{at}" for at, one in enumerate(found.dims or [""] * len(found.shape)))
    array = Array.of(found)
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
        encoding |= {one: attrs.pop(one) for one in _CODED if one in attrs}
    return xr.Variable(dims, array, attrs, encoding)


def read(one: xr.Variable) -> xr.Variable:
    """The variable with its elements in memory; for what is small and always needed, so it is no fallback."""
    import xarray as xr

    from ._evaluate import evaluate

    data = one._data
    if not isinstance(data, Array):
        return one
    return xr.Variable(one.dims, np.array(evaluate(data._node)), one.attrs, one.encoding)
