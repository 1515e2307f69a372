"""Edge cases of NumPy's rules: infinities beside missing numbers, named types, integers beside lists, buffers that change, and
results that go into existing arrays."""

import netCDF4
import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, numbers

SHAPE = (11, 13, 5)
DIMS = ("time", "lat", "lon")
EVERY = slice(None)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "edges.nc"
    rng = np.random.default_rng(11)
    f8 = rng.normal(280, 5, SHAPE)
    f8[rng.random(SHAPE) < 0.1] = np.nan
    inf = f8.copy()
    inf[3, 2, 1], inf[:, 4, 4], inf[2, 5, 0] = np.inf, -np.inf, np.nan
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip(DIMS, SHAPE):
            file.createDimension(name, length)
            file.createVariable(name, "f8", (name,))[:] = np.arange(length)
        for name, values in {
            "f8": f8,
            "inf": inf,
            "i2": rng.integers(-500, 900, SHAPE).astype("i2"),
            "i4": rng.integers(2**29, 2**30, SHAPE).astype("i4"),
            "i8": rng.integers(2**52, 2**53, SHAPE),
        }.items():
            file.createVariable(name, values.dtype, DIMS, chunksizes=(4, 5, 5))[:] = values
    return path


@pytest.fixture(scope="module")
def theirs(path):
    with xr.open_dataset(path, engine="netcdf4") as dataset:
        return dataset.load()


@pytest.fixture(scope="module")
def ours(path):
    return gm.open_dataset(path)


def both(question, ours, theirs):
    """Compares the array of Gristmill with that of NumPy."""
    got, expected = np.asarray(question(ours)), np.asarray(question(theirs))
    assert got.dtype == expected.dtype and got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["f8", "inf"])
@pytest.mark.parametrize("skipna", [None, False])
@pytest.mark.parametrize("reduce", ["sum", "mean", "std"])
def test_squares_of_distances_from_a_map_with_holes(ours, theirs, name, skipna, reduce):
    climate = theirs.f8.mean("time")
    climate[3, 3] = np.nan
    both(lambda ds: getattr((ds[name] - climate) ** 2, reduce)("time", skipna=skipna), ours, theirs)
    both(lambda ds: getattr((ds[name] - np.float64(1.5)) ** 2, reduce)(skipna=skipna), ours, theirs)


def test_squares_of_distances_from_a_map_with_holes_are_asked_for(ours, theirs):
    climate = theirs.f8.mean("time")
    climate[3, 3] = np.nan
    with gm.set_options(fallback="error"):
        got = ((ours.f8 - climate) ** 2).mean("time")
    assert np.isnan(got[3, 3]) and np.isfinite(got).sum() == got.size - 1


@pytest.mark.parametrize("other", ["inf", "i2"])
def test_covariances_with_infinities_and_integers(ours, theirs, other):
    both(lambda ds: xr.cov(ds.f8, ds[other], "time"), ours, theirs)


@pytest.mark.parametrize(
    "key",
    [
        (0, EVERY, [1, 2]), (0, None, [1, 2]), (0, ..., [0, 1]), (None, 0, EVERY, [1]), (0, [1, 2]), ([1, 2], 0),
        ([1, 2], EVERY, 3), (EVERY, 0, [1, 2]), (slice(1, 3), [2, 1, 0], 2), ([True] * 3 + [False] * 8, EVERY, 0),
    ],
)  # fmt: skip
def test_integers_beside_lists(path, theirs, key):
    array, values = gm.open_arrays(path)["f8"], theirs.f8.values
    np.testing.assert_array_equal(np.asarray(array[key]), values[key])
    numbers(np.nanmean(array[key], axis=0), np.nanmean(values[key], axis=0))


@pytest.mark.parametrize("dtype", ["i2", "i4", "i8", "u1", "u8", "f4", "f8"])
@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("reduce", [np.sum, np.mean, np.nansum])
def test_types_that_are_named(path, theirs, dtype, axis, reduce):
    array, values = gm.open_arrays(path)["i2"], theirs.i2.values
    both(lambda one: reduce(one, axis=axis, dtype=dtype), array, values)
    both(lambda one: reduce(one > 0, axis=axis, dtype=dtype), array, values)


@pytest.mark.parametrize("name", ["i2", "i4", "i8"])
def test_whole_numbers_weighed_by_whole_numbers(ours, theirs, name):
    weights = xr.DataArray(np.arange(1, 12), dims="time")
    for of in (lambda ds: ds[name].weighted(weights).sum("time"), lambda ds: xr.dot(ds[name], weights, dim="time")):
        np.testing.assert_array_equal(of(ours).values, of(theirs).values)
        assert of(ours).dtype == of(theirs).dtype


def test_places_in_cells_of_which_all_is_masked(ours):
    mask = xr.DataArray(np.arange(65).reshape(13, 5) % 7 > 0, dims=("lat", "lon"))
    with pytest.raises(ValueError, match="All-NaN slice"):
        ours.f8.where(mask).argmax("time")


