"""Opening several files as one dataset of xarray."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

from .._errors import NotFound, Unavailable, Usage
from .._files.descriptions import Entry
from .._files.listing import outside_names
from .._requests.locations import Location
from .datasets import check_keywords, open_dataset
from .joined_variables import JoinedSources, add_joined

if TYPE_CHECKING:
    import xarray as xr

#: Most files that are opened at once with ``parallel``.
MAX_OPENING = 8


def open_mfdataset(
    urls: Any,
    *,
    chunks: Any = -1,
    combine: str = "by_coords",
    concat_dim: Any = None,
    preprocess: Callable[[xr.Dataset], xr.Dataset] | None = None,
    data_vars: Any = None,
    coords: Any = None,
    compat: Any = None,
    join: Any = None,
    fill_value: Any = None,
    combine_attrs: Any = "override",
    attrs_file: Location | None = None,
    parallel: bool = False,
    engine: str | None = None,
    storage_options: Any = None,
    **more: Any,
) -> xr.Dataset:
    """Opens several files as one :class:`xarray.Dataset` of arrays of dask. By default each file is one block.

    If the files continue one another along one dimension, a reduction is one request to each storage node, whatever the
    number of files. The result then has the bits of a reduction of one file.

    >>> import gristmill as gm, numpy as np
    >>> np.save("first.npy", np.arange(4.0))
    >>> np.save("second.npy", np.arange(4.0, 6.0))
    >>> both = gm.open_mfdataset(["first.npy", "second.npy"], combine="nested", concat_dim="dim_0")
    >>> float(both["data"].sum())
    15.0

    urls
        A pattern (``"grist://HOST:PORT/tos_*.nc"``, ``"s3://BUCKET/2001-*/tos.nc"``, ``"data/*.nc"``) or a list of names.
        For ``combine="nested"`` nested lists of names.
    chunks
        Blocks of each file, as in :func:`open_dataset`; ``None`` selects the chunks of the file.
    combine, concat_dim, preprocess, data_vars, coords, compat, join, fill_value, combine_attrs, attrs_file
        Keywords of :func:`xarray.open_mfdataset`.
    parallel
        Selects whether threads open several files at once.
    engine, storage_options, more
        Keywords of :func:`open_dataset`.

    Raises :class:`Usage` for keywords that do not fit together, :class:`NotFound` if there is no such file, and the
    exceptions of :func:`open_dataset`.
    """
    import xarray as xr

    check_keywords("open_mfdataset", engine, storage_options, {})
    if combine not in ("by_coords", "nested"):
        raise Usage(f"combine={combine!r}; use 'by_coords' or 'nested'")
    if combine == "by_coords" and concat_dim is not None:
        raise Usage("concat_dim is for combine='nested'; with 'by_coords' coordinates say how files follow each other")
    if combine == "nested" and concat_dim is None:
        raise Usage("say along which dimension files follow each other: concat_dim='time'")
    names = _names(urls)
    flat = list(_flat(names))
    if not flat:
        raise NotFound(f"{urls!r} names no files; check the pattern")

    def opened(name: Location) -> xr.Dataset:
        return open_dataset(name, chunks={} if chunks is None else chunks, **more)

    if parallel:
        with ThreadPoolExecutor(MAX_OPENING) as pool:
            parts = list(pool.map(opened, flat))
    else:
        parts = [opened(name) for name in flat]
    joined = JoinedSources()
    closing = [*(part.close for part in parts), joined.close]
    try:
        if preprocess is not None:
            parts = [preprocess(part) for part in parts]
        given = {"data_vars": data_vars, "coords": coords, "compat": compat, "join": join, "fill_value": fill_value}
        how = {name: value for name, value in given.items() if value is not None} | {"combine_attrs": combine_attrs}
        if combine == "nested":
            how.setdefault("data_vars", "all")
            combined: xr.Dataset = xr.combine_nested(_nested(names, iter(parts)), concat_dim=concat_dim, **how)
        else:
            combined = cast("xr.Dataset", xr.combine_by_coords(parts, **how))
        along = _one_dim(concat_dim)
        if combine == "by_coords" or (isinstance(along, str) and not any(isinstance(name, list) for name in names)):
            combined = add_joined(combined, parts, along, joined)
    except BaseException:
        for close in closing:
            close()
        raise
    if attrs_file is not None:
        wanted = os.fspath(attrs_file)
        if wanted not in [os.fspath(name) for name in flat]:
            raise Usage(f"attrs_file={wanted!r} is not one of the files")
        combined.attrs = dict(parts[[os.fspath(name) for name in flat].index(wanted)].attrs)

    def close_all() -> None:
        for close in closing:
            close()

    combined.set_close(close_all)
    return combined


def _one_dim(given: Any) -> Any:
    """Returns the only dimension of ``concat_dim``, which may be in a list."""
    return given[0] if isinstance(given, (list, tuple)) and len(given) == 1 else given


def _names(urls: Any) -> list[Any]:
    if isinstance(urls, (str, os.PathLike)):
        return _matching(os.fsdecode(urls))
    return [_names(one) if isinstance(one, (list, tuple)) else one for one in urls]


def _matching(pattern: str) -> list[Any]:
    """Returns the names that match a pattern, in ascending order."""
    if not glob.has_magic(pattern):
        return [pattern]
    if "://" not in pattern:
        return sorted(glob.glob(pattern))
    if not pattern.startswith("grist"):
        return sorted(_outside(pattern))
    try:
        from .._fsspec.filesystem import GristmillFileSystem
    except ImportError as error:
        text = "patterns of names in a cluster need the package fsspec; install it, or name the files"
        raise Usage(f"{text}: {pattern}") from error
    files = GristmillFileSystem()
    return [files.unstrip_protocol(path) for path in sorted(files.glob(pattern))]


def _outside(pattern: str) -> list[str]:
    """Returns the URLs of an object store or of a web server that match a pattern."""
    # The parts of "s3://BUCKET/KEY" are the scheme, nothing, the bucket, and the key.
    parts = pattern.rstrip("/").split("/")
    first = next((place for place, part in enumerate(parts) if place > 2 and glob.has_magic(part)), None)
    if first is None:
        return [pattern]
    folders = ["/".join(parts[:first])]
    for part in parts[first:-1]:
        folders = [below.url for folder in folders for below in _named(folder, part) if below.is_dir]
    return [found.url.rstrip("/") for folder in folders for found in _named(folder, parts[-1])]


def _named(folder: str, pattern: str) -> list[Entry]:
    """Returns the entries of a folder that match one part of a pattern, as :func:`glob.glob` matches them."""
    if "**" in pattern:
        raise Usage(f"{folder}/{pattern}: '**' is not supported for object stores and web servers; name each level")
    entries, is_file = outside_names(folder)
    if is_file:
        return []
    hidden = pattern.startswith(".")
    matching = [
        entry
        for entry in entries
        if fnmatch.fnmatchcase(entry.name, pattern) and (hidden or not entry.name.startswith("."))
    ]
    unreadable = next((entry for entry in matching if entry.unreadable is not None), None)
    if unreadable is not None:
        raise Unavailable(f"{folder}/{pattern} names a file that cannot be read: {unreadable.unreadable}")
    return matching


def _flat(names: Iterable[Any]) -> Iterator[Location]:
    for one in names:
        if isinstance(one, list):
            yield from _flat(one)
        else:
            yield one


def _nested(names: list[Any], parts: Iterator[xr.Dataset]) -> list[Any]:
    """Arranges datasets in nested lists, as their names are."""
    return [_nested(one, parts) if isinstance(one, list) else next(parts) for one in names]
