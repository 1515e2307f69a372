"""Removes a lab whose process ended without doing so, because it was killed or out of memory.

The lab starts it as `janitor.py PID [DIRECTORY]`, in its own session. Only the lab holds the other end of its standard input,
which is a pipe. When the pipe ends, for any reason, the janitor removes everything with the lab's process in its name.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import network
import quota


def start(process, data):
    """Starts the janitor of a lab. The lab must keep the result and dismiss it at the end."""
    command = [sys.executable, __file__, str(process), *([str(data)] if data else [])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)


def dismiss(janitor):
    """Ends the janitor and waits for it."""
    janitor.stdin.close()
    janitor.wait()


def sweep_data(data, everything=False, of=None):
    """Removes the directories of targets in `data`: those of labs whose process has ended, of all labs, or of one."""
    gone = [path for path in Path(data).glob(f"{network.PREFIX}-*") if network.over(path.name, everything, of)]
    for path in gone:
        shutil.rmtree(path, ignore_errors=True)
    return [str(path) for path in gone]


if __name__ == "__main__":
    sys.stdin.buffer.read()
    network.sweep(of=int(sys.argv[1]))
    quota.sweep(of=int(sys.argv[1]))
    if len(sys.argv) > 2:
        sweep_data(sys.argv[2], of=int(sys.argv[1]))
