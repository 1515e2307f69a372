"""The error bound of covariances and correlations."""

import numpy as np
import xarray as xr

from .bounds import EPS, MORE, OF_BLOCKS, WIDE, Near, evaluated, finite, rounded, size_of, wide


def bound(step, value, x, names, ds):
    other = ds[step.more["other"]]
    there = evaluated(step.text, wide(ds), x=x.wide)
    one, two = xr.align(x.wide, wide(other), join="inner")
    here = one.notnull() & two.notnull()
    one, two = one.where(here), two.where(here)
    over = step.more["over"].removeprefix(", ")
    dims = eval(over) if over else [*dict.fromkeys([*one.dims, *two.dims])]
    eps = max(rounding(x.value), rounding(other))
    count = (size_of(one) + MORE) * eps
    far_one, far_two = one - one.mean(dims), two - two.mean(dims)
    off_one, off_two = count * abs(one).mean(dims), count * abs(two).mean(dims)
    # Both are divided by at most one less than the number of elements.
    error = 4 * (count * (abs(far_one) * abs(far_two)).mean(dims) + off_one * off_two)
    if step.more["function"] == "corr":
        spread_one, spread_two = np.sqrt((far_one**2).mean(dims)), np.sqrt((far_two**2).mean(dims))
        both = spread_one * spread_two
        loose = ((off_one / spread_one) ** 2 + (off_two / spread_two) ** 2 + 8 * count) * abs(there)
        if OF_BLOCKS.get():
            # As for a variance: dask multiplies the rounding error of a mean by the distance of a block's mean.
            loose = loose + (off_one / spread_one + off_two / spread_two) * abs(there)
        error = 2 * error / both + 4 * loose
        # The correlation of values that do not vary may be anything.
        error = xr.where((spread_one <= 4 * off_one) | (spread_two <= 4 * off_two), np.inf, error)
        # The same holds if a product overflows or underflows its type.
        error = xr.where(beyond(far_one, far_two, value.dtype, dims), np.inf, error)
        # In 80 bits it may be no number, where rounding makes one in 64 bits. Later steps need a number beside the bound.
        there = there.where(there.notnull() | (error < np.inf), wide(value))
    return Near(value, there, finite(error) + rounded(value, there))


def beyond(one, two, dtype, dims):
    """Whether products or squares of distances overflow or underflow a type."""
    limit = np.finfo(dtype)
    largest, least = WIDE(limit.max), WIDE(limit.smallest_normal)
    far = [abs(each).max(dims) for each in (one, two)]
    made = [far[0] * far[1], far[0] ** 2, far[1] ** 2]
    return sum((each > largest) | (each < least) for each in made) > 0


def rounding(value):
    """The machine epsilon of the type in which xarray computes. Short integers become f4 if elements may be missing."""
    if value.dtype.kind in "iu" and value.dtype.itemsize <= 2 or value.dtype == np.float32:
        return float(np.finfo("f4").eps)
    return EPS
