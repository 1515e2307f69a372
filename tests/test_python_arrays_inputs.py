"""Expressions over several variables, and over arrays that are sent to the data. The nodes reduce them, and the results are
xarray's."""

import pickle
import warnings

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, same

SHAPE = (30, 12, 16)
DIMS = ("time", "lat", "lon")

#: The chunks of each variable. Only ``a`` and ``b`` have the same chunks, and ``whole`` has none.
CHUNKS = {
    "a": (10, 5, 8),
    "b": (10, 5, 8),
    "flat": (1, 12, 16),
    "deep": (30, 3, 3),
    "packed": (7, 12, 5),
    "i4": (16, 4, 4),
    "whole": None,
}

# Each with its number of requests.
PUSHED = {
    "(ds.a * ds.b).mean()": 1,
    '(ds.a * ds.b).sum("time")': 1,
    '(ds.a * ds.b).std(["lat", "lon"])': 1,
    "(ds.flat * ds.deep).mean()": 1,
    '(ds.flat * ds.packed).mean("time")': 1,
    '(ds.deep - ds.packed).max("lat")': 1,
    '(ds.whole * ds.flat).sum(["lat", "lon"])': 1,
    '(ds.i4 + ds.whole).min("lon")': 1,
    '(ds.i4 * ds.i4 - ds.i4 * ds.whole).sum("time")': 1,
    'np.sqrt(ds.a**2 + ds.b**2 + ds.deep**2).mean("time")': 1,
    "(ds.a > ds.b).sum()": 1,
    '(ds.a.fillna(0) < ds.b.fillna(0)).any("time")': 1,
    'ds.flat.where(ds.deep > 280).mean("time")': 1,
    'xr.where(ds.a > ds.b, ds.flat, ds.deep).mean("time")': 1,
    '(ds.a.fillna(0) + ds.b.fillna(0)).argmax("time")': 1,
    'ds.a.fillna(ds.b).count("time")': 1,
    # xarray's own sums of products.
    'xr.dot(ds.a, ds.b, dim="time")': 1,
    'xr.dot(ds.flat, ds.deep, dim=["lat", "lon"])': 1,
    'xr.dot(ds.i4, ds.whole, dim="time")': 1,
    'xr.dot(ds.a, ds.b, ds.deep, dim="lat")': 1,
    'xr.cov(ds.a, ds.b, "time")': 1,
    'xr.corr(ds.a, ds.b, "time")': 1,
    'xr.corr(ds.flat, ds.deep, ["lat", "lon"])': 1,
    'ds.flat.weighted(ds.a.fillna(0)).mean("lat")': 3,
    # Parts of variables, and axes in another order.
    '(ds.a * ds.deep).isel(time=slice(3, 20, 4), lat=2).mean("time")': 1,
    "(ds.flat.sel(lat=slice(-40, 40)) * ds.deep.sel(lat=slice(-40, 40))).mean()": 1,
    '(ds.a.isel(lon=[1, 2, 7]) * ds.deep.isel(lon=[1, 2, 7])).mean("time")': 1,
    '(ds.flat.transpose("lon", "time", "lat") * ds.deep).mean("time")': 1,
    "(ds.a * ds.b).coarsen(lat=2, lon=4).mean()": 1,
    '(ds.a * ds.b).resample(time="QS").sum()': 1,
    # Arrays that are sent to the data: climates, masks, weights.
    '(ds.a - climate).max("time")': 1,
    "((ds.a - climate) ** 2).mean()": 1,
    '((ds.a - climate) ** 2).mean("time")': 1,
    '((ds.a - climate) * ds.b).mean("time")': 1,
    '(ds.flat.transpose("lon", "time", "lat") - climate).mean(["lat", "lon"])': 1,
    '(ds.a - climate).isel(lat=slice(2, 9, 3)).std("time")': 1,
    '(ds.a - climate).isel(lat=[0, 1, 5, 11]).mean("time")': 1,
    '(ds.a - climate.isel(lat=[5, 3])).mean("time")': 1,
    'ds.flat.where(land).mean(["lat", "lon"])': 1,
    "ds.flat.where(land & (ds.deep > 280)).count()": 1,
    'ds.flat.where(land).mean("time")': 1,
    'ds.packed.weighted(area).mean(["lat", "lon"])': 2,
    "ds.a.weighted(area).sum()": 1,
    '(ds.i4 * ds.lat).sum(["lat", "lon"])': 1,
    "(ds.flat * np.float32(2) * ds.lat.astype('f4') * ds.lon.astype('f4')).mean()": 1,
}

