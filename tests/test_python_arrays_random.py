"""Random slices, operations and reductions of arrays, compared with NumPy."""

import random
import warnings

import netCDF4
import numpy as np
import pytest
from python_arrays import gm

SHAPE = (6, 5, 7)
TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4")
# Exponentials are left out, because they may differ by one ulp.
UNARY = (np.negative, np.abs, np.isnan, np.isfinite, np.sqrt, np.floor, np.ceil, np.rint, np.square, np.logical_not)
UNARY += (np.isinf, np.conj, np.sign)
BINARY = (np.add, np.subtract, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.less, np.greater_equal)
BINARY += (np.equal, np.not_equal, np.maximum, np.minimum, np.logical_and, np.logical_or)
SCALARS = (0, 1, 2, 3, -1, 7, 0.5, -2.5, np.float32(0.1), np.float64(3.3), np.int16(4), True, np.int64(9))
KEYS = (np.s_[1:5], np.s_[..., ::2], np.s_[[0, 2, 3]], np.s_[:, None], np.s_[..., [0, 3, 1]], np.s_[-1:])
REDUCTIONS = "sum mean std var min max any all argmin argmax count_nonzero".split()
REDUCTIONS += "nansum nanmean nanstd nanvar nanmin nanmax".split()
WIDE = {"sum", "mean", "std", "var", "nansum", "nanmean", "nanstd", "nanvar"}
TREES = 250


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Arrays of every type, in a file and in memory."""
    path = tmp_path_factory.mktemp("random") / "all.nc"
    rng = np.random.default_rng(4)
    data = {}
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip("xyz", SHAPE):
            file.createDimension(name, length)
        for code in TYPES:
            variable = file.createVariable(code, code, tuple("xyz"), chunksizes=(2, 3, 4), zlib=True)
            if code[0] == "f":
                values = rng.normal(0, 10, SHAPE).astype(code)
                values[rng.random(SHAPE) < 0.2] = np.nan
                values[:, 2, 3] = np.nan
            else:
                values = rng.integers(0 if code[0] == "u" else -50, 50, SHAPE).astype(code)
            variable[:] = data[code] = values
    return gm.open_arrays(path, decoded=False), data


def step(choose, rng, *pair):
    """Applies one operation to each of two arrays."""
    kind = choose.random()
    if kind < 0.3:
        function = choose.choice(UNARY)
        return [function(one) for one in pair]
    if kind < 0.65:
        function, scalar, turned = choose.choice(BINARY), choose.choice(SCALARS), choose.random() < 0.3
        return [function(scalar, one) if turned else function(one, scalar) for one in pair]
    if kind < 0.75:
        scalar, bound = choose.choice(SCALARS), choose.choice([0, 1, 5])
        return [np.where(one > bound, one, scalar) for one in pair]
    if kind < 0.85:
        mask = rng.random(pair[0].shape[-1]) < 0.5
        return [np.where(mask, one, np.nan) for one in pair]
    if kind < 0.9:
        code = choose.choice(["f4", "f8", "bool"])
        return [one.astype(code) for one in pair]
    key = choose.choice(KEYS)
    return [one[key] for one in pair]


def tree(choose, rng, array, values):
    for _ in range(choose.randrange(5)):
        try:
            values_next, array_next = step(choose, rng, values, array)
        except (TypeError, ValueError, OverflowError, IndexError):
            # NumPy refuses this step too.
            continue
        if values_next.dtype == np.float16 or values_next.ndim > 4:
            continue
        array, values = array_next, values_next
        assert (array.shape, array.dtype) == (values.shape, values.dtype)
    if choose.random() < 0.2:
        order = list(range(values.ndim))
        choose.shuffle(order)
        array, values = array.transpose(order), values.transpose(order)
    return array, values


def reduced(name, values, axis):
    """The result of NumPy, computed in f64 where NumPy would add many f32."""
    function = getattr(np, name)
    if values.dtype == np.float32 and name in WIDE:
        return np.asarray(function(values.astype("f8"), axis=axis)).astype("f4")
    return np.asarray(function(values, axis=axis))


@pytest.mark.parametrize("seed", range(4))
def test_random_trees_are_those_of_numpy(stored, seed):
    arrays, data = stored
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    compared = pushed = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(TREES):
            code, name = choose.choice(TYPES), choose.choice(REDUCTIONS)
            array, values = tree(choose, rng, arrays[code], data[code])
            axis = choose.choice([None, *range(values.ndim)])
            try:
                expected = reduced(name, values, axis)
            except (TypeError, ValueError):
                continue
            with gm.trace() as trace:
                got = np.asarray(getattr(np, name)(array, axis=axis))
            compared += 1
            pushed += not trace.fallbacks
            said = f"{name} over {axis} of {code}: {gm.explain(array)}"
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype), said
            if got.dtype.kind != "f":
                np.testing.assert_array_equal(got, expected, said)
                continue
            near = 1e-5 if got.dtype == np.float32 else 1e-11
            largest = np.abs(np.where(np.isfinite(values), values, 0).astype("f8")).max(initial=1)
            np.testing.assert_allclose(got, expected, rtol=near, atol=near * largest, err_msg=said)
    assert compared > TREES / 2 and pushed > compared / 2
