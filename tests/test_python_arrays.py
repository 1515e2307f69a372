"""Stored arrays used through NumPy."""

import os
import signal

import numpy as np
import pytest
from python_arrays import PLACES, fields, gm, numbers, places, theirs  # noqa: F401
from python_package import TIMEOUT, python

KEYS = [
    np.s_[...],
    np.s_[3],
    np.s_[-1, 2:9:3],
    np.s_[2:10, ..., 5],
    np.s_[:, None, 3:, ::4],
    np.s_[[4, 1, 1], 2:],
    np.s_[np.ix_([0, 5, 9], [3, 1], [2, 15])],
    np.s_[::-1, 3],
    np.s_[5:5],
    np.s_[:, np.arange(12) % 3 == 1],
    np.s_[[1, 2, 3], [4, 5, 6]],
    np.s_[30:99, -4:-1],
]
ELEMENTWISE = [
    lambda x: x - 273.15,
    lambda x: -(abs(x) ** 2) / 3,
    lambda x: np.where(np.isnan(x), 0, x),
    lambda x: (x > 280) & ~(x > 290),
    lambda x: np.float64(2) * x,
    lambda x: x * np.linspace(0, 1, x.shape[-1]),
    lambda x: np.clip(x, 280, None).astype("f8"),
    lambda x: np.log10(np.sqrt(x) + 1) // 0.25,
    lambda x: np.maximum(x, x[..., :1]),
    lambda x: np.nan_to_num(x) + x.T.T,
]
REDUCTIONS = ["sum", "mean", "std", "var", "min", "max", "any", "all"]
LEAVE_OUT = ["nansum", "nanmean", "nanstd", "nanvar", "nanmin", "nanmax"]
AXES = [None, 0, (1, 2), -1, [0, 2], np.int64(1)]


@pytest.fixture(scope="module", params=PLACES)
def arrays(request, places):
    return gm.open_arrays(places[request.param])


@pytest.mark.parametrize("number", range(len(KEYS)))
def test_slices_are_those_of_numpy(arrays, theirs, number):
    key = KEYS[number]
    expected = theirs.tos.values
    with gm.trace() as trace:
        taken = arrays["tos"][key]
    assert trace.reads == trace.requests == 0
    assert taken.shape == expected[key].shape and taken.dtype == expected.dtype
    numbers(np.asarray(taken), expected[key])
    numbers(np.asarray((taken + 1)[..., None]), (expected[key] + 1)[..., None])


@pytest.mark.parametrize("number", range(len(ELEMENTWISE)))
def test_elementwise_operations_are_those_of_numpy(places, theirs, number):
    of, expected = ELEMENTWISE[number], theirs.tos.values
    with np.errstate(all="ignore"):
        got = of(gm.open_arrays(places["netcdf"])["tos"])
        numbers(np.asarray(got), of(expected))
        part = np.s_[3:30:2, 4, ::5]
        numbers(np.asarray(got[part]), of(expected)[part])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", REDUCTIONS + LEAVE_OUT)
def test_reductions_are_those_of_numpy(arrays, theirs, name):
    with gm.set_options(fallback="error"):
        for variable in ("tos", "b", "i4", "packed"):
            array, expected = arrays[variable], theirs[variable].values
            for axis in AXES:
                keepdims = axis in (0, None)
                axes = tuple(axis) if isinstance(axis, list) else axis
                got = getattr(np, name)(array, axis=axis, keepdims=keepdims)
                wanted = getattr(np, name)(expected.astype("f8") if expected.dtype == "f4" else expected, axis=axes)
                wanted = np.asarray(wanted).astype(getattr(np, name)(expected, axis=axes).dtype)
                numbers(np.asarray(got).reshape(wanted.shape), wanted)
                assert np.ndim(got) == (3 if keepdims else wanted.ndim)


def test_methods_and_types(arrays, theirs):
    array, expected = arrays["b"], theirs.b.values
    assert (array.shape, array.ndim, array.size, array.nbytes) == (
        expected.shape,
        3,
        expected.size,
        expected.nbytes,
    )
    assert array.dims == ("time", "lat", "lon") and array.storage_chunks == (10, 5, 8)
    assert array.T.dims == ("lon", "lat", "time") and len(array) == 36
    assert isinstance(np.nansum(array), np.float64)
    numbers(np.nanmean(array.T, axis=(0, 2)), np.nanmean(expected.T, axis=(0, 2)))
    numbers(np.nanmean(array, axis=0, dtype="f4"), np.nanmean(expected, axis=0, dtype="f8").astype("f4"))
    assert not hasattr(array, "chunks") and not hasattr(array, "__array_namespace__")


def test_an_array_that_is_an_output_is_changed(arrays, theirs):
    known = ~np.isnan(arrays["tos"])
    mask = np.isnan(arrays["tos"])
    assert np.logical_not(mask, out=mask) is mask
    np.testing.assert_array_equal(np.asarray(mask), np.asarray(known))
    with pytest.raises(ValueError, match="shape"):
        np.add(arrays["tos"], 1, out=arrays["tos"][0])


