"""The accessor ``gristmill`` of arrays and datasets of xarray: statistics by one request, loading, and storing
files."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Union, cast

import xarray as xr

from .._arrays.statistics import STATS, stats
from .._errors import Usage
from .._files.datasets import NETCDF
from .._files.descriptions import FileInfo, FolderInfo
from .._files.put import put_dataset
from .._requests.locations import Location
from .explaining import explain
from .loading import extend_loading
from .wrappers import unwrap

#: A name of a dimension, several names, or ``None`` for all.
Dims = Union[Hashable, Iterable[Hashable], None]


class ArrayAccessor:
    """The accessor ``gristmill`` of arrays of xarray.

    >>> import gristmill as gm, numpy as np
    >>> np.save("some.npy", np.array([[1.0, np.nan], [3.0, 5.0]]))
    >>> array = gm.open_dataset("some.npy")["data"]
    >>> array.gristmill.explain()
    'reduced where it is stored: x with x = data[0:2, 0:2]'

    The examples of the methods use this ``array``.
    """

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    def stats(self, dim: Dims = None, names: Sequence[str] = STATS, *, ddof: float = 0) -> xr.Dataset:
        """Computes statistics of the elements that are not missing, and returns a dataset with a variable for each
        name.

        A stored array needs one request. ``dim`` are the dimensions to reduce, a name or several; ``None`` selects all.
        The variables have the other dimensions. ``names`` and ``ddof`` are those of :func:`gristmill.stats`.

        >>> found = array.gristmill.stats("dim_1", ["mean", "count"])
        >>> found["mean"].values, found["count"].values
        (array([1., 4.]), array([1, 2]))

        Raises :class:`Usage` for an unknown dimension or name.
        """
        array = self._array
        dims = _dimension_list(dim, array.dims)
        missing = [one for one in dims if one not in array.dims]
        if missing:
            raise Usage(f"there is no dimension {missing[0]!r}; there are {', '.join(map(str, array.dims))}")
        for name in names:
            if name not in STATS:
                raise Usage(f"there is no statistic {name!r}; there are {', '.join(STATS)}")
        ours = unwrap(array.variable._data)
        if ours is None:
            found = {name: _by_xarray(array, name, dims, ddof) for name in names}
            return xr.Dataset(found, attrs=array.attrs)
        values = stats(ours, names, [array.dims.index(one) for one in dims], ddof=ddof)
        left = [one for one in array.dims if one not in dims]
        coords = {name: one for name, one in array.coords.items() if not set(one.dims) & set(dims)}
        return xr.Dataset({name: (left, values[name]) for name in names}, coords, array.attrs)

    def load(self) -> xr.DataArray:
        """Returns the array with its elements in memory, as ``compute`` of xarray does. Shape and type stay.

        >>> array.gristmill.load().values
        array([[ 1., nan],
               [ 3.,  5.]])

        Raises the exceptions of :class:`gristmill.Array`.
        """
        return self._array.compute()

    def to_netcdf(self, url: Location, **how: Any) -> FileInfo:
        """Stores the array as a file of netCDF-4. ``how`` has keywords of :meth:`xarray.DataArray.to_netcdf`.

        >>> info = array.gristmill.to_netcdf(cluster.path("array.nc"))
        >>> gm.open_dataset(cluster.path("array.nc"))["data"].shape
        (2, 2)

        Raises :class:`Usage` if the name has another ending, and the exceptions of :func:`gristmill.put`.
        """
        return cast("FileInfo", _store(self._array, url, NETCDF, how))

    def to_zarr(self, url: Location, **how: Any) -> FolderInfo:
        """Stores the array as a Zarr folder. ``how`` has keywords of :meth:`xarray.DataArray.to_zarr`.

        >>> info = array.gristmill.to_zarr(cluster.path("array.zarr"))
        >>> gm.open_dataset(cluster.path("array.zarr"))["data"].shape
        (2, 2)

        Raises :class:`Usage` if the name does not end in ``.zarr``, and the exceptions of :func:`gristmill.put`.
        """
        return cast("FolderInfo", _store(self._array, url, (".zarr",), how))

    def explain(self) -> str:
        """Returns a sentence that says where a reduction would run; see :func:`gristmill.explain`.

        >>> (array > 2).gristmill.explain()
        'reduced where it is stored: (x > 2) with x = data[0:2, 0:2]'
        """
        return explain(self._array)


class DatasetAccessor:
    """The accessor ``gristmill`` of datasets of xarray.

    >>> import gristmill as gm, numpy as np
    >>> np.save("some.npy", np.arange(6.0).reshape(2, 3))
    >>> dataset = gm.open_dataset("some.npy")
    >>> float(dataset.gristmill.stats(names=["mean"])["data_mean"])
    2.5

    The examples of the methods use this ``dataset``.
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def load(self) -> xr.Dataset:
        """Returns the dataset with all elements in memory, as ``compute`` of xarray does. Shapes and types stay.

        >>> dataset.gristmill.load()["data"].values
        array([[0., 1., 2.],
               [3., 4., 5.]])

        Raises the exceptions of :class:`gristmill.Array`.
        """
        return self._dataset.compute()

    def to_netcdf(self, url: Location, **how: Any) -> FileInfo:
        """Stores the dataset as a file of netCDF-4. ``how`` has keywords of :meth:`xarray.Dataset.to_netcdf`.

        >>> info = dataset.gristmill.to_netcdf(cluster.path("some.nc"))
        >>> gm.open_dataset(cluster.path("some.nc"))["data"].shape
        (2, 3)

        Raises :class:`Usage` if the name has another ending, and the exceptions of :func:`gristmill.put`.
        """
        return cast("FileInfo", _store(self._dataset, url, NETCDF, how))

    def to_zarr(self, url: Location, **how: Any) -> FolderInfo:
        """Stores the dataset as a Zarr folder. ``how`` has keywords of :meth:`xarray.Dataset.to_zarr`.

        >>> info = dataset.gristmill.to_zarr(cluster.path("some.zarr"))
        >>> float(gm.open_dataset(cluster.path("some.zarr"))["data"].sum())
        15.0

        Raises :class:`Usage` if the name does not end in ``.zarr``, and the exceptions of :func:`gristmill.put`.
        """
        return cast("FolderInfo", _store(self._dataset, url, (".zarr",), how))

    def stats(self, dim: Dims = None, names: Sequence[str] = STATS, *, ddof: float = 0) -> xr.Dataset:
        """Computes statistics of each variable of numbers, over the dimensions that it has: ``tos_mean`` and so on.

        Each variable needs one request. The arguments are those of the accessor of arrays.

        >>> found = dataset.gristmill.stats("dim_0", ["min", "max"])
        >>> found["data_min"].values, found["data_max"].values
        (array([0., 1., 2.]), array([3., 4., 5.]))

        Raises :class:`Usage` for an unknown dimension or name.
        """
        dataset = self._dataset
        dims = _dimension_list(dim, dataset.dims)
        missing = [one for one in dims if one not in dataset.dims]
        if missing:
            raise Usage(f"there is no dimension {missing[0]!r}; there are {', '.join(map(str, dataset.dims))}")
        parts = []
        for name, array in dataset.data_vars.items():
            reduced = [one for one in dims if one in array.dims]
            if reduced and array.dtype.kind in "iuf":
                found = array.gristmill.stats(reduced, names, ddof=ddof)
                parts.append(found.rename({one: f"{name}_{one}" for one in found.data_vars}).drop_attrs(deep=False))
        merged: xr.Dataset = xr.merge(parts, compat="override", join="exact")
        return merged.assign_attrs(dataset.attrs)


def _store(
    source: xr.Dataset | xr.DataArray, url: Location, ends: tuple[str, ...], how: dict[str, Any]
) -> FileInfo | FolderInfo:
    name = os.fsdecode(url).rstrip("/")
    if not name.lower().endswith(ends):
        raise Usage(f"{name}: let the name end in {ends[0]}, for it says which format a file has")
    return put_dataset(source, url, how=how)


def _dimension_list(dim: Dims, every: Iterable[Hashable]) -> list[Hashable]:
    if dim is None or dim is ...:
        return list(every)
    return [dim] if isinstance(dim, str) or not isinstance(dim, Iterable) else list(dim)


def _by_xarray(array: xr.DataArray, name: str, dims: list[Hashable], ddof: float) -> Any:
    """Computes a statistic of any other array of xarray, also of an array of dask."""
    return getattr(array, name)(dims, **({"ddof": ddof} if name in ("std", "var") else {}))


extend_loading()
_register_for_arrays: Any = xr.register_dataarray_accessor
_register_for_datasets: Any = xr.register_dataset_accessor
_register_for_arrays("gristmill")(ArrayAccessor)
_register_for_datasets("gristmill")(DatasetAccessor)
