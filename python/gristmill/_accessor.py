"""``gristmill`` of arrays and datasets of xarray: several statistics by one request, and what there is of files."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Union, cast

import xarray as xr

from ._chunks import unwrapped
from ._errors import Usage
from ._files import FileInfo, FolderInfo
from ._loading import teach
from ._place import Location
from ._put_dataset import NETCDF, put_dataset
from ._stats import STATS, explain, stats

#: Names of dimensions: one, several, or all.
Dims = Union[Hashable, Iterable[Hashable], None]


class OfArray:
    """What there is of an array beside what xarray has."""

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    def stats(self, dim: Dims = None, names: Sequence[str] = STATS, *, ddof: float = 0) -> xr.Dataset:
        """Statistics of what is not missing over some dimensions, all if none is named: a variable for each of ``names``. They
        are one request where the array is stored.

        >>> import gristmill as gm, numpy as np
        >>> np.save("some.npy", np.array([[1.0, np.nan], [3.0, 5.0]]))
        >>> found = gm.open_dataset("some.npy")["data"].gristmill.stats(names=["mean", "count"])
        >>> float(found["mean"]), int(found["count"])
        (3.0, 3)
        """
        array = self._array
        dims = _named(dim, array.dims)
        missing = [one for one in dims if one not in array.dims]
        if missing:
            raise Usage(f"there is no dimension {missing[0]!r}; there are {', '.join(map(str, array.dims))}")
        for name in names:
            if name not in STATS:
                raise Usage(f"there is no statistic {name!r}; there are {', '.join(STATS)}")
        ours = unwrapped(array.variable._data)
        if ours is None:
            found = {name: _by_xarray(array, name, dims, ddof) for name in names}
            return xr.Dataset(found, attrs=array.attrs)
        values = stats(ours, names, [array.dims.index(one) for one in dims], ddof=ddof)
        left = [one for one in array.dims if one not in dims]
        coords = {name: one for name, one in array.coords.items() if not set(one.dims) & set(dims)}
        return xr.Dataset({name: (left, values[name]) for name in names}, coords, array.attrs)

    def load(self) -> xr.DataArray:
        """The same with its elements here, as ``compute`` of xarray gives it."""
        return self._array.compute()

    def to_netcdf(self, url: Location, **how: Any) -> FileInfo:
        """Stores it as a file of netCDF-4; ``how`` is as for :meth:`xarray.DataArray.to_netcdf`."""
        return cast("FileInfo", _stored(self._array, url, NETCDF, how))

    def to_zarr(self, url: Location, **how: Any) -> FolderInfo:
        """Stores it as a Zarr folder; ``how`` is as for :meth:`xarray.DataArray.to_zarr`."""
        return cast("FolderInfo", _stored(self._array, url, (".zarr",), how))

    def explain(self) -> str:
        """What a reduction would do; see :func:`gristmill.explain`."""
        return explain(self._array)


class OfDataset:
    """What there is of a dataset beside what xarray has."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def load(self) -> xr.Dataset:
        """The same with all elements here, as ``compute`` of xarray gives it."""
        return self._dataset.compute()

    def to_netcdf(self, url: Location, **how: Any) -> FileInfo:
        """Stores it as a file of netCDF-4; ``how`` is as for :meth:`xarray.Dataset.to_netcdf`."""
        return cast("FileInfo", _stored(self._dataset, url, NETCDF, how))

    def to_zarr(self, url: Location, **how: Any) -> FolderInfo:
        """Stores it as a Zarr folder; ``how`` is as for :meth:`xarray.Dataset.to_zarr`.

        >>> import gristmill as gm, numpy as np, xarray as xr
        >>> np.save("some.npy", np.arange(6.0))
        >>> info = gm.open_dataset("some.npy").gristmill.to_zarr(cluster.path("some.zarr"))
        >>> float(gm.open_dataset(cluster.path("some.zarr")).data.sum())
        15.0
        """
        return cast("FolderInfo", _stored(self._dataset, url, (".zarr",), how))

    def stats(self, dim: Dims = None, names: Sequence[str] = STATS, *, ddof: float = 0) -> xr.Dataset:
        """Statistics of each variable of numbers, over those of the dimensions that it has: ``tos_mean`` and so on. Each variable is a
        request."""
        dataset = self._dataset
        dims = _named(dim, dataset.dims)
        missing = [one for one in dims if one not in dataset.dims]
        if missing:
            raise Usage(f"there is no dimension {missing[0]!r}; there are {', '.join(map(str, dataset.dims))}")
        parts = []
        for name, array in dataset.data_vars.items():
            its = [one for one in dims if one in array.dims]
            if its and array.dtype.kind in "iuf":
                found = array.gristmill.stats(its, names, ddof=ddof)
                parts.append(found.rename({one: f"{name}_{one}" for one in found.data_vars}).drop_attrs(deep=False))
        together: xr.Dataset = xr.merge(parts, compat="override", join="exact")
        return together.assign_attrs(dataset.attrs)


def _stored(source: xr.Dataset | xr.DataArray, url: Location, ends: tuple[str, ...], how: dict[str, Any]) -> FileInfo | FolderInfo:
    name = os.fsdecode(url).rstrip("/")
    if not name.lower().endswith(ends):
        raise Usage(f"{name}: let the name end in {ends[0]}, for it says which format a file has")
    return put_dataset(source, url, how=how)


def _named(dim: Dims, every: Iterable[Hashable]) -> list[Hashable]:
    if dim is None or dim is ...:
        return list(every)
    return [dim] if isinstance(dim, str) or not isinstance(dim, Iterable) else list(dim)


def _by_xarray(array: xr.DataArray, name: str, dims: list[Hashable], ddof: float) -> Any:
    """The same of an array that is not ours, blocks of dask among them."""
    return getattr(array, name)(dims, **({"ddof": ddof} if name in ("std", "var") else {}))


teach()
_of_arrays: Any = xr.register_dataarray_accessor
_of_datasets: Any = xr.register_dataset_accessor
_of_arrays("gristmill")(OfArray)
_of_datasets("gristmill")(OfDataset)
