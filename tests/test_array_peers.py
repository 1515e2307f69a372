"""Mistakes of the closest system, and sums that are hard to compute. Each has its own test."""

import numpy as np
import pytest

from arrays import Reducer, Refused, exact, ulps


@pytest.fixture(scope="module")
def reducer(tmp_path_factory):
    reducer = Reducer(tmp_path_factory.mktemp("arrays"))
    yield reducer
    reducer.close()


def test_the_float32_mean_of_data_around_250_is_not_255(reducer):
    data = np.random.default_rng(1).normal(250.5, 1, (1 << 20, 2)).astype(np.float32)
    for axes in ([0], None):
        got = reducer.one(data, "mean", chunk=[1 << 16, 2], axes=axes)
        assert got.dtype == np.float32 and np.all(abs(got - 250.5) < 0.01)
        right = data.astype(float).mean(axis=None if axes is None else 0).astype(np.float32)
        np.testing.assert_array_equal(got, right)


def test_nan_in_min_and_max_is_an_answer(reducer):
    data = np.array([[np.nan, 1, 2], [np.nan, np.nan, 0]], np.float32)
    np.testing.assert_array_equal(reducer.one(data, "min", axes=[0]), np.float32([np.nan, 1, 0]))
    np.testing.assert_array_equal(reducer.one(data, "max", axes=[0], skipna=False), np.float32([np.nan, np.nan, 2]))
    assert reducer.one(data, "max") == 2


def test_sums_of_int32_do_not_wrap(reducer):
    data = np.full((3, 1000), 2**31 - 1, np.int32)
    got = reducer.one(data, "sum", chunk=[2, 300])
    assert got.dtype == np.int64 and got == 3000 * (2**31 - 1)
    np.testing.assert_array_equal(reducer.one(data, "sum", axes=[1]), np.full(3, 1000 * (2**31 - 1)))
    with pytest.raises(Refused, match="beyond 64 bits"):
        reducer.one(np.full(3, 2**63 - 1), "sum")
    assert reducer.one(np.full(3, 2**63 - 1), "mean") == float(2**63)


def test_a_fill_value_of_zero_is_one(reducer):
    data = np.array([0, 0, 4, 6], np.int16)
    assert reducer.one(data, "mean", missing=[0]) == 5
    assert reducer.one(data, "count", missing=[0]) == 2
    assert reducer.one(data.astype(np.float32), "min", missing=[0]) == 4


def test_a_valid_min_of_zero_is_one(reducer):
    data = np.array([-5, 0, 4], np.int32)
    got = reducer.one(data, "sum", valid=[0, None])
    assert got.dtype == np.float64 and got == 4
    assert reducer.one(data, "count", valid=[0, 0]) == 1


def test_an_integer_index_is_an_axis_less(reducer):
    data = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(reducer.one(data, "sum", selection="-1,:,2", axes=[]), data[-1, :, 2])
    assert reducer.one(data, "sum", selection="1,2,3") == 23


def test_many_small_chunks_give_what_one_gives(reducer):
    data = np.random.default_rng(2).normal(size=(64, 128)).astype(np.float32)
    small = reducer.one(data, "mean", chunk=[1, 4], axes=[0])
    np.testing.assert_array_equal(small, reducer.one(data, "mean", axes=[0]))


def test_variance_of_data_that_differs_little(reducer):
    rng = np.random.default_rng(3)
    for dtype in (np.float32, np.float64):
        data = rng.normal(250, 0.01, (500, 20)).astype(dtype)
        got = reducer.one(data, "var", chunk=[33, 7], axes=[0], ddof=1)
        right = np.array([exact("var", column, dtype, 1) for column in data.T], dtype)
        assert ulps(got, right) == 0
        whole = reducer.one(data, "std", chunk=[33, 7])
        assert whole == exact("std", data.ravel(), dtype)


def test_sums_that_cancel_and_sizes_that_are_extreme(reducer):
    column = np.array([1e16, 1.0, -1e16, 1e-3])
    grid = np.stack([column, column[::-1], np.full(4, 5e-324), np.full(4, 1.7e308)], axis=1)
    got = reducer.one(grid, "sum", chunk=[1, 4], axes=[0])
    np.testing.assert_array_equal(got, [1.001, 1.001, 2e-323, np.inf])
    np.testing.assert_array_equal(reducer.one(grid, "mean", axes=[0]), [0.25025, 0.25025, 5e-324, 1.7e308])


def test_quantiles_of_integers_do_not_wrap(reducer):
    # numpy.quantile 2.4 gives 123.3.
    assert reducer.one(np.array([-125, 120], np.int8), "quantile", q=[0.7])[0] == pytest.approx(46.5)


def test_what_would_not_fit_is_refused_before_it_is_read(reducer):
    with pytest.raises(Refused, match="reduce over more axes"):
        reducer.one(np.zeros((2, 2_000_000), np.float32), "mean", axes=[0])
