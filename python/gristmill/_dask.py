"""Ctrl-C while dask computes: its threads go on with what they began, so their requests are given up here."""

from __future__ import annotations

import sys
from typing import Any

from dask.callbacks import Callback

from ._watching import begin_again, give_up_other_threads


def _start(graph: Any) -> None:
    begin_again()


def _finish(graph: Any, state: Any, failed: bool) -> None:
    # Called while the exception passes through the scheduler.
    if failed and isinstance(sys.exc_info()[1], KeyboardInterrupt):
        give_up_other_threads()


#: Ctrl-C of another library's graph ends our requests too: it was for all that ran.
_callback: Any = Callback(start=_start, finish=_finish)


def hear_interrupts() -> None:
    """From now on. Once is enough; more is no harm."""
    _callback.register()
