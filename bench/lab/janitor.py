"""Takes a lab down whose process ended without doing so: killed, or out of memory.

Started by the lab as `janitor.py PID [DIRECTORY]`, in a session of its own. Its standard input is a pipe that only the
lab holds; when that ends, however it does, what has the lab's process in its name is removed.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import network
import quota


def start(process, data):
    """For the lab; to be kept, and dismissed at the end."""
    command = [sys.executable, __file__, str(process), *([str(data)] if data else [])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)


def dismiss(janitor):
    """Lets it go, and waits until it is gone."""
    janitor.stdin.close()
    janitor.wait()


def sweep_data(data, everything=False, of=None):
    """Removes the directories in `data` with the targets of labs whose process is no more, of all labs, or of one."""
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
