"""What a process says first. Nodes print a line when they are ready."""

import queue
import threading

# The maximum time for a process to say something, in seconds.
START_SECONDS = 60


def first_line(process):
    """The first line that a process prints, or "" if it ends or prints none in time. Its further output is read, so that it never waits."""
    said = queue.Queue()
    threading.Thread(target=lambda: [*map(said.put, process.stdout), said.put("")], daemon=True).start()
    try:
        return said.get(timeout=START_SECONDS)
    except queue.Empty:
        return ""
