"""Requests for many blocks of dask are combined: few requests, the same bits as for single blocks, and no block twice."""

import os
import pickle
import random
import threading

import netCDF4
import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, numbers, same
from python_package import TIMEOUT

pytest.importorskip("dask", reason="dask is not installed")

from gristmill._dask import blocks as dask_blocks  # noqa: E402
from gristmill._pushdown import batches  # noqa: E402

SHAPE = (100, 40, 40)
DIMS = ("time", "lat", "lon")
MANY = {"time": 4, "lat": 2, "lon": 2}  # 10,000 blocks
FEW = {"time": 30, "lat": 15, "lon": 20}  # 24 blocks, the last ones smaller
SOME_DOZENS = 40

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def field(rng, dtype):
    """Values of all sizes. A sum that is rounded in between would differ."""
    values = (rng.normal(250, 40, SHAPE) * 10.0 ** rng.integers(-9, 10, SHAPE)).astype(dtype)
    values[rng.random(SHAPE) < 0.1] = np.nan
    values[:, 3, 5] = np.nan
    return values


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("batches") / "blocks.nc"
    rng = np.random.default_rng(5)
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip(DIMS, SHAPE):
            file.createDimension(name, length)
            file.createVariable(name, "f8", (name,))[:] = np.arange(length) - length / 2
        for name, values in {
            "tos": rng.normal(285, 10, SHAPE).astype("f4"),
            "wide": field(rng, "f8"),
            "i4": rng.integers(-1000, 1000, SHAPE).astype("i4"),
        }.items():
            file.createVariable(name, values.dtype, DIMS, chunksizes=(25, 20, 10), zlib=True)[:] = values
        packed = file.createVariable("packed", "i2", DIMS, chunksizes=(25, 20, 10), fill_value=np.int16(-1))
        packed.scale_factor, packed.add_offset = 0.01, 273.0
        packed.set_auto_maskandscale(False)
        packed[:] = rng.integers(-1, 3000, SHAPE)
    return path


@pytest.fixture(scope="module")
def theirs(path):
    with xr.open_dataset(path, engine="netcdf4") as dataset:
        return dataset.load()


@pytest.fixture(autouse=True)
def nothing_known():
    batches.forget()
    gm._variables.variable.answers.clear()


def compute(text, ds):
    return eval(text, {"ds": ds, "np": np, "xr": xr})


@pytest.mark.parametrize("text", ['ds.tos.mean("time")', "ds.tos.mean()", "ds.tos.std()"])
def test_ten_thousand_blocks_are_some_dozens_of_requests(path, theirs, text):
    ours = gm.open_dataset(path, chunks=MANY)
    # The array does not know that its blocks form a whole, for which it would need only one request.
    blocks = dask_blocks.cut(gm.open_arrays(path)["tos"], ours.tos.chunks)
    lazy = compute(text, ours.assign(tos=(DIMS, blocks)))
    assert blocks.npartitions == 10_000
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = lazy.compute()
    assert trace.requests <= SOME_DOZENS and trace.reads == 0
    same(got, compute(text, theirs))


@pytest.mark.parametrize(
    "text",
    [
        'ds.wide.sum("time")',
        "ds.i4.mean()",
        'ds.packed.var(["time", "lon"], ddof=1)',
        'ds.tos.where(ds.tos > 280).max("lat")',
        'ds.wide.fillna(0).min("time")',
        "(ds.packed - 273.15).count()",
        '(ds.tos > 300).any(["lat", "lon"])',
        '(ds.i4 > -1001).all("time")',
        'ds.tos.isel(time=slice(7, 90, 3), lat=5).mean("time")',
        'ds.tos.where(ds.lat > 0).mean("time")',
        'ds.tos.transpose("lon", "time", "lat").std("lon")',
        'ds.tos.coarsen(time=5, lat=5, lon=10).mean()',
        'ds.tos.argmax("lat")',
    ],
)  # fmt: skip
def test_blocks_of_all_lengths_have_xarrays_answers(path, theirs, text):
    ours = gm.open_dataset(path, chunks=FEW)
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = compute(text, ours).compute()
    assert trace.reads == 0
    same(got, compute(text, theirs))


