"""The engine ``gristmill`` of :func:`xarray.open_dataset`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, ClassVar

from xarray import Dataset
from xarray.backends import BackendEntrypoint

from ._dataset import open_dataset


class GristmillBackend(BackendEntrypoint):
    """Datasets whose reductions run where the data is stored. :func:`gristmill.open_dataset` gives the same without the
    caches that xarray puts around what it opens, which read whole variables to concatenate or to group them."""

    description: ClassVar[str] = "Reduce variables where they are stored"
    url: ClassVar[str] = ""
    open_dataset_parameters: ClassVar[Any] = (
        "filename_or_obj",
        "drop_variables",
        "mask_and_scale",
        "decode_times",
        "decode_coords",
    )

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        decode_coords: bool = True,
    ) -> Dataset:
        dataset = open_dataset(
            filename_or_obj,
            drop_variables=drop_variables,
            mask_and_scale=mask_and_scale is not False,
            decode_times=decode_times is not False,
            decode_coords=decode_coords is not False,
        )
        dataset.set_close(_nothing)
        return dataset

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Files of clusters, and striped ones; all others have engines of their own."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        name = os.fsdecode(filename_or_obj)
        return name.startswith(("grist://", "grist+unix://")) or name.endswith(".grist")


def _nothing() -> None:
    """Closes nothing: files are opened for as long as they are asked about."""
