"""Medians and quantiles of stored arrays: exact, and computed where the data is if that costs less than reading."""

import dask
import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, same

SHAPE = (48, 7, 9)
DIMS = ("time", "lat", "lon")
LARGE = (2000, 45, 45)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("quantiles") / "months.nc"
    rng = np.random.default_rng(21)
    f4 = rng.normal(280, 9, SHAPE).astype("f4")
    f4[rng.random(SHAPE) < 0.1] = np.nan
    f4[:, 2, 3] = np.nan
    inf = rng.normal(0, 1, SHAPE)
    inf[5, 2, 1], inf[:25, 4, 4], inf[::2, 5, 5] = np.inf, -np.inf, 0.0
    packed = rng.integers(-1, 3000, SHAPE)
    variables = {
        "f4": f4,
        "f8": rng.normal(0, 1e9, SHAPE),
        "inf": inf,
        "i2": rng.integers(-3000, 3000, SHAPE).astype("i2"),
        "u8": rng.integers(0, 2**50, SHAPE).astype("u8"),
        "packed": np.where(packed < 0, np.nan, packed * 0.01 + 273),
    }
    months = ("time", np.arange(SHAPE[0]) * 30.5, {"units": "days since 2001-01-01"})
    dataset = xr.Dataset({name: (DIMS, values) for name, values in variables.items()}, {"time": months, "lat": np.arange(7.0) - 3})
    encoding = {name: {"chunksizes": (20, 4, 9)} for name in variables}
    encoding["packed"] |= {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.0, "_FillValue": np.int16(-1)}
    dataset.to_netcdf(path, encoding=encoding)
    return path


