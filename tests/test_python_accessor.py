"""Statistics of arrays and datasets of xarray, and the import that adds the accessor."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from python_arrays import gm, numbers, places, same, theirs  # noqa: F401
from python_package import TIMEOUT

from gristmill._variables import variable

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
NAMES = ["mean", "std", "count", "min"]


@pytest.fixture(autouse=True)
def nothing_known():
    variable.answers.clear()


@pytest.mark.parametrize("dims", ["time", ["lat", "lon"], None, ...])
def test_statistics_are_one_request_and_those_of_xarray(places, theirs, dims):
    ours = gm.open_dataset(places["cluster"]).tos
    with gm.set_options(fallback="error"), gm.trace() as trace:
        found = ours.gristmill.stats(dims, NAMES)
    assert trace.requests == 1 and list(found.data_vars) == NAMES and found.attrs == ours.attrs
    axes = None if dims in (None, ...) else tuple(ours.dims.index(one) for one in np.atleast_1d(dims))
    direct = gm.stats(ours.data, NAMES, axis=axes)
    for name in NAMES:
        same(found[name], getattr(theirs.tos, name)(dims))
        np.testing.assert_array_equal(found[name].values, direct[name])


def test_statistics_of_a_dataset(places, theirs):
    ours = gm.open_dataset(places["netcdf"])
    with gm.set_options(fallback="error"), gm.trace() as trace:
        found = ours.gristmill.stats("time", ["max", "var"], ddof=1)
    assert trace.requests == len(ours.data_vars)
    for name in ours.data_vars:
        same(found[f"{name}_max"], theirs[name].max("time"))
        same(found[f"{name}_var"], theirs[name].var("time", ddof=1))


def test_statistics_of_what_xarray_opened_and_of_blocks(places, theirs):
    opened = xr.open_dataset(places["netcdf"], engine="gristmill").b
    blocks = gm.open_dataset(places["netcdf"], chunks={}).b
    for ours in (opened, blocks, opened.isel(time=slice(3, None)), theirs.b):
        found = ours.gristmill.stats(["time"], NAMES)
        local = theirs.b.isel(time=slice(36 - ours.sizes["time"], None))
        for name in NAMES:
            same(found[name].compute(), getattr(local, name)("time"))


def test_wrong_names_say_what_there_is(places):
    ours = gm.open_dataset(places["netcdf"])
    for one in (ours, ours.tos):
        with pytest.raises(gm.Usage, match="no dimension 'level'; there are time"):
            one.gristmill.stats("level")
        with pytest.raises(gm.Usage, match="no statistic 'mode'; there are count"):
            one.gristmill.stats("time", ["mode"])


@pytest.mark.parametrize(
    "imports",
    ["import gristmill; import xarray as xr", "import xarray as xr; import gristmill", "import xarray as xr; xr.backends.list_engines()",
     "import gristmill; import xarray.core.dataset; import xarray as xr"],
)  # fmt: skip
def test_an_import_is_enough_in_any_order(imports):
    code = f"""{imports}
import gristmill
one = xr.DataArray([1.0, 3.0], dims="x", name="one")
print(one.gristmill.stats(names=["mean"])["mean"].item(), one.to_dataset().gristmill.load().one.dtype)
try:
    one.to_netcdf("grist://127.0.0.1:1/a.nc", mode="a")
except gristmill.Usage as error:
    print("mode" in str(error))
print(xr.__spec__.loader is xr.__loader__, [one for one in __import__("sys").meta_path if "gristmill" in type(one).__module__])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stdout == "2.0 float64\nTrue\nTrue []\n", done.stderr


def test_an_import_leaves_xarray_alone():
    """An import of gristmill imports no other package, so the command starts as fast as before."""
    code = "import gristmill, sys; print([one for one in ('xarray', 'numpy', 'dask') if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stdout == "[]\n"


def test_an_import_of_xarray_that_fails_says_so(tmp_path):
    """The error is that of xarray, and the import can be tried again."""
    (tmp_path / "xarray.py").write_text("raise ImportError('no numpy')\n")
    code = """import gristmill, sys
for _ in range(2):
    try:
        import xarray
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT, cwd=tmp_path)
    assert done.stdout == "no numpy\nno numpy\n", done.stderr
