"""The wrappers of xarray around arrays of backends."""

from __future__ import annotations

from typing import Any

from .._arrays.array import Array


def unwrap(data: Any) -> Array | None:
    """Returns the :class:`Array` inside wrappers of xarray, or ``None``.

    The wrappers are caches and slices. The slices are applied to the array.
    """
    keys = []
    while not isinstance(data, Array):
        inner = getattr(data, "array", None)
        if inner is None or not type(data).__module__.startswith("xarray."):
            return None
        key = getattr(data, "key", None)
        if key is not None:
            if type(key).__name__ not in ("BasicIndexer", "OuterIndexer"):
                return None
            keys.append(key.tuple)
        data = inner
    found: Array = data
    for key in reversed(keys):
        # Apply each key to its own axis, because the keys may contain several index arrays.
        for axis in reversed(range(len(key))):
            found = found[(slice(None),) * axis + (key[axis],)]
    return found