def test_sums_between_places_are_those_of_numpy(arrays, theirs):
    places = [0, 4, 20]
    got = np.add.reduceat(np.where(np.isnan(arrays["b"]), 0, arrays["b"]), places, axis=0)
    numbers(got, np.add.reduceat(np.nan_to_num(theirs.b.values), places, axis=0))
    got = np.add.reduceat(arrays["b"], places, axis=0)
    numbers(got, np.add.reduceat(theirs.b.values, places, axis=0))


def test_what_is_stored_and_what_it_means(places):
    raw = gm.open_arrays(places["netcdf"], decoded=False)["packed"]
    assert raw.dtype == np.int16
    np.testing.assert_array_equal(np.asarray(raw), fields().packed.values)
    assert raw.min() == -32768


def test_a_file_that_is_opened_has_its_arrays(places, theirs):
    with gm.open(places["netcdf"]) as file:
        numbers(np.nanmax(file["tos"], axis=0), np.nanmax(theirs.tos.values, axis=0))
        assert file.read(4) == b"\x89HDF" and "tos" in file.arrays and file.attrs["title"] == "made up"


def test_a_forked_child_asks_for_itself(places, theirs):
    array = gm.open_arrays(places["cluster"])["tos"]
    expected = float(np.nanmean(array))
    child = os.fork()
    if not child:
        # Do not run code of pytest in the child.
        os._exit(0 if float(np.nanmean(array)) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_fallback_can_warn(places):
    with gm.set_options(fallback="warn"), pytest.warns(gm.PushdownWarning, match="nanmedian"):
        np.nanmedian(gm.open_arrays(places["netcdf"])["b"])
    assert gm.explain(gm.open_arrays(places["netcdf"])["b"][2:5] - 1).startswith("reduced where it is stored: (x - 1)")


@pytest.fixture
def endless(tmp_path):
    """A sparse array of 4 TiB. No test reads it to its end."""
    path = tmp_path / "endless.npy"
    length = 1 << 39
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (length,)})
        file.truncate(file.tell() + 8 * length)
    return path


INTERRUPTED = """
import sys, gristmill
array = gristmill.open_arrays(sys.argv[1])["data"]
try:
    print("opened", flush=True)
    array.mean()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_a_reduction(endless):
    child = python(INTERRUPTED, endless)
    assert child.stdout.readline() == "opened\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=TIMEOUT) == ("interrupted\n", "")


def test_what_does_not_fit_is_refused_before_it_is_read(endless):
    array = gm.open_arrays(endless)["data"]
    with gm.trace() as trace, pytest.raises(gm.Usage, match="do not fit into memory"):
        np.asarray(array)
    assert trace.bytes_in == 0
    assert array[5:7].sum() == 0


def test_wrong_names_and_files_say_so(places, tmp_path):
    with pytest.raises(KeyError, match="there is .*tos"):
        gm.open_arrays(places["netcdf"])["nothing"]
    with pytest.raises(gm.NotFound):
        gm.open_arrays(tmp_path / "nowhere.nc")
    (tmp_path / "text.bin").write_bytes(os.urandom(64))
    with pytest.raises(gm.GristmillError):
        gm.open_arrays(tmp_path / "text.bin")
    with pytest.raises(IndexError):
        gm.open_arrays(places["netcdf"])["tos"][99]
    with pytest.raises(gm.Usage, match="fallback"):
        gm.set_options(fallback="never")


def test_where_reductions_run(places, theirs):
    found = {}
    for place in ("storage", "client"):
        array = gm.open_arrays(places["cluster"])["a"]
        with gm.set_options(place=place), gm.trace() as trace:
            found[place] = np.nanmean(array)
        found[place, "bytes"] = trace.bytes_in
    assert found["storage"] == found["client"] and np.isclose(found["storage"], np.nanmean(theirs.a.values))
    assert found["storage", "bytes"] < found["client", "bytes"]
    with pytest.raises(gm.Usage, match="one of auto, storage, client"):
        gm.set_options(place="nowhere")


def test_one_axis_of_all_elements(places, theirs):
    array, expected = gm.open_arrays(places["netcdf"])["i4"], theirs.i4.values
    for name in ("ravel", "flatten"):
        np.testing.assert_array_equal(np.asarray(getattr(array, name)()), getattr(expected, name)())


def test_means_of_large_integers(tmp_path):
    values = np.full((4, 3), 2**62, "i8")
    np.save(tmp_path / "large.npy", values)
    array = gm.open_arrays(tmp_path / "large.npy")["data"]
    with gm.set_options(fallback="error"):
        for axis in (0, None):
            numbers(array.mean(axis), values.mean(axis))
        with pytest.raises(gm.DataError, match="beyond 64 bits"):
            array.sum(axis=0)
