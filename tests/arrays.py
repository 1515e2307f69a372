"""Runs the program that answers array requests, and computes exact answers to compare with."""

import json
import math
import os
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np

from conftest import binary

TYPES = {np.dtype(name): ours for name, ours in (
    ("int8", "i8"), ("int16", "i16"), ("int32", "i32"), ("int64", "i64"), ("uint8", "u8"), ("uint16", "u16"),
    ("uint32", "u32"), ("uint64", "u64"), ("float32", "f32"), ("float64", "f64"), ("bool", "bool"))}
DTYPES = {ours: dtype for dtype, ours in TYPES.items()}


class Refused(Exception):
    """The program gave an error instead of an answer."""


def program() -> Path:
    """The path of the example `reduce`: GRISTMILL_REDUCE, or the one beside the program under test. 'cargo test' and 'cargo build
    --examples' build it."""
    named = os.environ.get("GRISTMILL_REDUCE")
    path = Path(named) if named else binary().parent / "examples" / "reduce"
    assert path.exists(), f"{path} is not there: run 'cargo build -p gristmill-array --examples'"
    return path


class Reducer:
    """Sends requests for reductions to one process, which answers all of them."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.process = subprocess.Popen(
            [program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.seed = 0

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)

    def ask(self, data: np.ndarray, op: str, chunk=None, **request) -> dict:
        """The arrays of the answer by name, and the class of its numbers as `numerics`."""
        path = self.folder / "array.raw"
        little = data.dtype.newbyteorder("<")
        path.write_bytes(np.ascontiguousarray(data, little).tobytes())
        self.seed += 1
        asked = {"data": str(path), "shape": data.shape, "chunk": chunk or [max(n, 1) for n in data.shape],
                 "type": TYPES[data.dtype], "op": op, "seed": self.seed, **request}
        self.process.stdin.write(json.dumps(asked) + "\n")
        said = json.loads(self.process.stdout.readline())
        if "error" in said:
            raise Refused(said["error"])
        out = {"numerics": said["numerics"]}
        for name, array in said["result"].items():
            values = np.frombuffer(bytes.fromhex(array["bytes"]), DTYPES[array["type"]].newbyteorder("<"))
            out[name] = values.reshape(array["shape"]).astype(DTYPES[array["type"]])
        return out

    def one(self, data, op, **request) -> np.ndarray:
        return self.ask(data, op, **request)[op]


def ulps(a, b) -> int:
    """The largest distance between two elements, in steps from one float to the next. NaN must be at the same places in both."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    whole = {4: np.int32, 8: np.int64}[a.dtype.itemsize]

    def places(x):
        bits = x[~np.isnan(x)].view(whole).astype(object)
        lowest = np.iinfo(whole).min
        return [int(n) if n >= 0 else int(lowest) - int(n) for n in bits]

    return max((abs(x - y) for x, y in zip(places(a), places(b))), default=0)


def rounded(number: Fraction, dtype) -> float:
    """The float of a type that is nearest to a fraction, ties to even."""
    try:
        near = float(number)
    except OverflowError:
        near = math.inf if number > 0 else -math.inf
    if dtype == np.float64:
        return near
    with np.errstate(over="ignore"):
        guess = np.float32(near)
    if not np.isfinite(guess):
        return float(guess)
    around = [guess, np.nextafter(guess, np.float32(np.inf)), np.nextafter(guess, np.float32(-np.inf))]
    around = [x for x in around if np.isfinite(x)]
    even = lambda x: int(np.asarray(x, np.float32).view(np.int32)) & 1
    return float(min(around, key=lambda x: (abs(Fraction(float(x)) - number), even(x))))


def root(number: Fraction) -> float:
    """The float64 nearest to the square root of a fraction."""
    if number == 0:
        return 0.0
    shift = 2 * max(0, 70 - (number.numerator.bit_length() - number.denominator.bit_length()) // 2)
    whole = math.isqrt((number.numerator << shift) // number.denominator)
    # The bits that were cut off are far less than half a unit in the last place, but they are not zero.
    return float(Fraction(2 * whole + 1, 2) / (1 << (shift // 2)))


def exact(op: str, values: np.ndarray, dtype, ddof=0) -> float:
    """A sum, mean, variance or standard deviation of numbers without NaN, rounded once."""
    values = [float(x) for x in values]
    infinite = [x for x in values if math.isinf(x)]
    if infinite:
        return math.nan if op in ("var", "std") or len(set(infinite)) > 1 else infinite[0]
    numbers = [Fraction(x) for x in values]
    n, total = len(numbers), sum(numbers, Fraction(0))
    if op == "sum":
        return rounded(total, dtype)
    if op == "mean":
        return rounded(total / n, dtype) if n else math.nan
    if n <= ddof:
        return math.nan
    spread = sum((x - total / n) ** 2 for x in numbers) / (n - ddof)
    return rounded(spread, dtype) if op == "var" else float(np.asarray(root(spread), dtype))
