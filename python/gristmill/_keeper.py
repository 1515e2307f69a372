"""The command ``gristmill``, ended when standard input ends: whoever started it holds the other side."""

from __future__ import annotations

import os
import signal
import sys
import threading

from ._command import main


def _watch() -> None:
    while os.read(0, 64):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_watch, daemon=True).start()
    sys.exit(main())
