"""Which operations must run where the data is, for a variable that is large compared with its answers; which operations must read,
and then only once; and which cost no request."""

import pickle
import warnings

import netCDF4
import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, same

from gristmill._pushdown import batches
from gristmill._variables import variable

dask = pytest.importorskip("dask", reason="dask is not installed")

SHAPE = (3650, 16, 20)
DIMS = ("time", "lat", "lon")
CHUNKS = {"time": 1825, "lat": 8, "lon": 10}
BLOCKS = 8

#: The maximum share of the variable's bytes that may come to this process.
SHARE = 0.01

# Each with its number of requests.
PUSHED = {
    'ds.tos.mean("time")': 1,
    "ds.tos.sum()": 1,
    'ds.tos.max(["lat", "lon"])': 1,
    "ds.tos.std()": 1,
    'ds.tos.var("time", ddof=1)': 1,
    'ds.tos.count("time")': 1,
    'ds.tos.sum("time", min_count=3)': 1,
    'ds.a.argmax("time")': 1,
    'ds.a.idxmax("time")': 2,
    'ds.tos.isnull().sum("time")': 1,
    '(ds.tos > 300).any("time")': 1,
    'ds.tos.mean("time", skipna=False)': 1,
    'ds.i4.mean("time")': 1,
    'ds.packed.mean("time")': 1,
    'ds.tos.isel(time=slice(2, 10)).mean("time")': 1,
    "ds.tos.sel(lat=slice(-30, 30)).mean()": 1,
    'ds.tos.sel(lat=20, lon=100, method="nearest").mean("time")': 1,
    '(ds.tos - 273.15).mean("time")': 1,
    'ds.tos.where(ds.tos > 280).mean("time")': 1,
    'ds.tos.where(ds.lat > 0).mean(["lat", "lon"])': 1,
    'ds.tos.fillna(0).sum("time")': 1,
    'ds.tos.clip(270, 290).mean("time")': 1,
    'ds.tos.weighted(np.cos(np.deg2rad(ds.lat))).mean(["lat", "lon"])': 1,
    "ds.tos.coarsen(time=365, lat=4, lon=2).mean()": 1,
    'ds.tos.resample(time="YS").mean()': 1,
    'ds.tos.groupby("time.month").mean()': 1,
}

# These have an answer for each day, or one for each month and cell. They use larger maps or more years.
LARGER = {
    'ds.tos.max(["lat", "lon"])': "maps",
    'ds.tos.where(ds.lat > 0).mean(["lat", "lon"])': "maps",
    'ds.tos.weighted(np.cos(np.deg2rad(ds.lat))).mean(["lat", "lon"])': "maps",
    'ds.tos.groupby("time.month").mean()': "years",
}
LARGE = {"maps": ((365, 90, 180), (73, 90, 180)), "years": ((21_915, 6, 8), (7305, 6, 8))}

# The data of a year is less than a hundred times its answer.
MANY = {'ds.tos.resample(time="YS").mean()'}
NODES, CELL_BYTES = 2, 32


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("pushdown") / "days.nc"
    rng = np.random.default_rng(11)
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip(DIMS, SHAPE):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",))
        time[:] = np.arange(SHAPE[0])
        time.units = "days since 2001-01-01"
        file.createVariable("lat", "f8", ("lat",))[:] = np.linspace(-82.5, 82.5, SHAPE[1])
        file.createVariable("lon", "f8", ("lon",))[:] = np.arange(SHAPE[2]) * 18.0
        tos = rng.normal(285, 10, SHAPE).astype("f4")
        tos[rng.random(SHAPE) < 0.1] = np.nan
        tos[:, 3, 5] = np.nan
        chunks = tuple(CHUNKS.values())
        file.createVariable("tos", "f4", DIMS, chunksizes=chunks)[:] = tos
        file.createVariable("a", "f8", DIMS, chunksizes=chunks)[:] = rng.normal(0, 3, SHAPE)
        file.createVariable("i4", "i4", DIMS, chunksizes=chunks)[:] = rng.integers(-1000, 1000, SHAPE)
        packed = file.createVariable("packed", "i2", DIMS, chunksizes=chunks, fill_value=np.int16(-1))
        packed.scale_factor, packed.add_offset = 0.01, 273.0
        packed.set_auto_maskandscale(False)
        packed[:] = rng.integers(-1, 3000, SHAPE)
    return path


@pytest.fixture(scope="module")
def nodes():
    with gm.up(nodes=NODES, lanes=1) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def stored(path, nodes):
    """The same file on storage nodes."""
    gm.put(path, nodes.path("days.nc"))
    return nodes.path("days.nc")


@pytest.fixture(scope="module")
def large(tmp_path_factory, nodes):
    """Larger files on storage nodes, and the same data in xarray."""
    out, rng = {}, np.random.default_rng(12)
    for name, (shape, chunks) in LARGE.items():
        path = tmp_path_factory.mktemp("pushdown") / f"{name}.nc"
        tos = rng.normal(285, 10, shape).astype("f4")
        tos[rng.random(shape) < 0.1] = np.nan
        time = ("time", np.arange(shape[0]), {"units": "days since 1981-01-01"})
        made = xr.Dataset({"tos": (DIMS, tos)}, {"time": time, "lat": np.linspace(-82.5, 82.5, shape[1])})
        made.to_netcdf(path, encoding={"tos": {"chunksizes": chunks}})
        gm.put(path, nodes.path(path.name))
        out[name] = nodes.path(path.name), xr.open_dataset(path).load()
    return out


@pytest.fixture
def there():
    """Busy nodes let the client compute, but these tests are about nodes. So the place is fixed."""
    with gm.set_options(place="storage"):
        yield


