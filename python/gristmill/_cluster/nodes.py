"""Storage nodes of this machine that stop with this process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections import deque
from types import TracebackType
from typing import IO, Any

from .._errors import GristmillError, Usage
from .command import command

#: Seconds that the nodes may take to stop before they are killed.
STOP_TIMEOUT = 30.0

#: Lines of the nodes' messages that are kept.
MESSAGES_KEPT = 100

#: A flag of the command.
_FLAG = re.compile(r"(?<![\w/-])--([a-z][a-z-]*)")

#: An option, and the start of advice, as the parser of the command writes them.
_OPTION = re.compile(r"'--([\w-]+) <[A-Z_]+>'")
_ADVICE = re.compile(r"\s*(?:tip:|Usage:|For more information)")

#: Exit code of the command for wrong arguments.
_USAGE = 2


class Cluster:
    """Storage nodes of this machine that :func:`up` started.

    They stop with :meth:`stop`, at the end of a ``with`` block, when this object is garbage, and when the interpreter
    ends for any reason.

    >>> import gristmill, os
    >>> nodes = gristmill.up(nodes=2)
    >>> nodes.url.startswith("grist://127.0.0.1:"), os.path.isdir(nodes.dir), list(nodes.messages)
    (True, True, [])

    The examples of the methods use these ``nodes``.
    """

    #: URL of the root directory: ``grist://HOST:PORT/``.
    url: str
    #: Directory in which the nodes keep their files.
    dir: str
    #: The last messages of the nodes on standard error, for example that one died and was started again.
    messages: deque[str]

    def __init__(self, nodes: int, dir: str | os.PathLike[str] | None, listen: str, flags: dict[str, Any]) -> None:
        # A temporary directory is removed at the end.
        made = tempfile.mkdtemp(prefix="gristmill-") if dir is None else None
        self.dir = os.fsdecode(made or dir or "")
        self.messages = deque(maxlen=MESSAGES_KEPT)
        arguments = ["up", "--dir", self.dir, "--nodes", str(nodes), "--listen", listen, *_flags(flags)]
        *python, _ = command()
        try:
            process = subprocess.Popen(
                [*python, "gristmill._cluster.child", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C in a terminal is for this process, which then stops the nodes.
                start_new_session=True,
            )
        except BaseException:
            _remove_folder(made)
            raise
        self._process = process
        self._end = weakref.finalize(self, _stop, process, made, os.getpid())
        _running.add(self)
        assert process.stdout is not None and process.stderr is not None
        listening = threading.Thread(target=_collect_messages, args=(process.stderr, self.messages), daemon=True)
        listening.start()
        try:
            said = process.stdout.readline().decode("utf-8", "replace")
            _, found, self.url = said.strip().partition("files are at ")
            if not found:
                code = process.wait(STOP_TIMEOUT)
                listening.join(STOP_TIMEOUT)
                text = " ".join(line.removeprefix("gristmill: ").removeprefix("error: ") for line in self.messages)
                message = _to_python_words(text) or f"the nodes ended with code {code}"
                raise (Usage if code == _USAGE else GristmillError)(message)
        except BaseException:
            self.stop()
            raise

    def path(self, name: str) -> str:
        """Returns the URL of the file with this name.

        >>> nodes.path("runs/first") == nodes.url + "runs/first"
        True
        """
        return self.url + name.lstrip("/")

    def stop(self) -> None:
        """Stops the nodes, waits for them, and removes the directory that :func:`up` made.

        A second call does nothing.

        >>> nodes.stop()
        >>> nodes
        <gristmill.Cluster stopped>
        """
        self._end()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<gristmill.Cluster {'at ' + self.url if self._end.alive else 'stopped'}>"


_running: weakref.WeakSet[Cluster] = weakref.WeakSet()


def up(
    nodes: int = 4,
    dir: str | os.PathLike[str] | None = None,
    listen: str = "127.0.0.1:0",
    **flags: str | int | bool | os.PathLike[str],
) -> Cluster:
    """Starts storage nodes on this machine, waits until they answer requests, and returns them as a :class:`Cluster`.

    >>> import gristmill, numpy as np
    >>> with gristmill.up(nodes=2) as two:
    ...     _ = gristmill.put(np.arange(10.0), two.path("ten.f64"))
    ...     gristmill.run("sum", two.path("ten.f64"), type="f64")
    Answer(sum=45.0, count=10)

    nodes
        Number of storage nodes.
    dir
        Directory for their files. The default is a temporary directory that is removed at the end.
    listen
        Address on which the entry node listens. Port 0 selects a free port.
    flags
        Flags of ``gristmill up``, with underscores: ``lanes=1``, ``socket="/run/g.sock"``, ``require_identity=True``.

    Raises :class:`Usage` for a wrong flag, and :class:`GristmillError` if the nodes cannot start.
    """
    return Cluster(nodes, dir, listen, flags)


def _flags(given: dict[str, Any]) -> list[str]:
    words = []
    for name, value in given.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value) if isinstance(value, int) else os.fsdecode(value)]
    return words


def _to_python_words(said: str) -> str:
    """Rewrites a message of the command for Python, without its advice about the command line."""
    said = _OPTION.sub(r"--\1", _ADVICE.split(said)[0].strip())
    return _FLAG.sub(lambda found: f"{found[1].replace('-', '_')}=", said)


def _collect_messages(pipe: IO[bytes], messages: deque[str]) -> None:
    with pipe:
        for line in pipe:
            messages.append(line.decode("utf-8", "replace").strip())


def _remove_folder(made: str | None) -> None:
    if made is not None:
        shutil.rmtree(made, ignore_errors=True)


def _stop(process: subprocess.Popen[bytes], made: str | None, starter: int) -> None:
    if starter != os.getpid():
        # In a forked child the nodes belong to the parent.
        return
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.close()
        # The nodes stop when this end is closed. The system closes it if this process is killed.
        process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    finally:
        _remove_folder(made)


def _after_fork() -> None:
    # Otherwise the nodes would live as long as the child.
    for cluster in list(_running):
        if cluster._process.stdin is not None:
            cluster._process.stdin.close()


os.register_at_fork(after_in_child=_after_fork)
