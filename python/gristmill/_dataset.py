"""Files as datasets of xarray."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ._array import Array
from ._arrays import Arrays, open_arrays
from ._errors import NotFound, Usage
from ._other_readers import read_others
from ._place import Location
from ._variables import Decoding, decoded, read

if TYPE_CHECKING:
    import xarray as xr

#: Coordinates with fewer elements than this are read: they are scalars.
SMALL = 1

#: What xarray calls a variable without a name in a file.
_NO_NAME = "__values__"

#: Keywords of xarray's own function that mean nothing here, and why.
_REFUSED = {
    "cache": "elements that were read are kept anyway, up to set_options(cache_bytes=...)",
    "inline_array": "how blocks get into graphs is decided here",
    "from_array_kwargs": "blocks stay where they are stored; give chunks alone",
    "chunked_array_type": "with chunks the arrays are dask's",
    "lock": "files may be read by several threads at once",
    "format": "the format is found in the file itself",
}


def open_dataset(
    url: Location,
    *,
    chunks: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    group: str | None = None,
    drop_variables: str | Iterable[str] | None = None,
    decode_cf: bool | None = None,
    mask_and_scale: Any = None,
    decode_times: Any = None,
    decode_timedelta: Any = None,
    use_cftime: Any = None,
    concat_characters: Any = None,
    decode_coords: Any = None,
    engine: str | None = None,
    backend_kwargs: Mapping[str, Any] | None = None,
    **more: Any,
) -> xr.Dataset:
    """Opens a file as a dataset of xarray whose reductions run where the data is stored.

    >>> import gristmill as gm, numpy as np
    >>> np.save("line.npy", np.arange(4.0))
    >>> float(gm.open_dataset("line.npy")["data"].mean())
    1.5

    Labels of axes are read, and what becomes times or is text; all else stays where it is until it is needed. Variables
    that are no numbers, and attributes of groups, are read by the package that xarray reads such files with (h5netcdf, zarr,
    scipy), if it is installed. What cannot be read is left out with a warning. Axes that an HDF5 file has no names for are called
    ``phony_dim_N``, as netCDF4 calls them.

    chunks
        With it (``{}`` for those of the file) variables are arrays of dask, whose blocks are reduced where they are stored.
    group
        Its variables instead of those of the root, as ``"ocean/surface"``.
    drop_variables, decode_cf, mask_and_scale, decode_times, decode_timedelta, use_cftime, concat_characters, decode_coords
        As :func:`xarray.open_dataset` takes them.
    storage_options
        There are none: who asks a cluster is said by ``GRISTMILL_TOKEN`` and the like.
    """
    import xarray as xr

    if backend_kwargs:
        rest = dict(backend_kwargs)
        known = {name: rest.pop(name) for name in ("group", "storage_options") if name in rest}
        if rest:
            raise Usage(f"backend_kwargs={rest}: the keywords are those of open_dataset; give them there")
        group, storage_options = known.get("group", group), known.get("storage_options", storage_options)
    check_keywords("open_dataset", engine, storage_options, more)
    given = {
        "mask_and_scale": mask_and_scale,
        "decode_times": decode_times,
        "decode_timedelta": decode_timedelta,
        "use_cftime": use_cftime,
        "concat_characters": concat_characters,
        "decode_coords": decode_coords,
    }
    arrays = open_arrays(url)
    dataset = of_group(arrays, group or "", drop_variables, Decoding.of(decode_cf, given))
    dataset.set_close(arrays._source.close)
    if chunks is None:
        return dataset
    chunked = _chunked(dataset, chunks)
    chunked.set_close(arrays._source.close)
    return chunked


def open_groups(
    url: Location,
    *,
    group: str | None = None,
    drop_variables: str | Iterable[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **decoding: Any,
) -> dict[str, xr.Dataset]:
    """The groups of a file, below ``group`` if there is one, as datasets by their paths. ``decoding`` is as for
    :func:`open_dataset`."""
    check_keywords("open_groups", None, storage_options, {})
    how = Decoding.of(None, decoding)
    arrays = open_arrays(url)
    top = (group or "").strip("/")
    below = [one for one in sorted(arrays.groups()) if not top or one.startswith(f"{top}/")]
    paths = {"/": top} | {"/" + one.removeprefix(top).strip("/"): one for one in below}
    found = {path: of_group(arrays, name, drop_variables, how) for path, name in paths.items()}
    for dataset in found.values():
        dataset.set_close(arrays._source.close)
    return found


def check_keywords(
    called: str, engine: str | None, storage_options: Mapping[str, Any] | None, more: Mapping[str, Any]
) -> None:
    """Refuses keywords with a sentence."""
    if engine not in (None, "gristmill"):
        raise Usage(f"engine={engine!r}: this is the engine 'gristmill'; for others call xarray.{called}")
    if storage_options:
        names = ", ".join(storage_options)
        text = "cannot be said here; set GRISTMILL_TOKEN, GRISTMILL_TOKEN_FILE or GRISTMILL_CA"
        raise Usage(f"storage_options: {names} {text}")
    for name, value in more.items():
        if name not in _REFUSED:
            raise TypeError(f"{called} takes no keyword {name!r}")
        if value is not None:
            raise Usage(f"{name}={value!r} means nothing here: {_REFUSED[name]}")


def of_group(
    arrays: Arrays, group: str, drop_variables: str | Iterable[str] | None, how: Decoding
) -> xr.Dataset:
    """The variables of one group, by their own names."""
    import xarray as xr

    prefix = f"{group.strip('/')}/" if group.strip("/") else ""
    dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
    names = {
        path.removeprefix(prefix): path
        for path in arrays.all_names()
        if path.startswith(prefix) and "/" not in path.removeprefix(prefix)
    }
    if prefix and prefix.rstrip("/") not in arrays.groups():
        groups = ", ".join(sorted(arrays.groups())) or "none"
        raise NotFound(f"{arrays._source.url} has no group {group!r}; there are: {groups}")
    kept = {name: path for name, path in names.items() if name not in dropped}
    others = {name for name, path in kept.items() if path in arrays.left_out}
    more: dict[str, xr.Variable] = {}
    attrs = None if prefix else arrays.attrs
    if others or prefix:
        more, found = read_others(arrays, prefix.rstrip("/"), names, others)
        if attrs is None and found is None:
            warnings.warn(f"the attributes of {group} are left out: install h5netcdf or zarr", UserWarning, stacklevel=3)
        attrs = attrs if attrs is not None else found or {}
    for name in sorted(others - more.keys()):
        warnings.warn(f"{name} is left out: {arrays.left_out[kept[name]]}", UserWarning, stacklevel=3)
    if not prefix:
        _warn_of_attributes(arrays._source.url, arrays.unread_of())
    for name in sorted(kept.keys() - others):
        _warn_of_attributes(name, arrays.unread_of(kept[name]))
    numbers = {name: path for name, path in kept.items() if name not in others}
    variables: dict[Any, xr.Variable]
    variables, attrs, named = decoded(arrays, numbers, more, dict(attrs or {}), how)
    # In the order of the file.
    variables = {name: variables[name] for name in kept if name in variables}
    for name, one in variables.items():
        # Labels are compared and shown all the time; what xarray decoded is in memory, but for its last step.
        stays = isinstance(one._data, Array)
        if not stays:
            one.load()
        elif one.dims == (name,) or (name in named and one.size <= SMALL):
            variables[name] = read(one)
    if _NO_NAME in variables:
        variables = {None if name == _NO_NAME else name: one for name, one in variables.items()}
    coords = {name: one for name, one in variables.items() if name in named or one.dims == (name,)}
    data = {name: one for name, one in variables.items() if name not in coords}
    dataset = xr.Dataset(data, coords, attrs)
    dataset.encoding["unlimited_dims"] = {
        path.removeprefix(prefix)
        for path in arrays.unlimited
        if path.startswith(prefix) and "/" not in path.removeprefix(prefix)
    }
    dataset.encoding["source"] = arrays._source.url
    return dataset


def _warn_of_attributes(of: str, unread: Mapping[str, str]) -> None:
    if unread:
        listed = ", ".join(f"{name} ({what})" for name, what in unread.items())
        warnings.warn(f"attributes of {of} are left out, as they are neither text nor numbers: {listed}", UserWarning, stacklevel=4)


def _chunked(dataset: xr.Dataset, chunks: Any) -> xr.Dataset:
    """With arrays of dask whose blocks stay where they are stored."""
    import xarray as xr

    from ._chunks import in_dask

    def of(one: xr.Variable) -> xr.Variable:
        array = one._data
        assert isinstance(array, Array)
        if not isinstance(chunks, Mapping):
            given: Any = chunks
        else:
            stored = dict(zip(one.dims, array.storage_chunks))
            given = tuple(_length(chunks.get(dim, stored[dim]), size) for dim, size in zip(one.dims, one.shape))
        blocks = in_dask(array, given)
        return xr.Variable(one.dims, blocks, one.attrs, one.encoding)

    # A single number has no blocks, for xarray neither.
    ours = {name: of(one) for name, one in dataset.variables.items() if one.ndim and isinstance(one._data, Array)}
    chunked = dataset.assign({name: one for name, one in ours.items() if name in dataset.data_vars})
    return chunked.assign_coords({name: one for name, one in ours.items() if name in dataset.coords})


def _length(given: Any, size: int) -> Any:
    return size if given in (-1, None) else given
