"""Nodes under limits of the system: the number of open files and the size of a file."""

import socket

from cluster import Up

MIB = 1 << 20


class Limited(Up):
    """Nodes whose processes have a limit."""

    def __init__(self, folder, limit, **how):
        super().__init__(folder, before=("prlimit", limit), **how)


def test_more_connections_than_files_are_open_at_first(clusters):
    """Shells often set this limit. With it, 486 idle connections once made new clients hang."""
    up = clusters(Limited, limit="--nofile=128:2048", nodes=1)
    host, _, port = up.entry.rpartition(":")
    idle = [socket.create_connection((host, int(port)), timeout=30) for _ in range(300)]
    try:
        up.put("/file", b"12345678")
        assert up.get("/file") == b"12345678"
    finally:
        for one in idle:
            one.close()


def test_a_file_beyond_the_limit_of_the_system_is_refused_and_no_node_ends(clusters):
    up = clusters(Limited, limit=f"--fsize={8 * MIB}", nodes=2)
    pids = up.pids()
    source = up.folder / "large"
    source.write_bytes(bytes(32 * MIB))
    done = up.grist("put", source, up.url("/large"))
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1, done
    assert up.grist("stat", up.url("/large")).returncode != 0
    # Smaller files still work.
    up.put("/small", b"12345678" * 1000)
    assert up.get("/small") == b"12345678" * 1000
    assert up.pids() == pids
