"""Gristmill, active storage: run the computation where the data is stored, and get back only the answer.

>>> import gristmill, numpy as np
>>> values = np.random.default_rng(7).normal(size=1_000_000)
>>> info = gristmill.put(values, cluster.path("data.f64"))
>>> gristmill.run("minmax", cluster.path("data.f64"), type="f64")["max_index"] == int(values.argmax())
True

``run`` asks a kernel about a file; ``put``, ``get``, ``open``, ``ls``, ``stat`` and ``remove`` handle files; ``up``
starts storage nodes on this machine. Files are named by URL (``grist://HOST:PORT/PATH``) or by path. Everything may be
called from several threads at once, and in a forked child.
"""

from __future__ import annotations

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
    Stale,
    TimedOut,
    Unavailable,
    Usage,
)
from ._files import Entry, FileInfo, get, ls, put, remove, stat
from ._gristmill import VERSION as __version__
from ._open import open

__all__ = [
    "Answer",
    "Busy",
    "Cluster",
    "Conflict",
    "DataError",
    "Denied",
    "Entry",
    "FileInfo",
    "GristmillError",
    "NoSpace",
    "NotFound",
    "Rows",
    "Stale",
    "TimedOut",
    "Unavailable",
    "Usage",
    "__version__",
    "get",
    "ls",
    "open",
    "put",
    "remove",
    "run",
    "stat",
    "up",
]
