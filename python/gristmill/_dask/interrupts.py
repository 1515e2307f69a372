"""Ctrl-C while dask computes. Its threads continue with their tasks, so this module gives up their requests."""

from __future__ import annotations

import sys
from typing import Any

from dask.callbacks import Callback

from .._requests.watches import forget_given_up_threads, give_up_other_threads


def _start(graph: Any) -> None:
    forget_given_up_threads()


def _finish(graph: Any, state: Any, failed: bool) -> None:
    # dask calls this while the exception passes through the scheduler.
    if failed and isinstance(sys.exc_info()[1], KeyboardInterrupt):
        give_up_other_threads()


#: Ctrl-C in the graph of another library gives up our requests, too, because it is meant for all that runs.
_callback: Any = Callback(start=_start, finish=_finish)


def register_interrupts() -> None:
    """Registers the callback with dask. Further calls change nothing."""
    _callback.register()