def test_buffers_may_be_used_again(path, theirs):
    array, buffer = gm.open_arrays(path)["f8"], np.zeros(5)
    mask, places = np.ones(5, bool), np.array([0, 1])
    made = [array - buffer, np.where(mask, array, np.nan), array[0, :, places]]
    expected = [np.asarray(one) for one in made]
    buffer[:], mask[:], places[:] = 1e6, False, 3
    for one, values in zip(made, expected):
        np.testing.assert_array_equal(np.asarray(one), values)
    for value in range(3):
        buffer[:] = value
        numbers(np.nanmean(array - buffer, axis=0), np.nanmean(theirs.f8.values - buffer, axis=0))


def test_what_goes_into_an_array_keeps_its_type(path):
    dataset = gm.open_dataset(path)
    with pytest.raises(TypeError, match="float64 does not become int16"):
        dataset["i2"] -= 0.5
    dataset["i2"] -= 1
    assert dataset.i2.dtype == np.int16


def test_what_is_assigned_is_there_and_nowhere_else(path, theirs):
    dataset, plain = gm.open_dataset(path), theirs.copy(deep=True)
    before = dataset.f8 * 2
    for ds in (dataset, plain):
        ds.f8[2:5, 0] = 7.0
        ds.f8.loc[{"lon": 3.0}] = np.nan
    numbers(dataset.f8.mean("time").values, plain.f8.mean("time").values)
    numbers(before.values, theirs.f8.values * 2)


def test_what_is_loaded_is_here(path, theirs):
    loaded = gm.open_dataset(path).gristmill.load()
    assert all(isinstance(one._data, np.ndarray) for name, one in loaded.variables.items() if name not in loaded.xindexes)
    xr.testing.assert_identical(loaded, theirs)
    assert type(gm.open_dataset(path).f8.gristmill.load().data) is np.ndarray


@pytest.mark.parametrize("reduce", [np.std, np.var, np.nanstd])
def test_spreads_of_large_integers(tmp_path, reduce):
    values = np.random.default_rng(5).integers(2**63, 2**64 - 1, (100, 4), np.uint64)
    np.save(tmp_path / "large.npy", values)
    array = gm.open_arrays(tmp_path / "large.npy")["data"]
    for axis in (None, 0):
        np.testing.assert_allclose(reduce(array, axis=axis), reduce(values, axis=axis), rtol=1e-12)


def test_long_chains_of_operations(path, theirs):
    array, values, steps = gm.open_arrays(path)["f8"], theirs.f8.values, 1500
    for _ in range(steps):
        array = array + 1
    with gm.trace() as trace:
        np.testing.assert_allclose(np.nanmean(array), np.nanmean(values) + steps, rtol=1e-12)
    assert trace.reads == 0