@pytest.fixture(scope="module")
def theirs(path):
    with xr.open_dataset(path, engine="netcdf4") as dataset:
        return dataset.load()


@pytest.fixture(autouse=True)
def nothing_known():
    batches.forget()
    variable.answers.clear()
    variable.elements.clear()


def compute(text, ds, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, {"ds": ds, "np": np, "xr": xr, **more})


def bytes_of(text, ds):
    return ds[text[text.index("ds.") + 3 :].split(".")[0].split(" ")[0].rstrip(")")].nbytes


@pytest.mark.parametrize("text", PUSHED)
def test_what_must_be_pushed(stored, there, theirs, large, text):
    stored, theirs = large[LARGER[text]] if text in LARGER else (stored, theirs)
    ours = gm.open_dataset(stored)
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = compute(text, ours)
    same(got, compute(text, theirs))
    assert trace.reads == 0 and trace.requests == PUSHED[text]
    most = NODES * CELL_BYTES * got.size if text in MANY else SHARE * bytes_of(text, theirs)
    assert trace.bytes_in <= most


# For months in blocks of dask, flox picks elements by their labels, so it needs the elements.
@pytest.mark.parametrize("text", [text for text in PUSHED if "month" not in text])
def test_what_must_be_pushed_from_blocks(stored, there, theirs, large, text):
    stored, theirs = large[LARGER[text]] if text in LARGER else (stored, theirs)
    ours = gm.open_dataset(stored, chunks={})
    with gm.set_options(fallback="error"), gm.trace() as building:
        lazy = compute(text, ours)
    assert building.requests == building.reads == 0
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = lazy.compute()
    same(got, compute(text, theirs))
    # Each block needs one request for the index, besides the one for the extreme.
    most = 3 if "arg" in text or "idx" in text else 2 if "resample" in text else 1
    assert trace.reads == 0 and trace.requests <= BLOCKS * most
    most = NODES * 2 * CELL_BYTES * got.size if text in MANY else SHARE * bytes_of(text, theirs)
    assert trace.bytes_in <= most


FALLS_BACK = {
    'ds.tos.quantile(0.3, "time").values': "nanquantile",
    'ds.tos.median("time").values': "nanmedian",
    "ds.tos.rolling(lat=3).mean().values": None,
    'ds.a.cumsum("lat").values': "nancumsum",
    "ds.a.interp(lat=[0.0, 3.0]).values": None,
    'ds.a.rank("lat").values': None,
    "ds.tos[0].plot()": None,
    "(ds.tos.values, ds.tos.values)[1]": "asarray",
    "ds.a.reduce(lambda values, axis: np.ptp(values, axis), 'lat').values": "ptp",
    "ds.tos.equals(local.tos)": None,
    "ds.tos.equals(local.tos + 1)": None,
    'ds.tos.groupby("time.season").map(lambda group: group.median("time")).values': "nanmedian",
    "ds.to_netcdf(folder / 'copy.nc')": None,
}


@pytest.mark.parametrize("chunks", [None, {}], ids=["eager", "blocks"])
@pytest.mark.parametrize("text", FALLS_BACK)
def test_what_must_read_reads_each_byte_once(path, theirs, tmp_path, monkeypatch, text, chunks):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    pytest.importorskip("bottleneck", reason="bottleneck is not installed")
    about = gm.open_arrays(path)._about
    most = sum(one["stored_bytes"] for name, one in about.items() if f"ds.{name}" in text or "to_netcdf" in text)
    if chunks is not None:
        if "ptp" in text:
            pytest.skip("dask makes it of the ends, which are pushed")
        # With dask, quantiles and ranks need one block along the axis.
        text = text.replace(".quantile", ".chunk(time=-1).quantile").replace("tos.median", "tos.chunk(time=-1).median")
        text = text.replace("group.median", "group.chunk(time=-1).median")
        text = text.replace(".rank", ".chunk(lat=-1).rank")
    here = {"local": theirs, "folder": tmp_path}
    ours = gm.open_dataset(path, chunks=chunks)
    with gm.trace() as trace:
        got = compute(text, ours, **here)
    assert trace.fallbacks and trace.bytes_in <= most
    (tmp_path / "copy.nc").unlink(missing_ok=True)
    name = FALLS_BACK.get(text)
    refused = pytest.raises(gm.PushdownError, match=f"^{name or ''}.* cannot run where the data")
    # One thread only, because other threads would finish what they have begun.
    with gm.set_options(fallback="error"), dask.config.set(scheduler="synchronous"), refused:
        compute(text, gm.open_dataset(path, chunks=chunks), **here)
    if isinstance(got, np.ndarray):
        expected = compute(text, theirs, **here)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    elif isinstance(got, bool):
        assert got is (text == "ds.tos.equals(local.tos)")


def test_what_costs_no_request(stored):
    with gm.trace() as opening:
        eager, blocks = gm.open_dataset(stored), gm.open_dataset(stored, chunks={})
    # Only labels are read.
    assert opening.requests == 0 and opening.reads <= 6
    with gm.set_options(fallback="error"), gm.trace() as trace:
        for ds in (eager, blocks):
            assert repr(ds) and repr(ds.tos) and ds._repr_html_() and ds.tos._repr_html_() and ds.nbytes
            pickle.loads(pickle.dumps(ds))
            assert ds.tos.isel(time=3).shape == SHAPE[1:] and (ds.tos - 273.15).dtype == np.float32
        for text in PUSHED:
            if "sel(" not in text:
                compute(text, blocks)
    assert trace.requests == trace.reads == 0
