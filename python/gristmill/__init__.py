"""Gristmill, active storage: run the computation where the data is stored, and get back only the answer.

>>> import gristmill, numpy as np
>>> values = np.random.default_rng(7).normal(size=1_000_000)
>>> info = gristmill.put(values, cluster.path("data.f64"))
>>> gristmill.run("minmax", cluster.path("data.f64"), type="f64")["max_index"] == int(values.argmax())
True

``run`` asks a kernel about a file; ``open_dataset`` and ``open_arrays`` open files of scientific formats, whose arrays are
reduced where they are stored; ``put``, ``get``, ``open``, ``ls``, ``stat``, ``move``, ``copy``, ``disk_usage`` and ``remove`` handle files and folders; ``up``
starts storage nodes on this machine. Files are named by URL (``grist://HOST:PORT/PATH``) or by path. Everything may be
called from several threads at once, and in a forked child.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._answer import Answer, Rows, run
from ._cluster import Cluster, up
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
from ._files import DiskUsage, Entry, FileInfo, FolderInfo, copy, disk_usage, get, ls, move, put, remove, stat
from ._gristmill import VERSION as __version__
from ._open import open
from ._options import Trace, set_options, trace
from ._progress import progress
from ._with_xarray import teach_xarray

if TYPE_CHECKING:
    from ._array import Array
    from ._arrays import Arrays, open_arrays
    from ._dataset import open_dataset
    from ._several_files import open_mfdataset
    from ._stats import explain, stats

#: What needs NumPy is imported when it is used: the command does without.
_LATER = {
    "Array": "_array",
    "Arrays": "_arrays",
    "open_arrays": "_arrays",
    "open_dataset": "_dataset",
    "open_mfdataset": "_several_files",
    "explain": "_stats",
    "stats": "_stats",
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


teach_xarray()