def test_steps_on_the_way_are_not_kept(tmp_path):
    import tracemalloc

    size = 4 << 20
    np.save(tmp_path / "line.npy", np.ones(size // 8))
    made = gm.open_arrays(tmp_path / "line.npy")["data"]
    for _ in range(50):
        made = np.sin(made)
    twice = made * 2 + made
    tracemalloc.start()
    try:
        got = np.asarray(twice)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    expected = np.ones(1)
    for _ in range(50):
        expected = np.sin(expected)
    assert (got == expected * 3).all() and most < 10 * size


def test_complex_factors(path, theirs):
    array = gm.open_arrays(path)["f8"].astype("f4") * 1j
    assert array.dtype == np.complex64
    np.testing.assert_array_equal(np.asarray(array), theirs.f8.values.astype("f4") * 1j)


@pytest.mark.parametrize("reduce", [np.sum, np.nansum, np.any])
def test_results_of_nothing_go_where_they_should(path, reduce):
    array = gm.open_arrays(path)["f8"]
    out = np.full(SHAPE[1:], 9.0)
    assert reduce(array[:0], axis=0, out=out) is out and not out.any()


@pytest.mark.parametrize(
    "of",
    [
        lambda ds, theirs: ds.f8.where(theirs.time % 3 > 0),
        lambda ds, theirs: ds.f8 - theirs.f8[:, 0, 0].fillna(0),
        lambda ds, theirs: ds.f8.where(theirs.time % 3 > 0).chunk(time=-1).median("time"),
        lambda ds, theirs: ds.f8.groupby(theirs.time // 4).map(lambda one: one - one.mean("time")),
        lambda ds, theirs: (ds.f8 * theirs.lat).chunk(time=2),
    ],
)
@pytest.mark.parametrize("chunks", [{"time": 5}, {"time": 1}, {"time": 10, "lat": 4}])
def test_blocks_of_length_one_beside_longer_ones(path, theirs, of, chunks):
    got, expected = of(gm.open_dataset(path, chunks=chunks), theirs), of(theirs, theirs)
    np.testing.assert_allclose(got.values, expected.transpose(*got.dims).values, rtol=1e-12)


COMPLEX = [
    lambda z: z.real,
    lambda z: z.imag,
    lambda z: z.conj(),
    lambda z: z.conjugate(),
    np.real,
    np.imag,
    np.conj,
    np.angle,
    np.abs,
    np.iscomplexobj,
    np.isrealobj,
    lambda z: z.sum(0),
]


@pytest.mark.parametrize("ask", COMPLEX)
def test_parts_of_complex_numbers(ours, theirs, ask):
    for of in (lambda ds: ds.f8.data * 1j + 2, lambda ds: ds.f8.data):
        both(lambda ds: ask(of(ds)), ours, theirs)


def test_parts_are_set_alone(ours, theirs):
    got, expected = ours.f8.data * 1j, theirs.f8.data * 1j
    before = got + 0
    for z in (got, expected):
        z.real = np.arange(5.0)
    np.testing.assert_array_equal(got, expected)
    got.imag = expected.imag = 7.0
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(before, theirs.f8.data * 1j)
    with pytest.raises(TypeError, match="imaginary"):
        ours.f8.data[...].imag = 1.0


METHODS = [
    lambda a: a.cumsum(1),
    lambda a: a.cumprod(axis=0),
    lambda a: a.prod(),
    lambda a: a.prod(2, keepdims=True),
    lambda a: a.argsort(0),
    lambda a: a.ravel().argsort(kind="stable"),
    lambda a: a.repeat(2, 0),
    lambda a: a.diagonal(),
    lambda a: a.trace(1),
    lambda a: a.dot(np.ones(5)),
    lambda a: a.nonzero()[1],
    lambda a: a.compress([True, False, True], axis=0),
    lambda a: a[0, 0].searchsorted([3.0]),
    lambda a: np.frombuffer(a.tobytes()),
    lambda a: np.frombuffer(a.tobytes("F")),
    lambda a: a.argpartition(3, axis=1).shape,
]


@pytest.mark.parametrize("ask", METHODS)
def test_methods_that_read(ours, theirs, ask):
    both(ask, ours.f8.fillna(3).data, theirs.f8.fillna(3).data)


WRITES = [
    lambda a: a.sort(axis=1),
    lambda a: a.sort(),
    lambda a: a.fill(4),
    lambda a: a.put([1, 7], [3, 4]),
    lambda a: a.partition(3, axis=-1) or a.sort(),
]


@pytest.mark.parametrize("write", WRITES)
def test_methods_that_write(ours, theirs, write):
    got, expected = ours.f8.data[:], theirs.f8.values.copy()
    made = got * 2
    assert write(got) is None and write(expected) is None
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(made, theirs.f8.values * 2)
    np.testing.assert_array_equal(ours.f8, theirs.f8)


def test_text_of_elements(ours, theirs):
    got, expected = ours.i2.astype(str), theirs.i2.astype(str)
    assert got.dtype == expected.dtype and (got == expected).all()
    a, b = ours.f8.data, theirs.f8.values
    assert f"{a[0, 0, 0]:.2f}" == f"{b[0, 0, 0]:.2f}" and f"{a}" == str(a)
    with pytest.raises(TypeError, match="715 elements"):
        f"{a:.2f}"


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.transpose(3, 0, 1),
        lambda a: a.transpose(0, 1, -4),
        lambda a: a.transpose(0, 1, 1),
        lambda a: a.swapaxes(0, 3),
        lambda a: a.swapaxes(-4, 0),
        lambda a: a.take([0], axis=3),
        lambda a: np.concatenate([a, a], axis=3),
        lambda a: np.concatenate([a, a], axis=-4),
        lambda a: np.moveaxis(a, 3, 0),
        lambda a: np.moveaxis(a, 0, -4),
        lambda a: np.moveaxis(a, (0, 1), (1,)),
        lambda a: np.moveaxis(a, (0, 0), (1, 2)),
    ],
)
def test_an_axis_that_does_not_exist_is_refused_as_by_numpy(path, change):
    with pytest.raises(ValueError) as theirs:
        change(np.empty(SHAPE))
    with pytest.raises(theirs.type):
        change(gm.open_arrays(path)["f8"])


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.transpose(-1, 0, 1),
        lambda a: a.swapaxes(-1, 0),
        lambda a: a.take([2, 0], axis=-2),
        lambda a: np.concatenate([a, a], axis=-3),
        lambda a: np.moveaxis(a, -1, 0),
        lambda a: np.moveaxis(a, (0, -1), (1, 0)),
    ],
)
def test_axes_are_counted_from_the_end_too(path, change):
    array = gm.open_arrays(path)["f8"]
    np.testing.assert_array_equal(np.asarray(change(array)), change(np.asarray(array)))
