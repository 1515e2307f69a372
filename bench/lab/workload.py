"""The requests of the papers and their input."""

import math
import os

import numpy as np

import data
from storage import Request

# The text that GREP looks for. One record in EVERY has it.
NEEDLE, EVERY = b"gristmill", 1000
TEXT_RECORD = 128
PIECE_RECORDS = 1 << 15

# Coordinates of a point, number of centres, and the spread of points around a centre, as in Son's table II and in bench/points.py.
DIMS, CENTRES, APART = 10, 20, 5
POINT = 8 * DIMS
PIECE_POINTS = 1 << 17

# The bytes, and pixels, of a row of an image.
ROW = 8192
PIECE_ROWS = 1 << 10

# Files consist of whole records of all requested sizes: 8, 80 and 128 bytes, and rows of images.
WHOLE = 40960

SUM = Request("sum", lambda all_: {"sum": math.fsum(each["sum"] for each in all_)}, dtype="f64", right=("sum",))
SUM_80 = Request("sum", SUM.together, dtype="f64", record=80, right=("sum",))
GREP = Request(
    "grep",
    lambda all_: {"count": sum(each["count"] for each in all_)},
    record=TEXT_RECORD,
    params={"pattern": NEEDLE.decode(), "count_only": "true"},
    right=("count",),
)


def kmeans(delta):
    """KMEANS until at most the share `delta` of the points changes its centre. With 1 it makes one iteration, as Son does (there
    are no earlier centres, so no share is known after the first iteration)."""
    end = {"max_iter": "1"} if delta >= 1 else {"delta": f"{delta:g}"}
    params = {"dims": str(DIMS), "k": str(CENTRES), "init": "first", "tol": "0"} | end
    return Request("kmeans", dtype="f64", params=params, right=("centers", "counts", "iterations"))


def gaussian(size):
    """The Gaussian filter with its mask of three by three over an image of so many bytes."""
    params = {"shape": f"{size // ROW},{ROW}", "mask": "3x3"}
    return Request("gaussian", dtype="u8", params=params, right=("shape", "rows"), rows="digest")


def summary(size):
    """The same filter. Its result is only the sum and the extremes of the filtered image."""
    params = gaussian(size).params | {"result": "summary"}
    return Request("gaussian", dtype="u8", params=params, right=("shape", "sum", "count", "min", "max"))


def whole(size):
    return max(int(size) // WHOLE, 1) * WHOLE


def doubles(directory, size):
    """A file of at least so many bytes of normally distributed f64."""
    return data.make(directory, "normal", -(-size // data.MIB) * data.MIB)


def records(directory, size):
    """A file of text records of 128 bytes, a newline at the end of each."""
    rng = np.random.default_rng(7)

    def piece():
        made = rng.integers(ord("a"), ord("z") + 1, (PIECE_RECORDS, TEXT_RECORD), dtype=np.uint8)
        made[:, -1] = ord("\n")
        hits = np.flatnonzero(rng.integers(0, EVERY, PIECE_RECORDS) == 0)
        made[hits, 40 : 40 + len(NEEDLE)] = np.frombuffer(NEEDLE, np.uint8)
        return made

    return in_pieces(directory / f"records-{size}.txt", size, piece)


def points(directory, size):
    """A file of points (f64) around centres whose clusters overlap."""
    rng = np.random.default_rng(8)
    centres = rng.uniform(-10, 10, (CENTRES, DIMS))

    def piece():
        about = centres[rng.integers(CENTRES, size=PIECE_POINTS)]
        return about + rng.normal(0, APART, (PIECE_POINTS, DIMS))

    return in_pieces(directory / f"points-{size}.f64", size, piece)


def image(directory, size):
    """A file of pixels of one byte each."""
    rng = np.random.default_rng(9)
    piece = lambda: rng.integers(0, 250, (PIECE_ROWS, ROW), dtype=np.uint8)
    return in_pieces(directory / f"image-{size}.u8", size, piece)


def in_pieces(path, size, piece):
    """Makes a file of so many bytes from arrays of `piece`, if the file does not exist yet."""
    if path.exists() and path.stat().st_size == size:
        return path
    part = path.with_suffix(".part")
    with open(part, "wb") as out:
        while out.tell() < size:
            out.write(piece().tobytes()[: size - out.tell()])
        out.flush()
        os.fsync(out.fileno())
    os.replace(part, path)
    return path


def cut(source, size):
    """The beginning of a file, as its own file."""
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
    """Whether two answers agree. The ranks of a parallel program round their parts."""
    if isinstance(truth, dict):
        return all(name in found and same(found[name], value) for name, value in truth.items())
    if isinstance(truth, float):
        return math.isclose(found, truth, rel_tol=1e-11, abs_tol=1e-9)
    return found == truth


# How to measure a core, for each kernel of a machine's rate: the function that makes the input, the function that makes the
# request for so many bytes, and the role of the host that sends it. A filtered image is as long as the image, so the node itself
# requests it. Otherwise the measurement would be that of the link.
CALIBRATING = {
    "sum": (doubles, lambda _: SUM, "client"),
    "gaussian": (image, gaussian, "storage"),
    "gaussian-summary": (image, summary, "client"),
}

# Son's benchmarks: name, function that makes the input, request.
KERNELS = (("SUM", doubles, SUM), ("GREP", records, GREP))
