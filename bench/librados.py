"""Reads all objects of a pool of Ceph, several at once, and throws their bytes away. It does what a loop in C would do.

    python bench/librados.py POOL [NAMESPACE ...]

The cluster and the user are those of the environment (CEPH_CONF, CEPH_ARGS). It prints the bytes and the seconds.
"""

import argparse
import ctypes
import json
import os
import time
from collections import deque

#: Objects that are read at once, and the most bytes of one.
AT_ONCE, OBJECT = 8, 4 << 20


class Rados:
    """A connection to a pool."""

    def __init__(self, pool):
        self.library = ctypes.CDLL("librados.so.2")
        self.cluster, self.io = ctypes.c_void_p(), ctypes.c_void_p()
        words = os.environ.get("CEPH_ARGS", "").split()
        user = words[words.index("--id") + 1] if "--id" in words else "admin"
        self.call("rados_create", ctypes.byref(self.cluster), user.encode())
        self.call("rados_conf_read_file", self.cluster, None)
        self.call("rados_conf_set", self.cluster, b"log_file", b"")
        self.call("rados_connect", self.cluster)
        self.call("rados_ioctx_create", self.cluster, pool.encode(), ctypes.byref(self.io))

    def call(self, name, *args):
        returned = getattr(self.library, name)(*args)
        if returned < 0:
            raise SystemExit(f"{name}: {os.strerror(-returned)}")
        return returned

    def enter(self, namespace):
        """Looks at the objects of a namespace from now on."""
        self.library.rados_ioctx_set_namespace(self.io, namespace.encode())

    def names(self):
        """The names of all objects."""
        cursor, name = ctypes.c_void_p(), ctypes.c_char_p()
        self.call("rados_nobjects_list_open", self.io, ctypes.byref(cursor))
        found = []
        while self.library.rados_nobjects_list_next(cursor, ctypes.byref(name), None, None) == 0:
            found.append(name.value)
        self.library.rados_nobjects_list_close(cursor)
        return sorted(found)

    def read(self, names, buffers):
        """Reads objects, as many at once as there are buffers. Returns the number of bytes."""
        total, running = 0, deque()

        def end_one():
            completion, buffer = running.popleft()
            self.library.rados_aio_wait_for_complete(completion)
            read = self.call("rados_aio_get_return_value", completion)
            self.library.rados_aio_release(completion)
            buffers.append(buffer)
            return read

        for name in names:
            if not buffers:
                total += end_one()
            buffer, completion = buffers.popleft(), ctypes.c_void_p()
            self.call("rados_aio_create_completion2", None, None, ctypes.byref(completion))
            self.call("rados_aio_read", self.io, name, completion, buffer, ctypes.c_size_t(OBJECT), ctypes.c_uint64(0))
            running.append((completion, buffer))
        while running:
            total += end_one()
        return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pool")
    parser.add_argument("namespace", nargs="*", default=[""])
    options = parser.parse_args()
    rados = Rados(options.pool)
    names = {}
    for namespace in options.namespace:
        rados.enter(namespace)
        names[namespace] = rados.names()
    buffers = deque(ctypes.create_string_buffer(OBJECT) for _ in range(AT_ONCE))
    begun = time.perf_counter()
    total = 0
    for namespace, found in names.items():
        rados.enter(namespace)
        total += rados.read(found, buffers)
    print(json.dumps({"bytes": total, "seconds": time.perf_counter() - begun}))
    rados.library.rados_shutdown(rados.cluster)


if __name__ == "__main__":
    main()