# These read a variable with fewer axes once, and send it.
SMALL = {
    'ds.a.where(ds.mask2d).mean("time")': 1,
    'ds.flat.where(ds.mask2d > 0).mean(["lat", "lon"])': 1,
    '(ds.flat * ds.profile).mean(["time", "lat"])': 1,
}


def fields():
    rng = np.random.default_rng(20261122)
    made = {}
    for name in ("a", "b", "flat", "deep", "whole"):
        values = rng.normal(*((285, 10) if name in ("flat", "deep") else (0, 3)), SHAPE)
        values[rng.random(SHAPE) < 0.08] = np.nan
        values[:, 2, 3] = np.nan
        made[name] = xr.Variable(DIMS, values.astype("f4" if name in ("flat", "whole") else "f8"))
    packed = rng.integers(-3000, 3000, SHAPE).astype("i2")
    packed[rng.random(SHAPE) < 0.1] = -9999
    attributes = {"scale_factor": 0.01, "_FillValue": np.int16(-9999)}
    made["packed"] = xr.Variable(DIMS, packed, attributes)
    made["i4"] = xr.Variable(DIMS, rng.integers(-1000, 1000, SHAPE).astype("i4"))
    made["mask2d"] = xr.Variable(DIMS[1:], rng.integers(0, 2, SHAPE[1:]).astype("i1"))
    made["profile"] = xr.Variable(("lat",), rng.normal(0, 1, SHAPE[1]).astype("f4"))
    time = xr.Variable("time", np.arange(SHAPE[0]) * 10.0, {"units": "days since 2001-01-01", "calendar": "standard"})
    coordinates = {"time": time, "lat": np.linspace(-82.5, 82.5, SHAPE[1]), "lon": np.arange(SHAPE[2]) * 22.5}
    return xr.Dataset(made, coordinates)


class Files:
    def __init__(self, folder):
        self.folder, self.cluster = folder, None
        raw = fields()
        encoding = {
            name: {"contiguous": True} if chunk is None else {"zlib": True, "chunksizes": chunk}
            for name, chunk in CHUNKS.items()
        }
        raw.to_netcdf(folder / "fields.nc", engine="netcdf4", encoding=encoding)
        chunks = {name: {"chunks": chunk or SHAPE} for name, chunk in CHUNKS.items()}
        raw.to_zarr(folder / "fields.zarr", encoding=chunks)
        raw.to_netcdf(folder / "classic.nc", engine="netcdf4", format="NETCDF3_64BIT", unlimited_dims=["time"])

    def __getitem__(self, place):
        if place.startswith("cluster"):
            if self.cluster is None:
                self.cluster = gm.up(nodes=3, lanes=1)
                gm.put(self.folder / "fields.nc", self.cluster.path("fields.nc"), stripe="16KiB")
                for path in sorted((self.folder / "fields.zarr").rglob("*")):
                    if path.is_file():
                        gm.put(path, self.cluster.path(path.relative_to(self.folder).as_posix()), stripe="4KiB")
            return self.cluster.path("fields.zarr" if place.endswith("zarr") else "fields.nc")
        return self.folder / place

    def close(self):
        if self.cluster is not None:
            self.cluster.stop()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    files = Files(tmp_path_factory.mktemp("inputs"))
    yield files
    files.close()


@pytest.fixture(scope="module")
def theirs(files):
    with xr.open_dataset(files["fields.nc"], engine="netcdf4") as dataset:
        return dataset.load()


@pytest.fixture(scope="module", params=["fields.nc", "fields.zarr", "classic.nc", "cluster", "cluster zarr"])
def ours(request, files):
    return gm.open_dataset(files[request.param])


