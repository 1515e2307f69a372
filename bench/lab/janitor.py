"""Takes a lab down whose process ended without doing so: killed, or out of memory.

Started by the lab as `janitor.py PID`, in a session of its own. Its standard input is a pipe that only the lab holds; when
that ends, however it does, what has the lab's process in its name is removed.
"""

import subprocess
import sys

import network
import quota


def start(process):
    """For the lab; to be kept, and closed at the end."""
    return subprocess.Popen(
        [sys.executable, __file__, str(process)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def dismiss(janitor):
    """Lets it go, and waits until it is gone."""
    janitor.stdin.close()
    janitor.wait()


if __name__ == "__main__":
    sys.stdin.buffer.read()
    network.sweep(of=int(sys.argv[1]))
    quota.sweep(of=int(sys.argv[1]))
