"""Files as datasets of xarray."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ._array import Array
from ._arrays import Arrays, open_arrays
from ._errors import Usage
from ._place import Location

if TYPE_CHECKING:
    import xarray as xr

#: Attributes that say how elements are stored; xarray keeps them apart once they are heard.
_CODED = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")

#: Variables with fewer elements than this are read where nothing names them: they are scalars and bounds of cells.
SMALL = 1


def open_dataset(
    url: Location,
    *,
    chunks: Any = None,
    drop_variables: str | Iterable[str] | None = None,
    decode_times: bool = True,
    decode_coords: bool = True,
    mask_and_scale: bool = True,
) -> xr.Dataset:
    """Opens a file as a dataset of xarray whose reductions run where the data is stored.

    >>> import gristmill as gm, numpy as np
    >>> np.save("line.npy", np.arange(4.0))
    >>> float(gm.open_dataset("line.npy")["data"].mean())
    1.5

    Coordinates are read; all else stays where it is until it is needed. With ``chunks`` (``{}`` for those of the file) variables
    are arrays of dask, whose blocks are reduced where they are stored.
    """
    import xarray as xr

    arrays = open_arrays(url, decoded=mask_and_scale)
    drop = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
    for name, why in arrays.left_out.items():
        if name not in drop:
            warnings.warn(f"{name} is left out: {why}", UserWarning, stacklevel=2)
    variables = {
        name: variable(arrays, name, decode_times, mask_and_scale)
        for name in arrays
        if name not in drop and "/" not in name
    }
    named = _coordinates(variables) if decode_coords else set()
    coords = {name: one for name, one in variables.items() if one.dims == (name,) or name in named}
    for name in coords:
        # Labels are compared and shown all the time.
        if coords[name].dims == (name,) or coords[name].size <= SMALL:
            coords[name] = _read(coords[name])
    data = {name: one for name, one in variables.items() if name not in coords}
    dataset = xr.Dataset(data, coords, arrays.attrs)
    dataset.encoding["unlimited_dims"] = arrays.unlimited
    dataset.encoding["source"] = arrays._source.url
    return dataset if chunks is None else _chunked(dataset, chunks)


def variable(arrays: Arrays, name: str, decode_times: bool, decoded: bool) -> xr.Variable:
    """A variable of xarray: the array, with attributes and encoding as xarray's own decoding leaves them."""
    import xarray as xr

    attrs = arrays.attributes_of(name)
    times = decode_times and _is_time(attrs)
    # Times are decoded by xarray itself, from what is stored, where they are: they are few.
    found = arrays.variable(name, decoded=decoded and not times)
    dims = tuple(one.split("/")[-1] or f"dim_{at}" for at, one in enumerate(found.dims or [""] * len(found.shape)))
    array = Array.of(found)
    encoding: dict[str, Any] = {"dtype": found.stored}
    if found.chunks:
        encoding["preferred_chunks"] = dict(zip(dims, array.storage_chunks))
    if times:
        values = xr.Variable(dims, _values(array), attrs)
        return xr.conventions.decode_cf_variable(name, values)
    if decoded:
        encoding |= {one: attrs.pop(one) for one in _CODED if one in attrs}
    return xr.Variable(dims, array, attrs, encoding)


def _values(array: Array) -> np.ndarray[Any, Any]:
    """The elements of something that is small and always needed; no fallback."""
    from ._evaluate import evaluate

    return np.array(evaluate(array._node))


def _read(one: xr.Variable) -> xr.Variable:
    import xarray as xr

    data = one._data
    return xr.Variable(one.dims, _values(data), one.attrs, one.encoding) if isinstance(data, Array) else one


def _is_time(attrs: dict[str, Any]) -> bool:
    units = attrs.get("units")
    return isinstance(units, str) and " since " in units


def _coordinates(variables: dict[str, xr.Variable]) -> set[str]:
    """The variables that ``coordinates`` attributes name, which go to the encoding as in xarray."""
    named: set[str] = set()
    for one in variables.values():
        names = one.attrs.get("coordinates")
        if isinstance(names, str) and all(name in variables for name in names.split()):
            named.update(names.split())
            one.encoding["coordinates"] = one.attrs.pop("coordinates")
    return named


def _chunked(dataset: xr.Dataset, chunks: Any) -> xr.Dataset:
    """With arrays of dask whose blocks stay where they are stored."""
    import xarray as xr

    from ._chunks import in_dask

    def of(one: xr.Variable) -> xr.Variable:
        array = one._data
        if not isinstance(array, Array):
            return one
        if not isinstance(chunks, Mapping):
            given: Any = chunks
        else:
            stored = dict(zip(one.dims, array.storage_chunks))
            given = tuple(_length(chunks.get(dim, stored[dim]), size) for dim, size in zip(one.dims, one.shape))
        blocks = in_dask(array, given)
        return xr.Variable(one.dims, blocks, one.attrs, one.encoding)

    return dataset.assign({name: of(one.variable) for name, one in dataset.data_vars.items()})


def open_mfdataset(
    urls: Iterable[Location], *, chunks: Any = -1, combine: str = "by_coords", concat_dim: Any = None, **more: Any
) -> xr.Dataset:
    """Opens several files as one dataset, of arrays of dask with one block for each file where ``chunks`` says nothing else.

    combine, concat_dim
        How they are put together; see :func:`xarray.open_mfdataset`. ``more`` is for :func:`open_dataset`.
    """
    import xarray as xr

    parts = [open_dataset(url, chunks={} if chunks is None else chunks, **more) for url in urls]
    if combine == "nested":
        return xr.combine_nested(parts, concat_dim=concat_dim, data_vars="all", combine_attrs="override")
    if combine != "by_coords":
        raise Usage(f"combine={combine!r}; use 'by_coords' or 'nested'")
    return cast("xr.Dataset", xr.combine_by_coords(parts, combine_attrs="override"))


def _length(given: Any, size: int) -> Any:
    return size if given in (-1, None) else given