WIDTH = 100


def rows(folder, count, together):
    """A file with chunks of so many rows, and its values."""
    values = np.random.default_rng(3).normal(size=(count, WIDTH))
    with netCDF4.Dataset(folder / "rows.nc", "w") as file:
        for name, length in zip("yx", values.shape):
            file.createDimension(name, length)
        file.createVariable("data", "f8", ("y", "x"), chunksizes=(together, WIDTH))[:] = values
    return folder / "rows.nc", values


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_a_graph_of_three_blocks_asks_for_six_at_most(tmp_path, scheduler):
    path, values = rows(tmp_path, 1000, 10)
    array = gm.open_dataset(path, chunks={}).data
    three = xr.concat([array[at : at + 10].mean("x") for at in (120, 550, 830)], "y")
    with gm.set_options(fallback="error"), gm.trace() as trace:
        got = three.compute(scheduler=scheduler)
    np.testing.assert_allclose(got, np.concatenate([values[at : at + 10].mean(1) for at in (120, 550, 830)]))
    assert trace.requests <= 3 and trace.bytes_folded <= 2 * 3 * 10 * WIDTH * 8


def every(blocked, chunks, rng):
    """The blocks of an array of dask in random order."""
    bounds = [np.cumsum([0, *lengths]) for lengths in chunks]
    keys = [tuple(slice(*bound[i : i + 2].tolist()) for i, bound in zip(at, bounds)) for at in np.ndindex(*map(len, chunks))]
    rng.shuffle(keys)
    return [(key, blocked[key]) for key in keys]


OPERATIONS = ["nansum", "nanmean", "nanstd", "nanvar", "nanmin", "nanmax", "sum", "mean", "any"]


@pytest.mark.parametrize("axis", [None, 0, (1, 2)])
@pytest.mark.parametrize("name", ["wide", "i4"])
def test_the_bits_are_those_of_a_block_asked_alone(path, name, axis):
    choose = random.Random(3)
    chunks = ((30, 30, 30, 10), (15, 15, 10), (20, 20))
    blocked = gm.open_arrays(path)[name].in_blocks(chunks)
    for operation in OPERATIONS:
        function = getattr(np, operation)
        got = {}
        with gm.trace() as together:
            for key, block in every(blocked, chunks, choose):
                got[str(key)] = function(block, axis=axis)
        for key, block in every(blocked, chunks, choose):
            batches.forget()
            np.testing.assert_array_equal(function(block, axis=axis), got[str(key)], f"{operation} of {key}")
        assert together.requests <= 12


def test_no_block_is_asked_for_twice(tmp_path):
    path, values = rows(tmp_path, 64, 1)
    chunks = ((1,) * 64, (WIDTH,))
    for seed in range(5):
        batches.forget()
        blocked = gm.open_arrays(path)["data"].in_blocks(chunks)
        with gm.trace() as trace:
            for number, (_, block) in enumerate(every(blocked, chunks, random.Random(seed)), 1):
                block.sum()
                assert trace.bytes_folded <= 2 * number * WIDTH * 8
        assert trace.bytes_folded == values.nbytes


@pytest.mark.parametrize("axis", [None, 0, (1, 2)])
def test_blocks_of_one_chunk_are_asked_about_together(path, theirs, axis):
    # The chunks are (25, 20, 10).
    chunks = ((5,) * 20, (7, 7, 7, 7, 7, 5), (5,) * 8)
    blocked, values = gm.open_arrays(path)["wide"].in_blocks(chunks), theirs.wide.values
    alone = {}
    for key, block in every(blocked, chunks, random.Random(1))[:20]:
        batches.forget()
        alone[str(key)] = np.nanmean(block, axis=axis)
    batches.forget()
    about = gm.open_arrays(path)._about["wide"]
    with gm.trace() as trace:
        for key, block in every(blocked, chunks, random.Random(1)):
            got = np.nanmean(block, axis=axis)
            np.testing.assert_allclose(got, np.nanmean(values[key], axis=axis), rtol=1e-9)
            np.testing.assert_array_equal(got, alone.get(str(key), got))
    # Along latitude, blocks end inside chunks.
    assert trace.requests <= 4 * 2 * 4 and trace.bytes_folded <= 2 * about["stored_bytes"]


