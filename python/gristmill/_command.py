"""The command ``gristmill``: the same as the binary of that name."""

from __future__ import annotations

import signal
import sys

from . import _gristmill


def command() -> list[str]:
    """How the command is started again."""
    # The working directory may hold modules of any name.
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe, "-m", "gristmill"]


def main() -> int:
    """Runs the command with the arguments of this process and answers its exit code."""
    # Python's own handler would only take a note, and nobody looks at it before the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _gristmill.main(["gristmill", *sys.argv[1:]], command())
