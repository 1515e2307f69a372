"""The answers of netCDF4-python and NumPy about a variable, and the true answers."""

import warnings
from dataclasses import dataclass

import netCDF4
import numpy as np

# How many times are read at once if a variable is not read whole. It is a whole number of chunks.
BLOCK_TIMES = 64

# How far the true answer may differ from ours, in units in the last place. Both are rounded once, and the true answer is rounded
# to f64 before it becomes f32.
ULPS = 1


@dataclass(frozen=True)
class Asked:
    """An operation, and whether it reduces over time only or over all axes."""

    op: str
    times_only: bool

    @property
    def axis(self):
        return 0 if self.times_only else None

    @property
    def name(self):
        return f"{self.op} {'over time' if self.times_only else 'of all'}"


MEAN, MEAN_OF_ALL = Asked("mean", True), Asked("mean", False)
ALL = (MEAN, Asked("max", True), Asked("std", True), Asked("sum", False), MEAN_OF_ALL)
# Decoding takes most of the time of these files, so fewer operations are enough.
SOME = (MEAN, Asked("max", True), Asked("sum", False))


def masked(variable, asked):
    """The way of the library: a masked array."""
    return getattr(variable[:], asked.op)(axis=asked.axis)


def with_nan(variable, asked):
    """Missing values become NaN, and NumPy's nan functions leave them out."""
    with warnings.catch_warnings():
        # NumPy warns of cells over land, which have no values.
        warnings.simplefilter("ignore", RuntimeWarning)
        return getattr(np, f"nan{asked.op}")(variable[:].filled(np.nan), axis=asked.axis)


WAYS = {"masked array": masked, "nan functions": with_nan}


def by_blocks(variable):
    """The mean over time in blocks that fit into a cache, as a careful programmer writes it."""
    total, count = 0.0, 0
    for at in range(0, variable.shape[0], BLOCK_TIMES):
        block = variable[at : at + BLOCK_TIMES]
        total = total + block.filled(0).sum(axis=0, dtype=np.float64)
        count = count + block.count(axis=0)
    with np.errstate(invalid="ignore"):
        return total / count


def answer(path, name, function, *more):
    """Opens the file and returns a plain array, with NaN for missing values."""
    with netCDF4.Dataset(path) as file:
        return plain(function(file[name], *more))


def plain(found):
    return np.ma.filled(np.ma.asanyarray(found), np.nan)


def truths(path, name, all_asked):
    """The true answers, rounded to the variable's decoded type: {asked: array}. Values of f32 are added in f64, and those of f64
    in the machine's longest type. Squares are added in a second pass, after the mean is known."""
    with netCDF4.Dataset(path) as file:
        variable = file[name]
        decoded = variable[:1].dtype
        wide = np.float64 if decoded == np.float32 else np.longdouble
        starts = range(0, variable.shape[0], BLOCK_TIMES)
        total, count, most = 0, 0, -np.inf
        for at in starts:
            block = variable[at : at + BLOCK_TIMES]
            total = total + block.filled(0).sum(axis=0, dtype=wide)
            count = count + block.count(axis=0)
            most = np.maximum(most, block.filled(-np.inf).max(axis=0))
        with np.errstate(invalid="ignore"):
            mean = total / count
            squares = 0
            if any(asked.op == "std" for asked in all_asked):
                for at in starts:
                    block = variable[at : at + BLOCK_TIMES]
                    away = np.where(np.ma.getmaskarray(block), 0, block.filled(0).astype(wide) - mean)
                    squares = squares + np.square(away).sum(axis=0)
            found = {
                ("mean", True): mean,
                ("max", True): np.where(count > 0, most, np.nan),
                ("std", True): np.sqrt(squares / count),
                ("sum", False): total.sum(),
                ("mean", False): total.sum() / count.sum(),
            }
        return {asked: np.asarray(found[asked.op, asked.times_only]).astype(decoded) for asked in all_asked}


def ulps(a, b):
    """The largest distance between two elements, in steps from one float to the next. It is infinite if only one of the two is
    NaN."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any():
        return float("inf")
    whole = {4: np.int32, 8: np.int64}[a.dtype.itemsize]

    def place(x):
        bits = np.where(np.isnan(x), 0, x).astype(a.dtype).view(whole).astype(object)
        return np.where(bits < 0, int(np.iinfo(whole).min) - bits, bits)

    return int(np.max(np.abs(place(a) - place(b)), initial=0))


def near(found, truth, times):
    """Whether NumPy's answer is right up to rounding. Each addition may round once, and its type may be wider."""
    found, truth = np.asarray(found, np.float64), np.asarray(truth)
    tolerance = times * np.finfo(truth.dtype).eps
    return found.shape == truth.shape and np.allclose(found, truth, rtol=tolerance, atol=0, equal_nan=True)
