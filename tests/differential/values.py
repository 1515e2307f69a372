"""Random elements of every type: ordinary ones, and ones that cause mistakes."""

import numpy as np

#: The ways to make elements of floats. Ordinary ones come more often.
STYLES = "small warm whole warm small wide huge beside denormal infinite steps zeros large_offset".split()
MISSING = (0, 0, 0.1, 0.1, 0.5, 1)


def floats(rng, choose, shape, dtype):
    """Elements of a float type, f8 or f4. Some of them may be NaN."""
    style = choose.choice(STYLES)
    values = rng.normal(0, 3, shape)
    largest = float(np.finfo(dtype).max)
    if style == "warm":
        values = rng.normal(285, 10, shape)
    elif style in ("whole", "steps"):
        values = rng.integers(-3, 4, shape).astype("f8")
        if style == "steps":
            values = np.sort(values, axis=None).reshape(shape)
    elif style == "wide":
        values = values * 10.0 ** rng.integers(-15, 16, shape)
    elif style == "huge":
        values = values * (largest / 100)
    elif style == "beside":
        values = np.where(rng.random(shape) < 0.1, choose.choice([9.96921e36, 1e30, -1e35, 1e20]), values)
    elif style == "denormal":
        values = values * float(np.finfo(dtype).smallest_normal)
    elif style == "infinite":
        values = np.where(rng.random(shape) < 0.15, choose.choice([np.inf, -np.inf]), values)
    elif style == "zeros":
        values = np.where(rng.random(shape) < 0.5, choose.choice([0.0, -0.0]), np.rint(values))
    elif style == "large_offset":
        values = values + choose.choice([1e6, 1e10, 4e15])
    with np.errstate(all="ignore"):
        values = np.asarray(values).astype(dtype)
    missing = choose.choice(MISSING)
    if missing and choose.random() < 0.7:
        values = np.where(rng.random(shape) < missing, np.asarray(np.nan, dtype), values)
    if values.ndim > 1 and choose.random() < 0.3:
        # All elements of a cell are missing, whichever axis is reduced.
        at = tuple(choose.randrange(n) if n and axis == values.ndim - 1 else slice(None) for axis, n in enumerate(shape))
        values = np.array(values)
        values[at] = np.nan
    return np.asarray(values, dtype)


def whole(rng, choose, shape, dtype):
    """Elements of an integer type: small numbers, numbers with ties, or numbers of the whole range."""
    info = np.iinfo(dtype)
    low, high = choose.choice([(-3, 4), (-100, 100), (-3, 4), (info.min, info.max)])
    low, high = max(low, info.min), min(high, info.max)
    return rng.integers(low, high, shape, dtype=dtype, endpoint=True)


def elements(rng, choose, shape, dtype):
    """Elements of any type that a file can have."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < choose.choice([0.5, 0.1, 0, 1])
    if dtype.kind == "f":
        return floats(rng, choose, shape, dtype)
    return whole(rng, choose, shape, dtype)
