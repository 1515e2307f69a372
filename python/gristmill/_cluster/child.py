"""The command ``gristmill``, which stops when its standard input ends. The parent process holds the other end."""

from __future__ import annotations

import os
import signal
import sys
import threading

from .command import main


def _stop_when_input_ends() -> None:
    while os.read(0, 64):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_stop_when_input_ends, daemon=True).start()
    sys.exit(main())
