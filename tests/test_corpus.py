"""Files that others made and that packages contain. Each variable is read whole and by random selections, and reduced over each
axis.

The corpus is the files in the packages that these tests need, and the real files if they are there. Values are compared with
netCDF4 through xarray, or with h5py if that cannot read a file. A refusal must have a message. The counts of read and refused
variables are printed at the end.
"""

import importlib.util
import warnings
from pathlib import Path

import gristmill as gm
import h5py
import numpy as np
import pytest
import xarray as xr
from conftest import ROOT

# Packages with files that others made. `tables` has files from twenty years of HDF5.
PACKAGES = ("h5py", "netCDF4", "scipy", "tables", "xarray")
ENDINGS = {".nc", ".nc4", ".h5", ".hdf5"}
SELECTIONS = 4
REDUCTIONS = ("sum", "mean", "min", "max", "var", "count")

# The minimum number of variables that are read and compared. A wrong refusal would make the number smaller.
LEAST_COMPARED = 60

counted = {"compared": 0, "refused": 0, "reduced": 0}


def corpus():
    found = []
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            folder = Path(spec.origin).parent
            found += [path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file()]
    real = ROOT.parent / "shared" / "data"
    found += sorted(real.glob("*.nc")) if real.is_dir() else []
    return sorted(found)


def short(path):
    return "-".join(path.parts[-2:])


def selection(rng, shape):
    """One key for each axis: an integer, a slice with a step, or a list."""
    keys = []
    for length in shape:
        kind = rng.integers(4) if length else 1
        if kind == 0:
            keys.append(int(rng.integers(length)))
        elif kind == 3:
            keys.append(rng.integers(length, size=rng.integers(1, 4)).tolist())
        else:
            start, stop = sorted(rng.integers(0, length + 1, size=2).tolist())
            keys.append(slice(start, stop, int(rng.integers(1, 4))))
    # Several lists would choose points, and NumPy moves the axis of a list beside an integer.
    lists = [at for at, key in enumerate(keys) if isinstance(key, list)]
    for at in lists[1:]:
        keys[at] = slice(None)
    if lists:
        keys = [slice(key, key + 1) if isinstance(key, int) else key for key in keys]
    return tuple(keys)


def equal(ours, theirs, what):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype.newbyteorder("="), (what, ours.dtype, theirs.dtype)
    np.testing.assert_array_equal(ours, theirs, err_msg=what)


def near(ours, theirs, what):
    """Sums in another order differ in their last digits. Sums of f4 in NumPy lose half of their digits."""
    ours, theirs = np.asarray(ours, "f8"), np.asarray(theirs, "f8")
    assert ours.shape == theirs.shape, what
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-30, equal_nan=True, err_msg=what)


def reduced(values, name, axis):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        exact = values.astype("f8") if values.dtype.kind == "f" else values
        if name == "count":
            return np.sum(~np.isnan(exact) if exact.dtype.kind == "f" else np.ones(exact.shape, bool), axis=axis)
        return getattr(np, f"nan{name}" if exact.dtype.kind == "f" else name)(exact, axis=axis)


def compare(ours, theirs, what, rng):
    """Compares one variable: whole, some parts of it, and reduced over each axis."""
    whole = np.asarray(theirs[...])
    equal(ours[...], whole, what)
    counted["compared"] += 1
    if whole.ndim == 0:
        return
    for _ in range(SELECTIONS):
        key = selection(rng, whole.shape)
        equal(ours[key], whole[key], f"{what}{key}")
    if whole.dtype.kind not in "iuf" or not whole.size:
        return
    for axis in range(whole.ndim):
        for name in REDUCTIONS:
            if name == "var" and not np.isfinite(whole.astype("f8")).any():
                continue
            wanted = reduced(whole, name, axis)
            if name in ("sum", "mean", "var") and not np.isfinite(np.nan_to_num(whole.astype("f8"), nan=0)).all():
                continue
            near(getattr(ours, name)(axis=axis), wanted, f"{what}.{name}(axis={axis})")
            counted["reduced"] += 1


def through_xarray(path):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return xr.open_dataset(path, engine="netcdf4", decode_times=False)
    except Exception:  # not a file of this library, or damaged on purpose
        return None


# netCDF4 ends the whole process at some data sets of other HDF5 files.
@pytest.mark.parametrize("path", [path for path in corpus() if path.suffix in (".nc", ".nc4")], ids=short)
def test_as_netcdf4_and_xarray_read_it(path):
    theirs = through_xarray(path)
    if theirs is None:
        pytest.skip("netCDF4 does not read it")
    rng = np.random.default_rng(len(path.name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ours = gm.open_dataset(path, decode_times=False)
        except gm.GristmillError as error:
            counted["refused"] += 1
            assert len(str(error)) > 20 and "panicked" not in str(error), error
            return
        for name in theirs.variables:
            if theirs[name].dtype.kind not in "iufb":
                continue
            if name not in ours.variables:
                counted["refused"] += 1
                continue
            assert ours[name].dims == theirs[name].dims
            compare(ours[name].variable, theirs[name].variable, f"{path.name}:{name}", rng)


def numbers_of(file):
    """All numeric data sets of an HDF5 file, by path."""
    found = {}

    def visit(name, item):
        try:
            if isinstance(item, h5py.Dataset) and item.shape is not None and item.dtype.kind in "iuf":
                found[name] = item
        except (TypeError, ValueError):
            pass  # NumPy does not have this type

    file.visititems(visit)
    return found


@pytest.mark.parametrize("path", [path for path in corpus() if path.suffix in (".h5", ".hdf5")], ids=short)
def test_as_h5py_reads_it(path):
    try:
        file = h5py.File(path)
    except OSError:
        pytest.skip("h5py does not read it")
    rng = np.random.default_rng(len(path.name))
    with file:
        sets = numbers_of(file)
        try:
            arrays = gm.open_arrays(path, decoded=False)
        except gm.GristmillError as error:
            counted["refused"] += max(len(sets), 1)
            assert len(str(error)) > 20 and "panicked" not in str(error), error
            return
        for name, theirs in sets.items():
            try:
                whole = theirs[...]
            except OSError:
                continue  # h5py does not have this filter
            try:
                ours = arrays[name]
                read = ours[...]
            except (KeyError, gm.GristmillError) as error:
                counted["refused"] += 1
                assert len(str(error)) > 20, error
                continue
            equal(read, whole, f"{path.name}:{name}")
            counted["compared"] += 1
            for _ in range(SELECTIONS if whole.ndim else 0):
                key = selection(rng, whole.shape)
                equal(ours[key], whole[key], f"{path.name}:{name}{key}")


def test_most_was_read():
    print(f"corpus: {len(corpus())} files, {counted}")
    assert counted["compared"] >= LEAST_COMPARED, counted
