"""Opening files as datasets of xarray."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._arrays.array import Array
from .._arrays.file_arrays import Arrays, open_arrays
from .._errors import NotFound, Usage
from .._requests.locations import Location
from .decoding import Decoding, decode_variables, read_variable
from .other_readers import read_others

if TYPE_CHECKING:
    import xarray as xr

#: Coordinates with at most this many elements are read.
MAX_READ_COORDINATE = 1

#: Name that xarray gives to a variable without a name in a file.
_UNNAMED = "__values__"

#: Keywords of xarray's function that have no meaning here, with the reason.
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
    """Opens a file as a :class:`xarray.Dataset` whose reductions run where the data is stored.

    >>> import gristmill as gm, numpy as np
    >>> np.save("line.npy", np.arange(4.0))
    >>> float(gm.open_dataset("line.npy")["data"].mean())
    1.5

    Labels of axes, times and text are read at once. All other elements stay where they are until they are needed.
    Variables without numbers, and attributes of groups, are read by the package that xarray uses for such files
    (h5netcdf, zarr, scipy), if it is installed. Variables that cannot be read are left out with a warning. Axes
    without a name in an HDF5 file are called ``phony_dim_N``, as in netCDF4.

    url
        A file or a Zarr folder of this machine, a layout file (``*.grist``), or a file or directory of a cluster.
    chunks
        Blocks of arrays of dask, as in :func:`xarray.open_dataset`; ``{}`` selects the chunks of the file. The blocks
        are reduced where they are stored. Without ``chunks`` there are no arrays of dask.
    group
        A group whose variables are opened instead of those of the root, as ``"ocean/surface"``.
    drop_variables, decode_cf, mask_and_scale, decode_times, decode_timedelta, use_cftime, concat_characters, ...
        Keywords of :func:`xarray.open_dataset`; the last one is ``decode_coords``.
    storage_options
        Must be empty. ``GRISTMILL_TOKEN``, ``GRISTMILL_TOKEN_FILE`` and ``GRISTMILL_CA`` set the identity of the
        client.
    engine, backend_kwargs
        For calls that were written for xarray: ``"gristmill"``, and a dictionary with ``group`` and
        ``storage_options``.
    more
        Other keywords of :func:`xarray.open_dataset`. They are refused, unless they are ``None``.

    Raises :class:`Usage` for keywords without a meaning here, ``TypeError`` for unknown keywords, :class:`NotFound`
    for a missing file or group, :class:`Denied`, and :class:`Unavailable` if a node does not answer.
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
    dataset = open_group(arrays, group or "", drop_variables, Decoding.from_keywords(decode_cf, given))
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
    """Opens the groups of a file, or those below ``group``, as datasets by their paths.

    ``decoding`` has keywords of :func:`open_dataset`.
    """
    check_keywords("open_groups", None, storage_options, {})
    how = Decoding.from_keywords(None, decoding)
    arrays = open_arrays(url)
    top = (group or "").strip("/")
    below = [one for one in sorted(arrays.groups()) if not top or one.startswith(f"{top}/")]
    paths = {"/": top} | {"/" + one.removeprefix(top).strip("/"): one for one in below}
    found = {path: open_group(arrays, name, drop_variables, how) for path, name in paths.items()}
    for dataset in found.values():
        dataset.set_close(arrays._source.close)
    return found


def check_keywords(
    called: str, engine: str | None, storage_options: Mapping[str, Any] | None, more: Mapping[str, Any]
) -> None:
    """Raises :class:`Usage` for keywords without a meaning here, and ``TypeError`` for unknown keywords.

    ``called`` is the name of the function in messages.
    """
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


def open_group(
    arrays: Arrays, group: str, drop_variables: str | Iterable[str] | None, how: Decoding
) -> xr.Dataset:
    """Opens the variables of one group, by their names in the group.

    Raises :class:`NotFound` if the group does not exist.
    """
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
            text = f"the attributes of {group} are left out: install h5netcdf or zarr"
            warnings.warn(text, UserWarning, stacklevel=3)
        attrs = attrs if attrs is not None else found or {}
    for name in sorted(others - more.keys()):
        warnings.warn(f"{name} is left out: {arrays.left_out[kept[name]]}", UserWarning, stacklevel=3)
    if not prefix:
        _warn_of_attributes(arrays._source.url, arrays.unread_of())
    for name in sorted(kept.keys() - others):
        _warn_of_attributes(name, arrays.unread_of(kept[name]))
    numbers = {name: path for name, path in kept.items() if name not in others}
    variables: dict[Any, xr.Variable]
    variables, attrs, named = decode_variables(arrays, numbers, more, dict(attrs or {}), how)
    # Restore the order of the file.
    variables = {name: variables[name] for name in kept if name in variables}
    for name, one in variables.items():
        # Labels are compared and shown often, so they are read. Variables that xarray decoded are in memory already,
        # except for the last step.
        stays = isinstance(one._data, Array)
        if not stays:
            one.load()
        elif one.dims == (name,) or (name in named and one.size <= MAX_READ_COORDINATE):
            variables[name] = read_variable(one)
    if _UNNAMED in variables:
        variables = {None if name == _UNNAMED else name: one for name, one in variables.items()}
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


def _warn_of_attributes(owner: str, unread: Mapping[str, str]) -> None:
    if unread:
        listed = ", ".join(f"{name} ({what})" for name, what in unread.items())
        text = f"attributes of {owner} are left out, as they are neither text nor numbers: {listed}"
        warnings.warn(text, UserWarning, stacklevel=4)


def _chunked(dataset: xr.Dataset, chunks: Any) -> xr.Dataset:
    """Replaces arrays by arrays of dask whose blocks stay where they are stored."""
    import xarray as xr

    from .._dask.blocks import to_dask

    def cut(one: xr.Variable) -> xr.Variable:
        array = one._data
        assert isinstance(array, Array)
        if not isinstance(chunks, Mapping):
            given: Any = chunks
        else:
            stored = dict(zip(one.dims, array.storage_chunks))
            given = tuple(_length(chunks.get(dim, stored[dim]), size) for dim, size in zip(one.dims, one.shape))
        blocks = to_dask(array, given)
        return xr.Variable(one.dims, blocks, one.attrs, one.encoding)

    # A single number has no blocks, as in xarray.
    ours = {name: cut(one) for name, one in dataset.variables.items() if one.ndim and isinstance(one._data, Array)}
    chunked = dataset.assign({name: one for name, one in ours.items() if name in dataset.data_vars})
    return chunked.assign_coords({name: one for name, one in ours.items() if name in dataset.coords})


def _length(given: Any, size: int) -> Any:
    return size if given in (-1, None) else given
