"""Gristmill, active storage: run the computation where the data is stored, and get back only the answer.

>>> import gristmill, numpy as np
>>> values = np.random.default_rng(7).normal(size=1_000_000)
>>> info = gristmill.put(values, cluster.path("data.f64"))
>>> gristmill.run("minmax", cluster.path("data.f64"), type="f64")["max_index"] == int(values.argmax())
True

``run`` runs a kernel over a file. ``open_dataset`` and ``open_arrays`` open files of scientific formats; their arrays
are reduced where they are stored. ``put``, ``get``, ``open``, ``ls``, ``stat``, ``move``, ``copy``, ``disk_usage``
and ``remove`` handle files and folders. ``up`` starts storage nodes on this machine. A file is named by a URL
(``grist://HOST:PORT/PATH``) or by a path. All functions may be called from several threads at once, and in a forked
child.

The package consists of these parts. Each one imports only parts above it:

- ``_errors.py``: exceptions.
- ``_arguments``: element types and sizes, as callers give them.
- ``_requests``: names of files, connections, options, traces, progress, and giving up requests.
- ``_cluster``: the command ``gristmill``, and storage nodes on this machine.
- ``_kernels``: ``run`` and its answers.
- ``_variables``: variables of files: descriptions, layout, elements, caches.
- ``_expressions``: trees of slices and operations over variables, and their values.
- ``_pushdown``: reductions of trees as requests to storage nodes.
- ``_arrays``: ``Array`` and NumPy's functions over it, and how arrays are shown.
- ``_files``: putting, getting, opening, listing, moving and removing files.
- ``_dask``: arrays of dask whose blocks stay where they are stored.
- ``_fsspec``: clusters as a file system of fsspec.
- ``_xarray``: datasets of xarray, the engine, the accessor, loading and storing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._cluster.nodes import Cluster, up
from ._errors import (
    Busy,
    Conflict,
    DataError,
    Denied,
    GristmillError,
    NoSpace,
    NotFound,
    PushdownError,
    PushdownWarning,
    Stale,
    TimedOut,
    Unavailable,
    Usage,
)
from ._files.descriptions import DiskUsage, Entry, FileInfo, FolderInfo
from ._files.get import get
from ._files.listing import disk_usage, ls, stat
from ._files.moving import copy, move, remove
from ._files.open_files import open
from ._files.put import put
from ._gristmill import VERSION as __version__
from ._kernels.answers import Answer, Rows
from ._kernels.run import run
from ._requests.options import set_options
from ._requests.progress import progress
from ._requests.tracing import Trace, trace
from ._xarray.extension import extend_xarray

if TYPE_CHECKING:
    from ._arrays.array import Array
    from ._arrays.file_arrays import Arrays, open_arrays
    from ._arrays.statistics import stats
    from ._xarray.datasets import open_dataset
    from ._xarray.explaining import explain
    from ._xarray.several_files import open_mfdataset

#: Names whose modules need NumPy. They are imported on first use, because the command does without NumPy.
_LATER = {
    "Array": "_arrays.array",
    "Arrays": "_arrays.file_arrays",
    "open_arrays": "_arrays.file_arrays",
    "open_dataset": "_xarray.datasets",
    "open_mfdataset": "_xarray.several_files",
    "explain": "_xarray.explaining",
    "stats": "_arrays.statistics",
}

__all__ = [
    "Answer",
    "Array",
    "Arrays",
    "Busy",
    "Cluster",
    "Conflict",
    "DataError",
    "Denied",
    "DiskUsage",
    "Entry",
    "FileInfo",
    "FolderInfo",
    "GristmillError",
    "NoSpace",
    "NotFound",
    "PushdownError",
    "PushdownWarning",
    "Rows",
    "Stale",
    "TimedOut",
    "Trace",
    "Unavailable",
    "Usage",
    "__version__",
    "copy",
    "disk_usage",
    "explain",
    "get",
    "ls",
    "move",
    "open",
    "open_arrays",
    "open_dataset",
    "open_mfdataset",
    "progress",
    "put",
    "remove",
    "run",
    "set_options",
    "stat",
    "stats",
    "trace",
    "up",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


extend_xarray()