@pytest.fixture(scope="module")
def theirs(path):
    with xr.open_dataset(path, engine="netcdf4") as dataset:
        return dataset.load()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A variable on storage nodes. It is large compared with the messages for a quantile of all elements, but not with those for a
    map."""
    local = tmp_path_factory.mktemp("quantiles") / "large.npy"
    rng = np.random.default_rng(22)
    np.save(local, rng.normal(0, 9, LARGE).astype("f4"))
    with gm.up(nodes=2, lanes=1) as nodes:
        gm.put(local, nodes.path("large.npy"))
        yield gm.open_arrays(nodes.path("large.npy"))["data"], np.load(local)


@pytest.fixture
def there():
    with gm.set_options(place="storage", fallback="error"):
        yield


QUESTIONS = [
    "x.median()",
    'x.median("time")',
    'x.median(["lat", "lon"])',
    'x.median("lat", skipna=False)',
    "x.quantile(0.3)",
    "x.quantile(0)",
    'x.quantile([0.0, 0.25, 0.9, 1.0], "time")',
    'x.quantile([0.5], ["time", "lon"])',
    'x.quantile(0.77, "time", skipna=False)',
    'x.isel(time=slice(3, 40, 2)).median("time")',
    'x.isel(lat=[1, 4, 5]).median("time")',
    '(x - 5).median("time")',
    'x.where(x > 3).quantile(0.1, "lat")',
    'x.where(ds.lat > 0).median(["lat", "lon"])',
    "x.coarsen(time=12).median()",
    'x.transpose("lon", "time", "lat").quantile(0.2, "lat")',
    'x.groupby("time.month").median()',
    'x.groupby("time.year").quantile([0.1, 0.9])',
]


@pytest.mark.parametrize("name", ["f4", "f8", "inf", "i2", "u8", "packed"])
@pytest.mark.parametrize("text", QUESTIONS)
def test_they_are_those_of_xarray(path, theirs, there, name, text):
    ours = gm.open_dataset(path)
    with gm.trace() as trace:
        got = eval(text, {"x": ours[name], "ds": ours})
    assert trace.requests == 1 and trace.reads == 0
    expected = eval(text, {"x": theirs[name], "ds": theirs})
    if name == "inf" and ("quantile" in text or "group" in text):
        # NumPy and flox give NaN between two infinities of one sign.
        got = got.where(~(np.isinf(got) & expected.isnull()))
    # xarray rounds differences of f32 to f32.
    np.testing.assert_allclose(got.values, expected.values, rtol=1e-6 if theirs[name].dtype == "f4" else 1e-13)
    assert got.dtype == expected.dtype and got.dims == expected.dims


@pytest.mark.parametrize("function", ["median", "nanmedian", "quantile", "nanquantile", "percentile", "nanpercentile"])
@pytest.mark.parametrize("axis, keepdims", [(None, False), (None, True), (-1, False), ((0, 2), True), ([1], False)])
@pytest.mark.parametrize("shares", [0.25, [0.0, 0.5], 1])
def test_they_are_those_of_numpy(path, theirs, there, function, axis, keepdims, shares):
    call = getattr(np, function)
    given = () if "median" in function else (np.multiply(shares, 100 if "percentile" in function else 1),)
    for name in ("f8", "f4"):
        array = gm.open_arrays(path)[name]
        with gm.trace() as trace:
            got = call(array, *given, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)
        assert trace.requests <= 1 and trace.reads == 0
        expected = call(theirs[name].values, *given, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)
        assert np.shape(got) == np.shape(expected)
        if not np.all(np.isnan(expected)):
            # If all elements are NaN, the type of NumPy's result is that of the elements.
            assert type(got) is type(expected) and np.asarray(got).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6 if name == "f4" else 1e-13)


@pytest.mark.parametrize("values", [[np.inf], [1, 2, np.inf], [-np.inf, 1, 2], [-np.inf, np.inf], [1, np.inf, np.nan], [np.inf] * 3])
@pytest.mark.parametrize("text", ["x.quantile([0, 0.25, 0.5, 0.75, 1])", "x.quantile([0.25, 0.5], skipna=False)"])
def test_beside_infinities_they_are_the_same_everywhere(tmp_path, values, text):
    np.save(tmp_path / "some.npy", np.array(values, "f8"))
    x = gm.open_dataset(tmp_path / "some.npy")["data"]
    found = []
    for place in ("storage", "client"):
        with gm.set_options(place=place):
            found.append(eval(text).values)
    np.testing.assert_array_equal(*found)


def test_medians_have_the_bits_of_numpy(tmp_path, there):
    """The mean of the two middle numbers is rounded once."""
    rng = np.random.default_rng(23)
    pairs = np.concatenate([rng.normal(0, 1, (5000, 2)), rng.normal(0, 1, (5000, 2)) * 10.0 ** rng.integers(-300, 300, (5000, 2))])
    np.save(tmp_path / "pairs.npy", pairs)
    array = gm.open_arrays(tmp_path / "pairs.npy")["data"]
    np.testing.assert_array_equal(np.median(array, axis=1), np.median(pairs, axis=1))
    assert np.median(array) == np.median(pairs)
    np.save(tmp_path / "large.npy", np.array([1.7e308, 1.6e308]))
    assert np.median(gm.open_arrays(tmp_path / "large.npy")["data"]) == 1.7e308 / 2 + 1.6e308 / 2


def test_what_there_is_no_kernel_for_is_read(path, theirs):
    array, values = gm.open_arrays(path)["f8"], theirs.f8.values.copy()
    weights = np.ones(SHAPE[0])
    for ask in [
        lambda a: np.quantile(a, 0.3, axis=0, method="nearest"),
        lambda a: np.quantile(a, 0.3, axis=0, method="inverted_cdf", weights=weights),
        lambda a: np.quantile(a, np.linspace(0, 1, 17)),
        lambda a: np.quantile(a, [[0.1, 0.2], [0.3, 1.0]]),
        lambda a: np.median(a.copy(), overwrite_input=True),
        lambda a: np.median(a, axis=0, out=np.empty(SHAPE[1:])),
    ]:
        with gm.set_options(place="storage"), gm.trace() as trace:
            np.testing.assert_allclose(ask(array), ask(values), rtol=1e-13)
        assert trace.fallbacks or trace.requests == 1
    with pytest.raises(ValueError, match="range"):
        np.quantile(array, 1.5)
    with pytest.raises(np.exceptions.AxisError):
        np.median(array, axis=3)
    np.testing.assert_array_equal(array, values)


def test_cells_of_nothing_warn(path, there):
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        assert np.isnan(np.nanmedian(gm.open_arrays(path)["f4"], axis=0)[2, 3])


def test_they_run_where_that_is_better_than_reading(path, stored):
    array, values = stored
    assert values.nbytes < 17_000_000
    with gm.set_options(fallback="error", place="auto"), gm.trace() as trace:
        assert np.median(array) == np.median(values)
    assert trace.requests == 1 and trace.reads == 0
    with gm.set_options(fallback="error", place="storage"), gm.trace() as trace:
        found = np.quantile(array, [0.1, 0.9])
    np.testing.assert_allclose(found, np.quantile(values, [0.1, 0.9]), rtol=1e-6)
    assert trace.reads == 0 and trace.bytes_in <= values.nbytes / 100
    # The messages for a map are as large as the data, and a local file is read in less time.
    for call in [lambda: np.median(array, axis=0), lambda: np.median(gm.open_arrays(path)["f8"])]:
        with gm.set_options(fallback="error", place="auto"), pytest.raises(gm.PushdownError, match="cost|here"):
            call()
    with gm.set_options(fallback="error", place="client"), pytest.raises(gm.PushdownError, match="pass"):
        np.median(array)


@pytest.mark.parametrize("chunks", [{"time": 20}, {"lat": 4, "lon": 9}])
def test_medians_of_blocks_are_one_request(path, theirs, there, chunks):
    ours = gm.open_dataset(path, chunks=chunks)
    for text in ['x.median("time")', 'x.median("lat", keepdims=True)', 'x.chunk(time=7).median(["lat", "lon"])']:
        lazy = eval(text, {"x": ours.f4})
        with gm.trace() as trace:
            got = lazy.compute()
        assert trace.requests == 1 and trace.reads == 0
        same(got, eval(text, {"x": theirs.f4}))


@pytest.mark.parametrize("chunks", [None, {"time": 20}, {"time": -1}])
@pytest.mark.parametrize(
    "text",
    [
        'x.resample(time="YS").median()',
        'x.groupby("time.year").quantile([0.1, 0.9])',
        'x.chunk(time=-1).groupby("time.month").median()',
        'x.chunk(time=-1).quantile(0.3, "time")',
    ],
)
def test_what_flox_and_dask_make_of_blocks(path, theirs, chunks, text):
    """flox and dask write into their inputs, use their real parts and sort them."""
    if chunks is None:
        text = text.replace(".chunk(time=-1)", "")
    ours = gm.open_dataset(path, chunks=chunks)
    for name in ("f4", "f8", "i2"):
        with dask.config.set(scheduler="synchronous"):
            got = eval(text, {"x": ours[name]}).compute()
        expected = eval(text.replace(".chunk(time=-1)", ""), {"x": theirs[name]})
        assert got.dims == expected.dims
        np.testing.assert_allclose(got.values, expected.values, rtol=1e-6)
