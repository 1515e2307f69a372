"""Indexing of an array by lists, masks and NumPy's ``take``, compared with NumPy."""

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm

SHAPE = (7, 4)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(scope="module")
def values():
    return np.arange(28.0).reshape(SHAPE)


@pytest.fixture(scope="module")
def array(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("indices") / "values.npy"
    np.save(path, values)
    return gm.open_arrays(path)["data"]


@pytest.mark.parametrize(
    "key",
    [
        [True, False],
        np.array([True, True]),
        [False] * 9,
        (slice(None), [True] * 7),
        (..., [True, False, True]),
        (None, [True] * 4),
        np.ones((7, 3), bool),
        np.array([1.0]),
        np.array([]),
        [1.5],
        1.5,
        "1",
        np.array(2.0),
        [9],
        (slice(None), [1, -5]),
    ],
    ids=str,
)
def test_what_numpy_refuses(array, values, key):
    with pytest.raises(IndexError):
        values[key]
    with pytest.raises(IndexError):
        array[key]


def test_an_index_outside_names_its_axis(array, tmp_path):
    for key, words in (
        (7, "index 7 is out of range for axis 0 of length 7"),
        ((0, [1, -5]), "index -5 is out of range for axis 1 of length 4"),
    ):
        with pytest.raises(IndexError, match=words):
            array[key]
    xr.Dataset({"tos": (("time", "lat"), np.zeros(SHAPE))}).to_netcdf(tmp_path / "named.nc")
    tos = gm.open_arrays(tmp_path / "named.nc")["tos"]
    for ask, words in (
        (lambda: tos[9], r"index 9 is out of range for axis 0 \(time\) of length 7"),
        (lambda: tos[..., [0, 4]], r"index 4 is out of range for axis 1 \(lat\) of length 4"),
        (lambda: (tos + 1)[0][4], r"index 4 is out of range for axis 0 \(lat\) of length 4"),
        (lambda: tos[None, 0, 4], r"index 4 is out of range for axis 1 \(lat\) of length 4"),
        (lambda: tos[[True] * 3], r"its axis 0 \(time\) has 7"),
        (lambda: gm.open_dataset(tmp_path / "named.nc").tos.isel(lat=4), r"axis 1 \(lat\) of length 4"),
    ):
        with pytest.raises(IndexError, match=words):
            ask()


@pytest.mark.parametrize(
    "key",
    [
        [True, False] * 3 + [True],
        (..., np.array([True, False, False, True])),
        (None, ..., [True, False, True, False]),
        [],
        np.array(2),
        np.uint8(3),
        np.ix_([0, 2], [True, False, True, True]),
        np.arange(28).reshape(SHAPE) % 3 == 0,
    ],
    ids=str,
)
def test_what_numpy_takes(array, values, key):
    np.testing.assert_array_equal(np.asarray(array[key]), values[key])


@pytest.mark.parametrize("indices", [[True, False], [-1, 0], 2, np.array([3, 3]), [], True], ids=str)
def test_take_has_no_masks(array, values, indices):
    np.testing.assert_array_equal(np.asarray(np.take(array, indices, axis=1)), np.take(values, indices, axis=1))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    path = tmp_path_factory.mktemp("picked") / "picked.nc"
    n = np.nan
    table = [[3.0, 1], [n, n], [5, 4], [n, -np.inf], [7, 8]]
    large = np.array([[1, 2], [2**62, 2**62], [3, 4], [-(2**62), 5], [5, 6]])
    theirs = xr.Dataset({"a": (("t", "x"), table), "i8": (("t", "x"), large)}, {"x": [10, 20]})
    theirs.to_netcdf(path)
    return path, theirs


PICKS = {
    "dropna": lambda a: a.dropna("t", how="any"),
    "list": lambda a: a.isel(t=[0, 2, 4]),
    "mask": lambda a: a.isel(t=np.array([True, False, True, True, True])),
    "backwards": lambda a: a.isel(t=[4, 0, 2]),
}


@pytest.mark.parametrize("reduce", ["argmin", "argmax", "idxmin", "idxmax", "min"])
@pytest.mark.parametrize("pick", PICKS)
def test_cells_that_are_not_picked_allow_an_answer_about_the_others(files, pick, reduce):
    path, theirs = files
    got, expected = (getattr(PICKS[pick](ds.a), reduce)("x") for ds in (gm.open_dataset(path), theirs))
    np.testing.assert_array_equal(got.values, expected.values)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_sums_beyond_64_bits_of_cells_that_are_not_picked(files, reduce):
    path, theirs = files
    for dims in ("x", "t"):
        got, expected = (getattr(ds.i8.isel(t=[0, 2, 4]), reduce)(dims) for ds in (gm.open_dataset(path), theirs))
        np.testing.assert_array_equal(got.values, expected.values)


def test_groups_of_which_one_allows_no_answer(files):
    path, theirs = files
    groups = xr.DataArray([0, 1, 0, 2, 0], dims="t", name="of")
    got, expected = (list(ds.i8.groupby(groups))[0][1].sum("t") for ds in (gm.open_dataset(path), theirs))
    np.testing.assert_array_equal(got.values, expected.values)


def test_a_cell_that_was_picked_and_has_nothing_is_an_error(files):
    path, _ = files
    with pytest.raises(ValueError, match="All-NaN"):
        np.nanargmin(gm.open_dataset(path).a.isel(t=[0, 1, 4]).data, axis=1)
