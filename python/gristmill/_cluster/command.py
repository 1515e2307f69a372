"""The command ``gristmill``, which equals the binary of that name."""

from __future__ import annotations

import signal
import sys

from .. import _gristmill


def command() -> list[str]:
    """Returns the command line that starts the command again."""
    # -P keeps modules of the working directory out.
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe, "-m", "gristmill"]


def main() -> int:
    """Runs the command with the arguments of this process and returns its exit code."""
    # Python's handler only sets a flag, which no one reads before the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _gristmill.main(["gristmill", *sys.argv[1:]], command())
