"""The papers' requests and their input."""

import math
import os

import numpy as np

import data
from storage import Request

# What GREP looks for, in one record of so many.
NEEDLE, EVERY = b"gristmill", 1000
TEXT_RECORD = 128
PIECE_RECORDS = 1 << 15

# Files have whole records of all sizes that are asked for: 8, 80 and 128 bytes.
WHOLE = 640

SUM = Request("sum", lambda all_: {"sum": math.fsum(each["sum"] for each in all_)}, dtype="f64")
SUM_80 = Request("sum", SUM.together, dtype="f64", record=80)
GREP = Request(
    "grep",
    lambda all_: {"count": sum(each["count"] for each in all_)},
    record=TEXT_RECORD,
    params={"pattern": NEEDLE.decode(), "count_only": "true"},
)


def whole(size):
    return max(int(size) // WHOLE, 1) * WHOLE


def doubles(directory, size):
    """A file of normally distributed f64: at least so many bytes."""
    return data.make(directory, "normal", -(-size // data.MIB) * data.MIB)


def records(directory, size):
    """A file of text records of 128 bytes, a newline at the end of each."""
    path = directory / f"records-{size}.txt"
    if path.exists() and path.stat().st_size == size:
        return path
    rng = np.random.default_rng(7)
    part = path.with_suffix(".part")
    with open(part, "wb") as out:
        while out.tell() < size:
            piece = rng.integers(ord("a"), ord("z") + 1, (PIECE_RECORDS, TEXT_RECORD), dtype=np.uint8)
            piece[:, -1] = ord("\n")
            hits = np.flatnonzero(rng.integers(0, EVERY, PIECE_RECORDS) == 0)
            piece[hits, 40 : 40 + len(NEEDLE)] = np.frombuffer(NEEDLE, np.uint8)
            out.write(piece.tobytes()[: size - out.tell()])
        out.flush()
        os.fsync(out.fileno())
    os.replace(part, path)
    return path


def cut(source, size):
    """The beginning of a file as a file of its own."""
    if source.stat().st_size == size:
        return source
    path = source.with_name(f"{source.stem}-{size}{source.suffix}")
    if not (path.exists() and path.stat().st_size == size):
        part = path.with_suffix(".part")
        with open(source, "rb") as whole_, open(part, "wb") as out:
            while out.tell() < size:
                out.write(whole_.read(min(1 << 20, size - out.tell())))
        os.replace(part, path)
    return path


def same(found, truth):
    """Whether two answers agree; ranks of a parallel program round their parts."""
    if isinstance(truth, dict):
        return all(name in found and same(found[name], value) for name, value in truth.items())
    if isinstance(truth, float):
        return math.isclose(found, truth, rel_tol=1e-11, abs_tol=1e-9)
    return found == truth


# Son's benchmarks: name, what makes the input, request.
KERNELS = (("SUM", doubles, SUM), ("GREP", records, GREP))
