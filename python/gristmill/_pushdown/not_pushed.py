"""The exception for operations that cannot run where the data is stored."""

from __future__ import annotations


class NotPushed(Exception):  # noqa: N818
    """An operation cannot run where the data is stored. The message says why, as the end of a sentence."""
