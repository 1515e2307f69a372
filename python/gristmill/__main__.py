"""``python -m gristmill``: the command."""

from __future__ import annotations

import sys

from ._cluster.command import main

if __name__ == "__main__":
    sys.exit(main())
