"""Reads all objects of a pool of Ceph, several at once, and throws their bytes away. It does what a loop in C would do.

    python bench/librados.py POOL [NAMESPACE ...] [--prefix PREFIX] [--call CLASS METHOD]

With `--call` it reads nothing. It calls a method of an object class on each object, and adds the numbers (f64) that it answers. The
cluster and the user are those of the environment (CEPH_CONF, CEPH_ARGS). It prints the bytes that it got, the sum and the seconds.
"""

import argparse
import ctypes
import json
import math
import os
import struct
import time
from collections import deque

#: Objects that are read at once, and the most bytes of one.
AT_ONCE, OBJECT = 8, 4 << 20
NUMBER = struct.Struct("<d")


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

    def read(self, name, completion, buffer):
        """Starts to read an object."""
        self.call("rados_aio_read", self.io, name, completion, buffer, ctypes.c_size_t(OBJECT), ctypes.c_uint64(0))

    def method(self, kind, name):
        """A function that starts a method of an object class on an object."""

        called = (kind.encode(), name.encode(), None, ctypes.c_size_t(0))

        def start(of, completion, buffer):
            self.call("rados_aio_exec", self.io, of, completion, *called, buffer, ctypes.c_size_t(OBJECT))

        return start

    def each(self, names, buffers, start, end):
        """Calls `start` for objects, as many at once as there are buffers, and `end` with each buffer and the number of bytes in it."""
        running = deque()

        def end_one():
            completion, buffer = running.popleft()
            self.library.rados_aio_wait_for_complete(completion)
            end(buffer, self.call("rados_aio_get_return_value", completion))
            self.library.rados_aio_release(completion)
            buffers.append(buffer)

        for name in names:
            if not buffers:
                end_one()
            buffer, completion = buffers.popleft(), ctypes.c_void_p()
            self.call("rados_aio_create_completion2", None, None, ctypes.byref(completion))
            start(name, completion, buffer)
            running.append((completion, buffer))
        while running:
            end_one()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pool")
    parser.add_argument("namespace", nargs="*", default=[""])
    parser.add_argument("--prefix", default="", help="only objects whose names begin with this")
    parser.add_argument("--call", nargs=2, metavar=("CLASS", "METHOD"), help="call this on each object")
    options = parser.parse_args()
    rados = Rados(options.pool)
    names = {}
    for namespace in options.namespace:
        rados.enter(namespace)
        names[namespace] = [name for name in rados.names() if name.startswith(options.prefix.encode())]
    buffers = deque(ctypes.create_string_buffer(OBJECT) for _ in range(AT_ONCE))
    start = rados.method(*options.call) if options.call else rados.read
    lengths, numbers = [], []

    def end(buffer, length):
        lengths.append(length)
        if options.call:
            numbers.append(NUMBER.unpack_from(buffer)[0])

    begun = time.perf_counter()
    for namespace, found in names.items():
        rados.enter(namespace)
        rados.each(found, buffers, start, end)
    seconds = time.perf_counter() - begun
    print(json.dumps({"bytes": sum(lengths), "sum": math.fsum(numbers), "seconds": seconds}))
    rados.library.rados_shutdown(rados.cluster)


if __name__ == "__main__":
    main()
