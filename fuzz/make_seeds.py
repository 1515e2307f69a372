#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: a few small, well-formed inputs for each. Run it after a format changed,
with h5py and pyarrow (tests/requirements.txt)."""

import gzip
import io
import json
import struct
import zlib
from pathlib import Path

import pyarrow

HERE = Path(__file__).resolve().parent / "seeds"


def u64(*numbers):
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def blob(data):
    return u64(len(data)) + data


def text(value):
    return json.dumps(value, separators=(",", ":")).encode()


FILE = {
    "id": "0123456789abcdef" * 2, "path": "/d", "length": 800, "unit": 64, "first": 1, "record": 8,
    "targets": [{"number": 0, "address": "127.0.0.1:1", "version": 3}, {"number": 4, "address": "unix:/s", "version": 1}],
}
INFO = {"file": FILE, "owner": "alice", "mode": "644", "created": 9}
FOLD = {
    "gristmill": 1, "grant": "g.s", "kernel": "sum", "params": [], "input": {"type": "f64", "skip": 0, "big_endian": False},
    "max_record": 65536, "targets": [0, 2], "rest": [{"address": "a:1", "targets": [1]}], "depth": 1, "round": 1,
    "shared": "AAAA", "select": [0, 100],
}
RUN = {"gristmill": 1, "kernel": "histogram", "path": "/d", "type": "f32", "params": {"bins": 4, "range": "0:1"}}

# One piece over 0..8 and one over 8..16 with a state of 8 bytes, and 16 with none.
PARTIAL = u64(0, 1, 1, 0, 8) + blob(u64(8)) + b"\0"
OTHER = u64(0, 1, 1, 8, 16) + blob(u64(8)) + b"\1" + u64(12)


def object_fold(kernel, dtype, record, *spans, params=(), content=bytes(range(256)) * 2):
    """A request for a fold inside a storage daemon, and the bytes of the object."""
    named = b"".join(blob(word.encode()) for pair in params for word in pair)
    binding = blob(kernel.encode()) + u64(len(params)) + named + blob(dtype.encode()) + u64(record) + b"\0" + u64(4096)
    message = u64(1) + binding + u64(0) + blob(b"") + b"\0" + u64(0, 1 << 20, len(spans), *(number for span in spans for number in span))
    return struct.pack("<H", len(message)) + message + content


def http(line, *headers, body=b""):
    return "\r\n".join([line + " HTTP/1.1", "Host: n", *headers, "Connection: close", "", ""]).encode() + body


def grpc(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


SEEDS = {
    "fold_request": [
        text({"fold": FOLD}),
        text({"fold": FOLD | {"kernel": "grep", "params": [["pattern", "a.c"], ["fixed", "true"]], "input": {}}}),
        text({"fold": FOLD | {"gristmill": 2}}),
        text(RUN),
        text({"gristmill": 1, "kernel": "lookup", "path": "/d", "type": "i32", "range": [8, None], "place": "client",
              "params": {"where": ">= 1 and < 5"}}),
    ],
    "frame": [
        b"\1" + u64(7), b"\2" + u64(4096), b"\3\3\2\1\5\5ab", b"\4\1\0\1" + u64(3, 9) + blob(b"state"), b"\4\0\1\0",
        b"\5" + blob(PARTIAL), b"\6" + u64(5) + blob(b"data") + blob(b"element 5 is NaN"),
        b"\7" + u64(2, 0, 10, 2, 3, 7, 1, 5, 6),
    ],
    "rows": [b"\3\2\1\5\5ab", b"\1\2\2\0\1\1\7abcd", b"\2\2\4\1\1\2xyz", b"\0\1\0\0\3xyz", b"\3\0\0"],
    "object_fold": [
        object_fold("sum", "f64", 8, (0, 10, 40), (256, 64, 90)),
        object_fold("wc", "", 0, (3, 3, 400)),
        object_fold("histogram", "i16", 2, (0, 0, 9), params=[("bins", "4"), ("range", "0:99")]),
        object_fold("count", "", 13, (0, 5, 30)),
    ],
    "partial": [bytes([kernel]) + struct.pack("<H", len(PARTIAL)) + PARTIAL + OTHER for kernel in (0, 5, 19)],
    "join": [
        bytes([kernel]) + bytes([6, 0, 3, 7, 8, 3, 9]) + bytes([6, 4, 3, 1, 8, 3, 2]) for kernel in (0, 2, 4, 8, 13, 19, 21)
    ],
    "grant": [
        text({"principal": "alice", "rights": rights, "file": FILE, "expires": 2000}) for rights in ("read", "write", "manage")
    ],
    "action": [
        bytes([n]) + text(body) for n, body in enumerate([
            {"path": "/d"}, INFO, {"info": INFO, "grant": "g.s"},
            {"path": "/d", "unit": 4096, "record": 8, "targets": 2, "on": [0, 1], "mode": "640"},
            {"file": FILE, "grant": "g.s", "lease_seconds": 60}, {"id": "0" * 32},
            {"id": "0" * 32, "length": 8, "receipts": [None, {"length": 8, "version": 1, "seal": "s"}]},
            {"length": 8, "version": 1, "seal": "s"}, {"path": "/", "after": "d"},
            {"entries": [{"name": "d", "info": INFO}, {"name": "e", "info": None}], "more": True},
            {"path": "/d", "mode": "644"}, {"target": "0" * 32, "address": "127.0.0.1:1", "at": 9, "seal": "s"},
            {"number": 3}, {"nodes": [{"number": 0, "target": "0" * 32, "address": "a:1"}]},
            {"kind": "not-found", "message": "there is no /d"}, {"name": "d", "info": INFO},
        ])
    ],
    "checkpoint": [b"", b"\0", b"\x08", b"\x20" + u64(5), b"\x60" + u64(1, 2, 3), b"\xff" + u64(7)],
    "kernel_state": [
        bytes([kernel]) + shared + bytes([16]) + u64(3, 4) + u64(3, 4)
        for kernel in range(24) for shared in ([b"\0", b"\x10" + struct.pack("<dd", 0, 1)] if kernel in (8, 10) else [b"\0"])
    ],
    "names": [
        b"127.0.0.1:7440", b"[::1]:7440", b"unix:/run/n.sock", b"grist://h:1/a/b", b"grist+unix:///s:/a", b"grist:///a",
        b"/a/b.f64", b"/a/", b"alice", b"uid:1000", b"640", b"0123456789abcdef0123456789abcdef", b"/tmp/x",
    ],
    "plan": [
        u64(*(n << 8 for n in numbers)) for numbers in (
            (1 << 26, 4096, 0, 4, 1 << 20, 0, 1), (1 << 20, 1000, 1, 3, 96, 7, 0, 500, 9000), (1 << 40, 1 << 16, 2, 5, 24, 8, 1),
        )
    ],
    "rados_head": [
        b"GRO1\0" + u64(3, 800, 1, 7) + b"\0" + u64(0) + struct.pack("<I", 0) + struct.pack("<I", 0),
        b"GRO1\1" + u64(3, 5 << 20, 1, 7) + b"\1" + u64(9) + struct.pack("<IQBQB", 2, 0, 0, 1, 5) + struct.pack("<I", 1) + u64(0, 4096),
        b"7a6f node-1:7440",
    ],
    "index_page": [
        b'<a href="../">up</a> <a href="a.nc">a</a> <A HREF=\'b%20c/\'>b c</A>', b'<a href=/some/folder/x>x</a><a href="?C=M">',
        b'<a href="https://host:8080/some/folder/y.nc">', b'<a href="&#47;some/folder/&amp;z">', b"<a href=\"a%2fb\"><a href=//evil/>",
    ],
    "reductionist": [
        struct.pack("<H", len(body)) + body + stored for body, stored in (
            (text({"interface_type": "s3", "url": "http://h/b/k", "dtype": dtype, "byte_order": "big"} | more), stored)
            for dtype, more, stored in (
                ("int32", {"shape": [2, 3], "axis": [0], "selection": [[0, 2, 1], [2, 0, -1]]}, bytes(24)),
                ("float64", {"shape": [2], "missing": {"valid_range": [0, 1]}, "order": "F", "axis": []}, bytes(16)),
                ("uint64", {"offset": 8, "size": 16, "missing": {"missing_values": [0, 1]}}, bytes(16)),
                ("float32", {"shape": [4], "filters": [{"id": "shuffle", "element_size": 4}]}, bytes(16)),
                ("int64", {"shape": [4], "compression": {"id": "zlib"}}, zlib.compress(bytes(32))),
                ("uint32", {"shape": [4], "compression": {"id": "gzip"}, "option_count_as_bytes": True}, gzip.compress(bytes(16))),
            )
        )
    ],
    "range": [u64(1000 << 8) + header for header in (b"bytes=0-99", b"bytes=900-", b"bytes=-5", b"bytes=1-2,4-5")],
    "node": [
        http("GET /health"), http("GET /files/a", "Range: bytes=0-9"), http("GET /files/"), http("HEAD /files/a"),
        http("PUT /files/a", "Content-Length: 3", body=b"abc"), http("DELETE /files/a"),
        http("PUT /files/b", "Transfer-Encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n"),
        http("GET /objects/file-0", "x-gristmill-grant: g.s"),
        http("POST /objects/file-0/extents", "x-gristmill-grant: g.s", "Content-Length: 16", body=u64(0, 8)),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + grpc(4, 0, 0, b"") + grpc(6, 0, 0, u64(1)) + grpc(7, 0, 0, u64(0)),
    ],
}


# Chunk tables: numbers are LEB128.
def head(shape, chunk, filters=b"\0", dtype=8, edges=0, places=b"\0\2", fill=bytes(4)):
    axes = bytes([len(shape), *shape, *chunk, *shape])
    return b"grtb\2" + bytes([dtype, 0, edges]) + axes + filters + fill + b"\1\0" + b"\x80\x40" + places


def parts(*all):
    return b"".join(struct.pack("<H", len(part)) + part for part in all)


def decoded(filters, stored, mask=0):
    table = head([8], [8], filters)
    return bytes([len(table)]) + table + bytes([0, mask]) + stored


def blosc(flags, stored, size=32):
    return struct.pack("<4B3I", 2, 1, flags, 4, size, size, 16 + len(stored)) + stored


def blosc2(flags, stored, size=32, filters=b"\1", more=0):
    header = struct.pack("<4B3I", 5, 1, 5 | flags, 4, size, size, 32 + len(stored))
    return header + filters.ljust(15, b"\0") + bytes([more]) + stored


ELEMENTS = struct.pack("<8f", *range(8))
SEEDS["chunk_table"] = [
    parts(head([4], [2]), b"grtp\2\0\2\2" + bytes([0, 20, 16, 0, 0, 0, 0, 0])),
    parts(head([4], [2], edges=1, places=b"\1\0\4")),
    parts(head([4], [4], places=b"\2\x10" + bytes(16))),
]
SEEDS["chunk_decode"] = [
    decoded(b"\0", ELEMENTS),
    decoded(b"\2\x09\4\0", zlib.compress(ELEMENTS)),
    decoded(b"\1\0", ELEMENTS, 1),
    decoded(b"\1\1", gzip.compress(ELEMENTS, mtime=0)),
    decoded(b"\1\2", bytes.fromhex("28b52ffd2020010100") + ELEMENTS),
    decoded(b"\1\3", struct.pack(">QII", 32, 32, 32) + ELEMENTS),
    decoded(b"\1\4", struct.pack("<I", 32) + b"\xf0\x11" + ELEMENTS),
    decoded(b"\1\5", b"\x1f" + ELEMENTS),
    decoded(b"\1\5", b"\3" + bytes(4) + b"\xe0\x13\3"),
    decoded(b"\1\6", blosc(3, ELEMENTS)),
    decoded(b"\1\6", blosc(0x11, struct.pack("<II", 20, 32) + ELEMENTS)),
    decoded(b"\1\6", blosc(0x14, struct.pack("<II", 20, 33) + b"\x1f" + ELEMENTS)),
    decoded(b"\1\6", blosc(0x71, struct.pack("<II", 20, 40) + zlib.compress(ELEMENTS))),
    decoded(b"\1\x0d", blosc2(2, ELEMENTS)),
    decoded(b"\1\x0d", blosc2(0x10, struct.pack("<II", 36, 32) + ELEMENTS)),
    decoded(b"\1\x0d", blosc2(0x20, struct.pack("<IiBiII", 36, -7, 1, 0, 0, 0), filters=b"\2\3")),
    decoded(b"\1\x0d", blosc2(0x70, struct.pack("<II", 36, 40) + zlib.compress(ELEMENTS), filters=b"\3\4\1")),
    decoded(b"\1\x0d", blosc2(0, bytes(4), more=0x30)),
    decoded(b"\1\x07", ELEMENTS + bytes(4)),
    decoded(b"\1\x08", ELEMENTS + bytes(4)),
    decoded(b"\1\x0a\1\0", ELEMENTS),
    decoded(b"\1\x0b\4\4\x10\x08\x20", struct.pack("<I", 32) + ELEMENTS),
    decoded(b"\1\x0c,\0", b"1,2\n3\n" * 4),
]


def hdf5(make, **how):
    """A small HDF5 file; the same bytes every time."""
    import h5py

    memory = io.BytesIO()
    with h5py.File(memory, "w", **how) as file:
        make(file)
    return b"\0" + memory.getvalue()


def several(file):
    file.attrs["title"] = "seed"
    a = file.create_dataset("a", (5, 3), ">i2", chunks=(2, 3), maxshape=(None, 3), shuffle=True, compression="gzip")
    a[:3] = 7
    a.attrs["units"] = [1.5, 2.5]
    file.create_dataset("g/b", data=[1.0, 2.0])
    file["c"] = h5py_soft()


def h5py_soft():
    import h5py

    return h5py.SoftLink("/g/b")


def indexed(file):
    for name, shape, most in (("one", 4, 4), ("fixed", 12, 12), ("more", 12, None)):
        file.create_dataset(name, (shape,), "<f4", chunks=(4,), maxshape=(most,), fletcher32=True)[:] = 1
    file.create_dataset("tree", (4, 4), "<f4", chunks=(2, 2), maxshape=(None, None))[:] = 1


def classic():
    name = lambda text: struct.pack(">I", len(text)) + text.ljust(-(-len(text) // 4) * 4, b"\0")
    words = lambda *all: struct.pack(f">{len(all)}I", *all)
    out = b"CDF\1" + words(2, 10, 2) + name(b"t") + words(0) + name(b"x") + words(3) + words(0, 0, 11, 2)
    out += name(b"a") + words(2, 0, 1, 0, 0, 3, 8, 160) + name(b"b") + words(1, 0, 0, 0, 5, 4, 168)
    return out.ljust(160, b"\0") + bytes(range(24))


ZARR2 = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i2", "compressor": {"id": "zlib"}, "filters": None,
         "fill_value": 1, "order": "F"}
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ZARR3 = {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16", "fill_value": 1,
         "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
         "chunk_key_encoding": {"name": "default"}, "codecs": [BYTES, {"name": "crc32c"}], "attributes": {"a": [1, 2.5]}}
SHARDS = {"name": "sharding_indexed", "configuration": {
    "chunk_shape": [2], "codecs": [BYTES], "index_codecs": [BYTES], "index_location": "end"}}
NPY = b"\x93NUMPY\1\0" + struct.pack("<H", 60) + b"{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2), }".ljust(60)
SEEDS["format_open"] = [
    b"\0" + classic(), b"\0" + NPY + bytes(8), b"\1a,b\n1,2.5\n3,\n",
    b"\2" + text(ZARR2) + b"\0" + zlib.compress(bytes(4)),
    b"\3" + text(ZARR3) + b"\0" + bytes(12),
    b"\3" + text(ZARR3 | {"codecs": [SHARDS]}) + b"\0" + bytes(8) + u64(0, 4, 4, 4),
    hdf5(several), hdf5(several, libver="latest"), hdf5(indexed, libver="latest"), hdf5(indexed),
]


# Requests over arrays: numbers as postcard has them; first the grid and type, the pass, and how long the request is.
def asked(kind, op, expr=b"\0", axes=b"\0", rest=bytes(7), round=0, state=b""):
    spoken = b"\3\1" + bytes(8) + expr + op + axes + rest
    return bytes([kind, round]) + struct.pack("<H", len(spoken)) + spoken + state


EXPR = b"\1\x0ewhere(x>2,x,1)\1\1x"
SEEDS["array_request"] = [
    *(asked(kind, bytes([op]), state=u64(0, 1, 9)) for kind, op in enumerate(range(12))),
    asked(37, b"\2", EXPR), asked(38, b"\2", axes=b"\1\1\0"), asked(39, b"\x0c\2" + struct.pack("<2d", 0.5, 0.9), round=1),
    asked(37, b"\x0d\3" + struct.pack("<3d", 0, 1, 5)),
    # Groups and windows over the first axis.
    asked(37, b"\1", rest=bytes(5) + b"\1\0\7\0\2\0\2\0\2\1\2\0"),
    asked(38, b"\1", rest=bytes(6) + b"\1\0\2\1"),
]


# Messages of Arrow's IPC format: a header and a body, each after its length.
def messages(batch):
    def message(serialized):
        # After the marker of a message comes the length of its header (u32), then the header.
        length = struct.unpack_from("<I", serialized, 4)[0]
        header, body = serialized[8 : 8 + length], serialized[8 + length :]
        return b"".join(struct.pack("<H", len(part)) + part for part in (header, body))

    return message(batch.schema.serialize().to_pybytes()) + message(batch.serialize().to_pybytes())


ROWS = {"offset": pyarrow.array([3, None], "u8"), "row": pyarrow.array([b"flour", b"bran"], "binary"),
        "name": ["a", None], "cells": [[1.5], [2.5, 3.5]], "true": [True, False]}  # fmt: skip
SEEDS["flight_data"] = [
    messages(pyarrow.record_batch({name: ROWS[name] for name in names}))
    for names in (["offset"], ["row"], ["name", "true"], ["cells"], list(ROWS))
]


for target, seeds in SEEDS.items():
    folder = HERE / target
    folder.mkdir(parents=True, exist_ok=True)
    # Seeds with other names are inputs that once failed.
    for before in folder.glob("[0-9][0-9]"):
        before.unlink()
    for number, seed in enumerate(seeds):
        (folder / f"{number:02}").write_bytes(seed)
