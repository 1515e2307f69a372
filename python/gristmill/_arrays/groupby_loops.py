"""The groups of a running ``groupby`` of xarray.

``groupby`` takes the elements of a group, reduces them, and continues with the next group. Only its loop knows all
groups. So the loop is searched among the calling frames when elements are taken. If it is not found, for example
because xarray changed, each group is a request of its own.
"""

from __future__ import annotations

import sys
from typing import Any

from .._expressions.groupings import mark_groups
from .._expressions.nodes import Node

#: Functions of xarray that loop over groups, and their file.
LOOPS = ("_iter_grouped", "_iter_grouped_shortcut")
FILE = "xarray/core/groupby.py"

#: Most calling frames that are searched.
DEPTH = 16


def mark_groups_of_loop(before: Node, after: Node) -> None:
    """Marks the leaves of ``after``, just taken from ``before``, with the groups of a running ``groupby``."""
    found = _find_loop()
    if found is None:
        return
    mark_groups(before, after, *found)


def _find_loop() -> tuple[tuple[Any, ...], int] | None:
    """Returns all groups of the calling loop and the number of the current group, or ``None``."""
    frame = sys._getframe(2)
    for _ in range(DEPTH):
        if frame.f_code.co_name in LOOPS and frame.f_code.co_filename.endswith(FILE):
            try:
                groups = tuple(one for one in frame.f_locals["self"].encoded.group_indices if one)
                now = frame.f_locals["indices"]
                return groups, next(number for number, one in enumerate(groups) if one is now)
            except (AttributeError, KeyError, StopIteration, TypeError):
                return None
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None
