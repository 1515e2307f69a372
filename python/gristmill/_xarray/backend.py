"""The engine ``gristmill`` of :func:`xarray.open_dataset`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, ClassVar

from xarray import DataTree, Dataset
from xarray.backends import BackendEntrypoint

from .block_variables import make_chunkable
from .datasets import open_dataset, open_groups


class GristmillBackend(BackendEntrypoint):
    """The engine, which opens datasets whose reductions run where the data is stored.

    xarray puts caches around the arrays of an engine. They read whole variables to concatenate or to group them.
    :func:`gristmill.open_dataset` gives datasets without these caches.
    """

    description: ClassVar[str] = "Reduce variables where they are stored"
    url: ClassVar[str] = ""
    supports_groups: ClassVar[bool] = True
    open_dataset_parameters: ClassVar[Any] = (
        "filename_or_obj",
        "drop_variables",
        "mask_and_scale",
        "decode_times",
        "decode_timedelta",
        "use_cftime",
        "concat_characters",
        "decode_coords",
        "group",
        "storage_options",
    )

    def open_dataset(
        self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None, **options: Any
    ) -> Dataset:
        """Opens a file or a Zarr folder. ``options`` are those of :func:`gristmill.open_dataset`."""
        return make_chunkable(open_dataset(filename_or_obj, drop_variables=drop_variables, **options))

    def open_groups_as_dict(
        self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None, **options: Any
    ) -> dict[str, Dataset]:
        """Opens the groups of a file as datasets, by their paths."""
        groups = open_groups(filename_or_obj, drop_variables=drop_variables, **options)
        return {path: make_chunkable(dataset) for path, dataset in groups.items()}

    def open_datatree(
        self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None, **options: Any
    ) -> DataTree:
        """Opens the groups of a file as a tree."""
        groups = self.open_groups_as_dict(filename_or_obj, drop_variables=drop_variables, **options)
        return DataTree.from_dict(groups)

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Returns whether a file is in a cluster, or is a layout file. Other files have engines of their own."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        name = os.fsdecode(filename_or_obj)
        return name.startswith(("grist://", "grist+unix://")) or name.endswith(".grist")
