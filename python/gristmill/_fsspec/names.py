"""Names in the file system of fsspec, and what is known about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TYPE_CHECKING, cast

from fsspec import AbstractFileSystem
from fsspec.utils import stringify_path

from .. import _gristmill
from .._errors import NotFound, Usage
from .._files.descriptions import FileInfo, file_info
from .._files.listing import stat_file
from .._requests.locations import locate

if TYPE_CHECKING:
    from .._requests.locations import Location

_TCP, _UNIX, _SOCKET = "grist://", "grist+unix://", "unix:"

#: Secrets, and the variables of the environment that hold them. They are no options, because fsspec stores options in
#: graphs and references.
_SECRETS = {"token": "GRISTMILL_TOKEN", "token_file": "GRISTMILL_TOKEN_FILE", "ca": "GRISTMILL_CA"}


class NamedFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The part of the file system that parses names and describes files."""

    protocol = ("grist", "grist+unix")
    root_marker = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        for name in _SECRETS.keys() & options.keys():
            text = "is no option of the file system, with which it would be stored"
            raise Usage(f"{name} {text}; set {_SECRETS[name]}")
        super().__init__(*args, **options)

    # Names.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, (list, tuple)):
            return [cls._strip_protocol(one) for one in path]
        text: str = stringify_path(path)
        if text.startswith(_UNIX):
            text = _SOCKET + text.removeprefix(_UNIX)
        return text.removeprefix(_TCP).rstrip("/")

    def unstrip_protocol(self, name: str) -> str:
        """Returns the URL of a path."""
        text: str = self._strip_protocol(name)
        if not text.startswith(_SOCKET):
            return _TCP + (text or "/")
        return _UNIX + text.removeprefix(_SOCKET) + ("/" if text.endswith(":") else "")

    @classmethod
    def _parent(cls, path: str) -> str:
        stripped = cls._strip_protocol(path)
        above, slash, _ = stripped.rpartition("/")
        is_root = not slash or stripped.endswith(":")
        return str(stripped if is_root else above)

    # Finding files.

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Returns the description of a file or a directory, as a dictionary with ``name``, ``size`` and ``type``.

        Raises :class:`NotFound`.
        """
        path = self._strip_protocol(path)
        url = self.unstrip_protocol(path)
        connection, name = remote(url)
        if name == "/":
            return _directory_entry(path)
        try:
            return _file_entry(path, stat_file(url))
        except NotFound:
            if not _gristmill.is_directory(connection, name):
                raise
        return _directory_entry(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """Returns the entries of a directory, or the entry of a file. With ``detail=False`` it returns names."""
        path = self._strip_protocol(path)
        connection, name = remote(self.unstrip_protocol(path))
        prefix = path.removesuffix(name)
        found = []
        for last, about, unreadable in _gristmill.ls(connection, name):
            if unreadable is not None:
                found.append({"name": f"{path}/{last}", "size": None, "type": "other"})
            elif about is None:
                found.append(_directory_entry(f"{path}/{last}"))
            else:
                found.append(_file_entry(prefix + about["path"], file_info(about, connection)))
        return found if detail else [one["name"] for one in found]

    def exists(self, path: str, **_: Any) -> bool:
        """Returns whether a file or a directory has this name.

        Raises :class:`Unavailable` if a node does not answer.
        """
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def created(self, path: str) -> datetime:
        """Returns when the file became visible."""
        # Files of a cluster have one.
        return cast("datetime", stat_file(self._file(path)).created)

    #: The same as ``created``, because files are replaced as a whole.
    modified = created

    def ukey(self, path: str) -> str:
        """Returns a text that changes when the file is replaced."""
        info = stat_file(self._file(path))
        return info.id or f"{info.length} {info.created}"

    def checksum(self, path: str) -> int:
        """Returns :meth:`ukey` as a number."""
        return int(self.ukey(path), 16)

    def _file(self, path: str) -> str:
        """Returns the URL of a path or a URL."""
        return self.unstrip_protocol(self._strip_protocol(path))


def remote(url: Location) -> tuple[_gristmill.Connection, str]:
    """Returns the cluster of a file and the path of the file there.

    Raises :class:`Usage` for a file of this machine.
    """
    connection, name = locate(url)
    if connection is None:
        raise Usage(f"{url} is no file of a cluster; write grist://HOST:PORT/PATH")
    return connection, name


def _directory_entry(path: str) -> dict[str, Any]:
    return {"name": path, "size": 0, "type": "directory"}


def _file_entry(path: str, info: FileInfo) -> dict[str, Any]:
    return {
        "name": path,
        "size": info.length,
        "type": "file",
        "created": info.created,
        "mtime": None if info.created is None else info.created.timestamp(),
        "mode": info.mode,
        "owner": info.owner,
        "id": info.id,
        "stripe_unit": info.stripe_unit,
        "record": info.record,
        "targets": info.targets,
    }
