"""The engine ``gristmill`` of :func:`xarray.open_dataset`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, ClassVar

from xarray import Dataset, DataTree
from xarray.backends import BackendEntrypoint

from ._cut_later import cut_later
from ._dataset import open_dataset, open_groups


class GristmillBackend(BackendEntrypoint):
    """Datasets whose reductions run where the data is stored. :func:`gristmill.open_dataset` gives the same without the
    caches that xarray puts around what it opens, which read whole variables to concatenate or to group them."""

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
        return cut_later(open_dataset(filename_or_obj, drop_variables=drop_variables, **options))

    def open_groups_as_dict(
        self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None, **options: Any
    ) -> dict[str, Dataset]:
        """The groups of a file as datasets, by their paths."""
        groups = open_groups(filename_or_obj, drop_variables=drop_variables, **options)
        return {path: cut_later(dataset) for path, dataset in groups.items()}

    def open_datatree(
        self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None, **options: Any
    ) -> DataTree:
        groups = self.open_groups_as_dict(filename_or_obj, drop_variables=drop_variables, **options)
        return DataTree.from_dict(groups)

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Files of clusters, and striped ones; all others have engines of their own."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        name = os.fsdecode(filename_or_obj)
        return name.startswith(("grist://", "grist+unix://")) or name.endswith(".grist")