def compute(text, ds):
    rng = np.random.default_rng(5)
    grid = {"dims": DIMS[1:], "coords": {"lat": ds.lat.values, "lon": ds.lon.values}}
    known = {
        "climate": xr.DataArray(rng.normal(1, 2, SHAPE[1:]), **grid),
        "land": xr.DataArray(rng.random(SHAPE[1:]) < 0.6, **grid),
        "area": xr.DataArray(rng.random(SHAPE[1:]).astype("f4"), **grid),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, {"ds": ds, "np": np, "xr": xr, **known})


def near(got, expected, text=""):
    """Like :func:`same`. If xarray adds in f32, the tolerance is that of f32, also for a result of f64."""
    single = any(name in text for name in ("flat", "whole", "area"))
    if single and expected.dtype == np.float64:
        assert (got.dtype, got.dims) == (expected.dtype, expected.dims)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        got, expected = got.astype("f4"), expected.astype("f4")
    same(got, expected)


@pytest.mark.parametrize("text", PUSHED)
def test_several_inputs_are_reduced_where_they_are(ours, theirs, text):
    gm._variables.variable.answers.clear()
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = compute(text, ours)
    near(got, compute(text, theirs), text)
    assert trace.fallbacks == [] and trace.reads == 0
    assert trace.requests == PUSHED[text]
    assert isinstance(got.data, np.ndarray)


@pytest.mark.parametrize("text", SMALL)
def test_variables_with_fewer_axes_are_sent(files, theirs, text):
    ours = gm.open_dataset(files["cluster"])
    gm._variables.variable.answers.clear()
    gm._variables.variable.elements.clear()
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = compute(text, ours)
    near(got, compute(text, theirs), text)
    assert trace.fallbacks == [] and trace.requests == SMALL[text] and trace.reads == 1


# Over blocks of dask, each with the maximum number of requests for a block.
BLOCKED = {
    "(ds.a * ds.b).mean()": 1,
    '(ds.flat * ds.deep).std("time")': 1,
    '(ds.a > ds.b).sum("time")': 1,
    'ds.flat.where(ds.deep > 280).mean("time")': 1,
    'xr.dot(ds.a, ds.b, dim="time")': 1,
    'xr.corr(ds.a, ds.b, "time")': 2,
    '((ds.a - climate) ** 2).mean("time")': 1,
    '((ds.a - climate) * ds.b).mean("time")': 1,
    'ds.flat.where(land).mean(["lat", "lon"])': 1,
    'ds.packed.weighted(area).mean(["lat", "lon"])': 2,
}


@pytest.mark.parametrize("text", BLOCKED)
@pytest.mark.parametrize("place", ["fields.nc", "cluster"])
def test_blocks_of_dask_are_a_request_each(files, theirs, place, text):
    pytest.importorskip("dask", reason="dask is not installed")
    ours = gm.open_dataset(files[place], chunks={"time": 10, "lat": 6, "lon": 16})
    gm._variables.variable.answers.clear()
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = compute(text, ours).compute(scheduler="threads")
    near(got, compute(text, theirs), text)
    assert trace.fallbacks == [] and trace.reads == 0
    assert trace.requests <= BLOCKED[text] * 6


FALLS_BACK = {
    # The two variables have different parts.
    '(ds.a.isel(time=slice(1, None)).drop_vars("time") * ds.b.isel(time=slice(0, -1)).drop_vars("time")).mean()': "parts",
    # The array that would be sent is not much smaller than the data.
    "(ds.a * full).mean()": "not much smaller",
}


@pytest.mark.parametrize("text", FALLS_BACK)
def test_what_cannot_be_sent_is_read(files, theirs, text):
    ours = gm.open_dataset(files["fields.nc"])
    full = xr.DataArray(np.ones(SHAPE), dims=DIMS)

    def asked(ds):
        return eval(text, {"ds": ds, "full": full})

    with gm.trace() as trace:
        got = asked(ours)
    near(got, asked(theirs))
    assert len(trace.fallbacks) == 1
    with gm.set_options(fallback="error"), pytest.raises(gm.PushdownError, match=FALLS_BACK[text]):
        asked(ours)


