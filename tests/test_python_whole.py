"""Arrays of dask that know the whole variable. A reduction is one task and one request. All else works as with other arrays of
dask."""

import copy
import pickle

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, same
from test_python_batches import FEW, MANY, compute, nothing_known, path, theirs  # noqa: F401

da = pytest.importorskip("dask.array", reason="dask is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture
def ours(path):  # noqa: F811
    return gm.open_dataset(path, chunks=FEW)


PUSHED = [
    'ds.tos.mean("time")',
    "ds.tos.std()",
    'ds.wide.sum("lon")',
    'ds.tos.sum(["lat", "lon"], min_count=3)',
    'ds.tos.count("time")',
    "ds.i4.sum()",
    'ds.packed.var("lat", ddof=1)',
    "ds.tos.min(skipna=False)",
    "ds.i4.argmax()",
    'ds.i4.argmin("lat")',
    'ds.tos.mean("time", keepdims=True)',
    '(ds.tos * 2 - 273.15).max("time")',
    '(ds.tos > 280).sum("time")',
    '(ds.tos > 300).any(["lat", "lon"])',
    'ds.tos.where(ds.tos > 280).mean("time")',
    'ds.tos.fillna(0).min("time")',
    'ds.tos.astype("f8").mean("lat")',
    '(ds.tos * ds.i4).mean("time")',
    'np.sqrt(abs(ds.tos)).mean("time")',
    'ds.tos.isel(time=slice(7, 90, 3), lat=5).mean("time")',
    'ds.tos.isel(time=[3, 1, 40]).mean("time")',
    'ds.tos.chunk(time=50).mean("time")',
    'ds.tos.copy(deep=True).mean("time")',
]


@pytest.mark.parametrize("text", PUSHED)
def test_a_reduction_is_a_request_and_a_task(ours, theirs, text):  # noqa: F811
    lazy, plain = compute(text, ours), compute(text, theirs.chunk(FEW))
    assert lazy.chunks == plain.chunks and lazy.dtype == plain.dtype
    # One task sends the request, and a few tasks make each block of the result.
    assert len(dict(lazy.__dask_graph__())) <= 1 + 12 * lazy.data.npartitions
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = lazy.compute()
    assert trace.requests == 1 and trace.reads == 0
    same(got, compute(text, theirs))


def test_ten_thousand_blocks_are_one_request(path, theirs):  # noqa: F811
    dataset = gm.open_dataset(path, chunks=MANY)
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = [dataset.tos.mean().compute(), dataset.tos.std("time").compute()]
    assert trace.requests == 2
    same(got[0], theirs.tos.mean())
    same(got[1], theirs.tos.std("time"))


def test_groups_of_labels_are_one_request(ours, theirs):  # noqa: F811
    labels = xr.DataArray(np.arange(100) // 7 % 4, dims="time", name="group")
    with xr.set_options(use_flox=False), gm.set_options(fallback="error"):
        lazy = ours.tos.groupby(labels).mean()
        with gm.trace() as trace:
            got = lazy.compute()
        assert trace.requests == 1
        same(got, theirs.tos.groupby(labels).mean())


@pytest.mark.parametrize(
    "text",
    [
        'ds.tos.prod("time")',
        'ds.tos.cumsum("time").mean("time")',
        'ds.tos.chunk(time=-1).median("time")',
        'ds.tos.rolling(time=3).mean().max("time")',
        '(ds.tos - ds.tos.mean("time")).std("time")',
        'np.sin(ds.tos).diff("time").mean("time")',
        'ds.tos.coarsen(time=5).mean()',
        'xr.concat([ds.tos, ds.tos + 1], "time").mean("time")',
        'ds.tos.where(ds.time > 0).mean("time")',
        'ds.tos.sortby("lat", ascending=False).mean("time")',
        'ds.tos.shift(time=2).mean("time")',
        'xr.where(ds.tos > 280, ds.tos, ds.wide).mean("time")',
        'ds.tos.map_blocks(lambda one: one + 1).mean("time")',
        'xr.apply_ufunc(np.add, ds.tos, ds.tos.mean("time"), dask="parallelized", output_dtypes=["f4"]).mean()',
    ],
)  # fmt: skip
def test_whatever_else_dask_does_it_does_with_blocks(ours, theirs, text):  # noqa: F811
    same(compute(text, ours).compute(), compute(text, theirs))


def test_it_is_an_array_of_dask_beside_others(ours, theirs, tmp_path):  # noqa: F811
    # xarray accepts only one type of arrays in a call.
    mixed = ours.assign(mean=ours.tos.mean("time"), plain=(("time",), da.arange(100, chunks=30)))
    assert isinstance(mixed.tos.data, da.Array)
    expected = theirs.assign(mean=theirs.tos.mean("time"), plain=(("time",), np.arange(100)))
    for got in (mixed.compute(), mixed.persist().compute(), mixed.chunk(time=20).load()):
        xr.testing.assert_allclose(got, expected)
    mixed.to_netcdf(tmp_path / "copy.nc")
    with xr.open_dataset(tmp_path / "copy.nc") as there:
        xr.testing.assert_allclose(there.load(), expected)
    np.testing.assert_allclose(da.stack([mixed.tos.data, mixed.tos.data.persist()]).mean(0), theirs.tos)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_are_right(ours, theirs, copied):  # noqa: F811
    same(copied(ours).tos.mean("time").compute(), theirs.tos.mean("time"))


def assign_slice(ds):
    ds.tos[0:30] = 500.0


def assign_label(ds):
    ds.tos.loc[{"lat": 0.0}] = 1.5


def assign_where(ds):
    ds.tos.data[ds.tos.data > 280] = 0


def into_itself(ds):
    data = ds.tos.data
    np.add(data, np.float32(5), out=data)


@pytest.mark.parametrize("write", [assign_slice, assign_label, assign_where, into_itself])
def test_what_is_written_into_it_is_seen(path, theirs, write):  # noqa: F811
    ours, plain = gm.open_dataset(path, chunks=FEW), theirs.copy(deep=True)
    write(ours)
    write(plain)
    for text in ('ds.tos.mean("time")', "(ds.tos * 2).std()", "ds.tos[:2].max()", "ds.tos.copy().min()"):
        same(compute(text, ours).compute(), compute(text, plain))
    same(ours.tos.compute(), plain.tos)
    same(gm.open_dataset(path).tos.mean(), theirs.tos.mean())


@pytest.mark.parametrize("text", ["ds.data", "ds.data + 1"])
def test_answers_that_are_large_come_block_by_block(tmp_path, text):
    # The result is 80 MB of means of two elements each.
    np.save(tmp_path / "wide.npy", np.broadcast_to(np.float32(1.5), (2, 10_000_000)))
    lazy = compute(text, gm.open_dataset(tmp_path / "wide.npy", chunks={"dim_1": 2_500_000})).mean("dim_0")
    assert lazy.data.npartitions == 4
    with gm.trace() as trace:
        got = lazy.isel(dim_1=slice(0, 10)).compute()
    assert (got == 1.5 + ("1" in text)).all() and trace.bytes_folded <= 40_000_000


def test_what_cannot_be_asked_for_is_computed_in_blocks(ours, theirs, monkeypatch):  # noqa: F811
    lazy = ours.tos.mean("time")

    def refused(*args, **kwargs):
        raise gm._pushdown.not_pushed.NotPushed("for a test")

    monkeypatch.setattr(gm._dask.whole_arrays, "reduce", refused)
    same(lazy.compute(), theirs.tos.mean("time"))
