"""Makes the data of the benchmark programs, if they are missing.

    python bench/data.py [--dir DIR] [--size 1GiB] [KIND ...]

The same kind and size give the same bytes with every installation of this NumPy version. A smaller array is the beginning of a
larger one. Files are written in pieces, so memory stays small. They get their name when they are complete.
"""

import argparse
import os
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_DIR = ROOT / "target" / "bench-data"

MIB = 1 << 20
GIB = 1 << 30

# How many values of an array, and lines of a text, are made at once.
PIECE_VALUES = 1 << 20
PIECE_LINES = 1 << 15

# The share and the value of elements that stand for "not measured".
FILL_SHARE = 0.3
FILL_VALUE = 1e36

# The text that the searches in grep.py look for.
LITERAL = "connection reset by peer"


def normal(rng, n):
    return rng.standard_normal(n)


def binades(rng, n):
    """Both signs and 200 binary exponents, all equally likely."""
    values = rng.uniform(1.0, 2.0, n) * np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return np.ldexp(values, rng.integers(-100, 100, n, dtype=np.int32))


def fill(rng, n):
    values = rng.standard_normal(n)
    values[rng.random(n) < FILL_SHARE] = FILL_VALUE
    return values


def lognormal(rng, n):
    """Values from about e^-10 to e^10."""
    return rng.lognormal(0.0, 2.5, n)


def integers(rng, n):
    return rng.integers(-(2**31), 2**31, n, dtype=np.int32)


# Name: (function that makes the values, type as gristmill calls it, seed).
ARRAYS = {
    "normal": (normal, "f64", 1),
    "binades": (binades, "f64", 2),
    "fill": (fill, "f64", 3),
    "lognormal": (lognormal, "f64", 4),
    "integers": (integers, "i32", 5),
}
KINDS = [*ARRAYS, "text"]
TEXT_SEED = 6

DTYPES = {"f64": "<f8", "i32": "<i4"}

WORDS = (
    "the of and to in is was for that on as with by at from it an be this which or are not have has had but "
    "all one new more also two when time other first only after some most such into over between many through "
    "during where three about number system world known under water state part called while made found used "
    "second several around small large until since against including within energy field measured surface "
    "temperature pressure observation satellite model cluster sample sequence protein storage record stripe"
).split()
SERVICES = ["gateway", "payments", "catalogue", "search", "mailer", "scheduler", "archive"]
LEVELS = ["INFO ", "INFO ", "INFO ", "INFO ", "DEBUG", "DEBUG", "WARN ", "ERROR"]
EVENTS = [
    "request served",
    "cache miss for key",
    "session opened",
    "session closed",
    "object written",
    "object read",
    "retrying after timeout",
    "queue drained",
]


def text_lines(rng, n):
    """Log lines, prose, and sometimes sequences of capital letters. One line in a thousand has the literal."""
    kind = rng.integers(0, 1000, n)
    numbers = rng.integers(0, 1 << 30, (n, 4))
    lengths = rng.geometric(1 / 12, n) + 2
    words = rng.integers(0, len(WORDS), int(lengths.sum()))
    letters = rng.integers(0, 26, (n // 100 + 1, 40), dtype=np.uint8) + ord("A")
    at = 0
    for i, (which, (a, b, c, d), length) in enumerate(zip(kind.tolist(), numbers.tolist(), lengths.tolist())):
        of_line, at = words[at : at + length], at + length
        if which < 600:
            event = LITERAL if which == 0 else EVENTS[c % len(EVENTS)]
            yield (
                f"2025-{a % 12 + 1:02}-{a % 28 + 1:02}T{b % 24:02}:{c % 60:02}:{d % 60:02}.{a % 1000:03}Z "
                f"host{b % 64:03} {LEVELS[d % len(LEVELS)]} {SERVICES[a % len(SERVICES)]}[{c % 32768}]: {event} "
                f"id={a:08x}{b:08x} bytes={c} took {d % 2000} ms"
            )
        elif which < 995:
            yield " ".join([WORDS[w] for w in of_line.tolist()])
        else:
            yield letters[i % len(letters), : 8 + a % 32].tobytes().decode()


def pieces(kind, size):
    """The bytes of a file of this kind, in pieces."""
    left = size
    number = 0
    while left:
        if kind == "text":
            rng = np.random.default_rng([TEXT_SEED, number])
            piece = ("\n".join(text_lines(rng, PIECE_LINES)) + "\n").encode()
        else:
            make, dtype, seed = ARRAYS[kind]
            rng = np.random.default_rng([seed, number])
            piece = make(rng, PIECE_VALUES).astype(DTYPES[dtype]).tobytes()
        piece = piece[:left]
        if kind == "text" and len(piece) == left and left:
            piece = piece[:-1] + b"\n"
        yield piece
        left -= len(piece)
        number += 1


def path_of(directory, kind, size):
    ending = "txt" if kind == "text" else ARRAYS[kind][1]
    return Path(directory) / f"{kind}-{size_name(size)}.{ending}"


def make(directory, kind, size):
    """The path of a file of this kind and size. The file is made if it is missing."""
    path = path_of(directory, kind, size)
    if path.exists() and path.stat().st_size == size:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with open(part, "wb") as out:
        for piece in pieces(kind, size):
            out.write(piece)
        # The data must not be written back in the middle of a measurement.
        out.flush()
        os.fsync(out.fileno())
    os.replace(part, path)
    return path


def size_name(size):
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size}B"


def parse_size(text):
    for name, unit in (("GiB", GIB), ("MiB", MIB), ("KiB", 1 << 10), ("", 1)):
        number = text.removesuffix(name)
        if text.endswith(name) and number.isdigit() and int(number) > 0:
            if (size := int(number) * unit) % 8 == 0:
                return size
    raise argparse.ArgumentTypeError(f"{text!r} is no size such as 64MiB or 1GiB, a multiple of 8 bytes")


def main():
    parser = argparse.ArgumentParser(description="Makes the data of the benchmark programs, only what is missing.")
    parser.add_argument("--dir", type=Path, default=DEFAULT_DIR, help="where to (default: %(default)s)")
    parser.add_argument("--size", type=parse_size, default=GIB, help="bytes of each array (default: 1GiB)")
    parser.add_argument("--text-size", type=parse_size, default=512 * MIB, help="of the text (default: 512MiB)")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)} (default: all)")
    options = parser.parse_args()
    for kind in options.kinds or KINDS:
        if kind not in KINDS:
            parser.error(f"there is no kind {kind!r}; there are {', '.join(KINDS)}")
        print(make(options.dir, kind, options.text_size if kind == "text" else options.size), flush=True)


if __name__ == "__main__":
    main()