def test_arrays_are_sent_up_to_a_bound(files, theirs):
    ours = gm.open_dataset(files["fields.nc"])
    text = '(ds.a * climate).max("time")'
    bytes_of_climate = SHAPE[1] * SHAPE[2] * 8
    with gm.set_options(fallback="error", max_constant=bytes_of_climate):
        near(compute(text, ours), compute(text, theirs))
    with gm.set_options(fallback="error", max_constant=bytes_of_climate - 1):
        with pytest.raises(gm.PushdownError, match="max_constant"):
            compute(text, ours)


def test_files_of_their_own_are_read(files, theirs):
    one, other = gm.open_dataset(files["fields.nc"]), gm.open_dataset(files["fields.zarr"])
    with gm.trace() as trace:
        got = (one.a * other.b).mean("time")
    near(got, (theirs.a * theirs.b).mean("time"))
    assert trace.fallbacks == ["nanmean"]
    assert "several files" in gm.explain((one.a * other.b).variable._data)


def test_variables_that_were_pickled_one_by_one_are_of_one_file(files, theirs):
    ours = gm.open_arrays(files["fields.nc"])
    a, b = (pickle.loads(pickle.dumps(ours[name])) for name in "ab")
    with gm.set_options(fallback="error"):
        product = np.nanmean(a * b, axis=0)
    np.testing.assert_allclose(product, (theirs.a * theirs.b).mean("time"), rtol=1e-11)


def test_what_is_asked_is_told(files):
    ours = gm.open_arrays(files["fields.nc"])
    gm._variables.variable.elements.clear()
    with gm.trace() as trace:
        told = gm.explain((ours["a"] - ours["b"]) * np.arange(16.0))
        assert gm.explain(ours["a"] * ours["mask2d"]).endswith("c1 = 192 numbers that are sent")
    assert trace.requests == trace.reads == 0
    assert told.endswith("with x = a[0:30, 0:12, 0:16], y1 = b[0:30, 0:12, 0:16], c1 = 16 numbers that are sent")


# Distances from one number for each cell. These numbers are not sent.
CENTRED = {
    '(ds.a - climate).max("time")': 1,
    '(ds.flat - climate.astype("f4")).min("time")': 1,
    '(ds.a - climate).sum("time")': 1,
    '(ds.a - climate).std("time")': 1,
    '(ds.a - climate).mean("time", skipna=False)': 1,
    '((ds.a - climate) ** 2).mean("time")': 1,
    '((ds.a - climate) * (ds.deep - climate)).mean("time")': 3,
    '((ds.a - climate) * (ds.deep - climate)).sum("time", skipna=False)': 3,
    'xr.cov(ds.a, ds.b, "time")': 1,
    'xr.corr(ds.a, ds.b, "time")': 1,
    'xr.corr(ds.flat, ds.deep, "time")': 1,
    'xr.corr(ds.a, ds.a, "time")': 4,
    'xr.corr(ds.flat, ds.packed, "lat")': 1,
}


@pytest.mark.parametrize("text", CENTRED)
def test_what_is_the_same_in_a_cell_need_not_travel(files, theirs, text):
    ours = gm.open_dataset(files["cluster"])
    gm._variables.variable.answers.clear()
    with gm.set_options(fallback="error", max_constant=100), gm.trace() as trace:
        got = compute(text, ours)
    near(got, compute(text, theirs), text)
    assert trace.fallbacks == [] and trace.reads == 0 and trace.requests <= CENTRED[text]


def test_sums_that_would_cancel_are_pushed_too(files, theirs):
    ours = gm.open_dataset(files["fields.nc"])
    text = 'xr.corr(ds.a * 1e-7 + ds.lat, ds.b, "time")'
    with gm.set_options(fallback="error", max_constant=100):
        got = compute(text, ours)
    np.testing.assert_allclose(got, compute(text, theirs), rtol=1e-6)
