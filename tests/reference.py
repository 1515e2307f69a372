"""The right answers, computed only with integers and fractions of Python."""

import bisect
import math
import struct
from fractions import Fraction

import numpy as np

UNIT = 1074  # every finite f64 is an integer times 2**-1074

INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f32", "f64"]


def dtype(name, big=False):
    return np.dtype((">" if big else "<") + name[0] + str(int(name[1:]) // 8))


def select(data: bytes, kind, skip=0, record=None, window=None):
    """Elements of the records whose first byte lies in `window` (start, length), and the index of the first."""
    record = record or kind.itemsize
    count = (len(data) - skip) // record
    if window is None:
        first, end = 0, count
    else:
        start, length = window
        stop = len(data) if length is None else start + length
        chosen = [i for i in range(count) if start <= skip + i * record < stop]
        first, end = (chosen[0], chosen[-1] + 1) if chosen else (0, 0)
    bytes_ = data[skip + first * record : skip + end * record]
    return np.frombuffer(bytes_, kind), first * (record // kind.itemsize)


def nearest(q: Fraction) -> float:
    """The f64 nearest to a fraction, ties to even, and infinity beyond the range."""
    try:
        return float(q)
    except OverflowError:
        return math.inf if q > 0 else -math.inf


def nearest_root(q: Fraction) -> float:
    """The f64 nearest to the square root of a fraction. It uses an integer root and a bit that says whether there is a
    remainder."""
    if q == 0:
        return 0.0
    shift = max(0, 140 - q.numerator.bit_length() + q.denominator.bit_length())
    shift += shift % 2
    scaled, rest = divmod(q.numerator << shift, q.denominator)
    root = math.isqrt(scaled)
    sticky = rest != 0 or root * root != scaled
    # If there is a remainder, the true root lies between root and root + 1. Half a unit stands for it.
    return nearest(Fraction(2 * root + sticky, 2 << (shift // 2)))


def scaled(x: float) -> int:
    """x * 2**1074 for a finite float."""
    n, d = x.as_integer_ratio()
    return n << (UNIT - d.bit_length() + 1)


class Moments:
    """Exact count, sum and sum of squares of the numbers in an array."""

    def __init__(self, values):
        values = np.asarray(values)
        self.count = len(values)
        self.integer = values.dtype.kind in "iu"
        self.nan = self.up = self.down = False
        if self.integer:
            numbers = [int(x) for x in values]
            self.total = sum(numbers)
            self.sum, self.squares = Fraction(self.total), Fraction(sum(x * x for x in numbers))
            return
        wide = values.astype(np.float64)
        self.nan = bool(np.isnan(wide).any())
        self.up, self.down = bool((wide == math.inf).any()), bool((wide == -math.inf).any())
        if not self.special:
            numbers = [scaled(float(x)) for x in wide]
            self.sum = Fraction(sum(numbers), 1 << UNIT)
            self.squares = Fraction(sum(x * x for x in numbers), 1 << 2 * UNIT)

    @property
    def special(self):
        return self.nan or self.up or self.down

    def _limit(self):
        if self.nan or self.up and self.down:
            return math.nan
        return math.inf if self.up else -math.inf

    def rounded_sum(self):
        if self.integer:
            return self.total
        return self._limit() if self.special else nearest(self.sum)

    def mean(self):
        return self._limit() if self.special else nearest(self.sum / self.count)

    def variance(self, ddof=0):
        """Variance and standard deviation."""
        if self.special:
            return math.nan, math.nan
        n = self.count
        q = (n * self.squares - self.sum**2) / (n * (n - ddof))
        return nearest(q), nearest_root(q)


def histogram(values, edges):
    """Counts in the bins between these edges, from exact comparisons."""
    counts = [0] * (len(edges) - 1)
    for x in values.tolist():
        if edges[0] <= x <= edges[-1]:
            counts[min(bisect.bisect_right(edges, x) - 1, len(counts) - 1)] += 1
    return counts


def same(got, want):
    """Whether two numbers are equal bit for bit. All NaN are equal."""
    if isinstance(got, list):
        return len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, (float, np.floating)) and isinstance(got, float):
        if math.isnan(want) or math.isnan(got):
            return math.isnan(want) and math.isnan(got)
        return struct.pack("<d", got) == struct.pack("<d", float(want))
    return type(got) is int and not isinstance(want, (float, np.floating)) and got == int(want)


def agree(got: dict, want: dict):
    assert got.keys() == want.keys(), (got, want)
    for key in want:
        assert same(got[key], want[key]), f"{key}: got {got[key]!r}, want {want[key]!r}"
