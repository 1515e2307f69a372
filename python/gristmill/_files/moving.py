"""Moving, copying and removing files and directories of clusters."""

from __future__ import annotations

from .. import _gristmill
from .._errors import Usage
from .._requests.locations import Location, locate
from .._requests.watches import watching
from .descriptions import root_url
from .listing import in_cluster


def remove(url: Location, *, recursive: bool = False) -> None:
    """Removes a file of a cluster, or a layout file (``*.grist``) with its objects.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("removed/abc"))
    >>> gristmill.remove(cluster.path("removed"), recursive=True)

    ``url`` names the file. With ``recursive`` a directory of a cluster is removed in one step, with all files below
    it. Nothing is removed if the client may not remove one of these files.

    Raises :class:`NotFound`, :class:`Denied`, and :class:`Usage` for a directory without ``recursive``.
    """
    connection, path = locate(url)
    if recursive and connection is not None:
        _gristmill.remove_all(connection, path)
    else:
        _gristmill.remove(connection, path)


def move(source: Location, destination: Location) -> str:
    """Renames a file or a directory of a cluster in one step, and returns the new URL.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("old/abc"))
    >>> gristmill.move(cluster.path("old"), cluster.path("new")) == cluster.path("new")
    True

    A file replaces another file. If the destination is an existing directory, or ends with ``/``, the source keeps
    its name and moves into it.

    Raises :class:`Usage` if the destination is in another cluster, :class:`NotFound`, and :class:`Denied`.
    """
    connection, path = in_cluster(source)
    to, where = in_cluster(destination)
    if to.entry != connection.entry:
        raise Usage(f"{source} is on another cluster than {destination}; copy it, and then remove it")
    return root_url(connection) + _gristmill.rename(connection, path, where)


def copy(source: Location, destination: Location, *, recursive: bool = False) -> str:
    """Copies a file of a cluster to the same or another cluster, and returns the URL of the copy.

    >>> import gristmill
    >>> _ = gristmill.put(b"abc", cluster.path("first"))
    >>> gristmill.copy(cluster.path("first"), cluster.path("second")) == cluster.path("second")
    True

    With ``recursive`` a directory is copied, file by file. The bytes pass through this process, a few at a time. The
    copy has the stripes and records of the source; a new file has its permission bits, too. If the destination is an
    existing directory, or ends with ``/``, the copy goes into it with the name of the source.

    Raises :class:`Usage` for a directory without ``recursive``, :class:`NotFound`, :class:`Denied`, and
    :class:`NoSpace`.
    """
    connection, path = in_cluster(source)
    to, where = in_cluster(destination)
    with watching() as watch:
        return root_url(to) + _gristmill.copy(connection, path, to, where, recursive, watch)