def together(threads, work):
    """Calls work(number) in several threads that start at once. Returns what each one returns or raises."""
    gate, found = threading.Barrier(threads), [None] * threads

    def run(number):
        gate.wait(TIMEOUT)
        try:
            found[number] = work(number)
        except BaseException as error:
            found[number] = error

    each = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for one in each:
        one.start()
    for one in each:
        one.join(TIMEOUT)
        assert not one.is_alive()
    return found


def test_threads_share_what_is_under_way(path, theirs):
    chunks = ((1,) * 100, (40,), (40,))
    blocked = gm.open_arrays(path)["tos"].in_blocks(chunks)
    with gm.trace() as trace:
        found = together(8, lambda thread: [np.nanmax(blocked[at : at + 1]) for at in range(100)])
    for one in found:
        np.testing.assert_array_equal(one, theirs.tos.max(["lat", "lon"]).values)
    assert trace.requests <= SOME_DOZENS


def test_who_waits_for_a_request_that_fails_asks_again(path, theirs, monkeypatch):
    blocked = gm.open_arrays(path)["tos"].in_blocks(((50, 50), (40,), (40,)))
    reduce, entered, waiting, first = gm._variables.variable.Variable.reduce, threading.Event(), threading.Event(), []

    def interrupted(self, asked, key):
        if not first:
            first.append(1)
            entered.set()
            assert waiting.wait(TIMEOUT)
            raise KeyboardInterrupt
        return reduce(self, asked, key)

    class Seen(threading.Event):
        def wait(self, timeout=None):
            waiting.set()
            return super().wait(timeout)

    monkeypatch.setattr(gm._variables.variable.Variable, "reduce", interrupted)
    monkeypatch.setattr(batches.threading, "Event", Seen)

    def work(thread):
        if thread:
            assert entered.wait(TIMEOUT)
        return np.nanmax(blocked[:50])

    found = together(2, work)
    assert isinstance(found[0], KeyboardInterrupt) and found[1] == theirs.tos[:50].max().values


def test_a_block_that_cannot_be_answered_leaves_the_others_alone(tmp_path):
    values = np.ones((8, 4))
    values[5, 1] = 1e200
    np.save(tmp_path / "large.npy", values)
    chunks = ((1,) * 8, (4,))
    blocked = gm.open_arrays(tmp_path / "large.npy")["data"].in_blocks(chunks)
    got = [np.var(blocked[at : at + 1]) for at in range(8)]
    np.testing.assert_array_equal(got, [np.inf if at == 5 else 0.0 for at in range(8)])


def test_answers_that_are_dropped_are_asked_for_again(path, theirs, monkeypatch):
    monkeypatch.setattr(batches, "MAX_BYTES", 20_000)
    monkeypatch.setattr(batches, "MAX_FAMILIES", 2)
    chunks = ((10,) * 10, (40,), (20, 20))
    blocked = gm.open_arrays(path)["tos"].in_blocks(chunks)
    for operation in ("nanmax", "nanmean", "any", "nanmax"):
        for number, (key, block) in enumerate(every(blocked, chunks, random.Random(1))):
            axis = number % 3
            numbers(
                np.asarray(getattr(np, operation)(block, axis=axis)),
                np.asarray(getattr(np, operation)(theirs.tos.values[key].astype("f8"), axis=axis)).astype(
                    bool if operation == "any" else "f4"
                ),
            )
    assert batches._store.bytes <= 20_000 + 20_000 and len(batches._store.families) <= 2


def test_forked_and_pickled_blocks_ask_for_themselves(path, theirs):
    blocked = gm.open_arrays(path)["tos"].in_blocks(((50, 50), (20, 20), (40,)))
    expected = np.nanmax(blocked[:50, :20])
    again = pickle.loads(pickle.dumps(blocked))
    assert np.nanmax(again[:50, 20:]) == theirs.tos[:50, 20:].max()
    # The lock is held, as if another thread were in the middle of an operation.
    with batches._store.lock:
        child = os.fork()
        if not child:
            # Do not run code of pytest in the child.
            os._exit(0 if np.nanmax(blocked[:50, :20]) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
