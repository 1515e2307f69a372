"""Runs xarray's own tests with Gristmill: its tests of readers, over netCDF-4, classic netCDF and Zarr, on this machine and in a
cluster; and its tests of operations on arrays that are not NumPy's.

A test of a reader saves with the netCDF4 package or zarr, and opens with Gristmill. The tests that are left out are listed below
with the reason. Such a test must fail. If it passes, remove it from the list. Some classes are left out as a whole: those that
test how xarray writes (``ZarrBase``, ``TestNetCDF4ViaDaskData``), files in memory, and packages of other readers.
"""

import contextlib
import itertools

import numpy as np
import pytest
import xarray as xr
from python_package import cluster, gm  # noqa: F401
from xarray.tests import test_backends as theirs
from xarray.tests import test_duck_array_ops
from xarray.tests.conftest import time_unit, use_dask  # noqa: F401

LEVEL = "at which level chunks were compressed is not kept: nobody needs it to read them"
NOT_IN_MEMORY = "load() leaves our arrays where they are: to xarray they are in memory already"
NOT_OPENED = "it opens the file with the package that wrote it"
WRAPPED = "xarray's wrappers are to hold NumPy's arrays in the end, and hold ours"

#: For all files.
LEFT_OUT = {
    "test_write_store": NOT_OPENED,
}
#: For files that are opened with the caches of xarray.
IN_CACHES = LEFT_OUT | {"test_array_type_after_indexing": WRAPPED, "test_dropna": WRAPPED}
NETCDF4 = {"test_encoding_kwarg_compression": LEVEL, "test_refresh_from_disk": NOT_OPENED}
ZARR = {
    "test_load_async": NOT_IN_MEMORY,
    "test_encoding_unlimited_dims": "dimensions of Zarr may all grow, so none is marked",
    "test_encoding_kwarg_fixed_width_string": "Zarr has texts of fixed width, where netCDF has rows of characters",
    "test_roundtrip_bytes_with_fill_value": "xarray itself cannot open what it wrote",
    "test_append_with_invalid_dim_raises": "it expects an error of the writer",
}


class Ours:
    """Opens files with Gristmill."""

    left_out = IN_CACHES

    @pytest.fixture(autouse=True)
    def mark_what_is_left_out(self, request):
        reason = self.left_out.get(request.node.originalname)
        if reason:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))

    @contextlib.contextmanager
    def open(self, path, **how):
        with xr.open_dataset(path, engine="gristmill", **how) as dataset:
            yield dataset


class TestNetcdf4(Ours, theirs.NetCDF4Base):
    engine = "netcdf4"
    left_out = IN_CACHES | NETCDF4


class TestClassic(Ours, theirs.NetCDF3Only, theirs.CFEncodedBase):
    engine = "netcdf4"
    file_format = "NETCDF3_64BIT"


class TestCluster(Ours, theirs.NetCDF4Base):
    """Opens files as a user does, without the caches of xarray."""

    engine = "netcdf4"
    count = itertools.count()
    left_out = LEFT_OUT | NETCDF4 | {"test_dataset_caching": NOT_IN_MEMORY}

    @pytest.fixture(autouse=True)
    def know_the_cluster(self, cluster):  # noqa: F811
        self.cluster = cluster

    @contextlib.contextmanager
    def open(self, path, **how):
        url = self.cluster.path(f"suite/{next(self.count)}.nc")
        gm.put(path, url, stripe="4KiB")
        with gm.open_dataset(url, **how) as dataset:
            yield dataset


class TestZarr(Ours, theirs.CFEncodedBase):
    left_out = IN_CACHES | ZARR

    @pytest.mark.parametrize("decoded_fn, encoded_fn", theirs.MASK_AND_SCALE_DATA)
    def test_roundtrip_mask_and_scale(self, decoded_fn, encoded_fn):
        # Zarr has attributes as JSON, so a scale factor of f32 is read as f64.
        super().test_roundtrip_mask_and_scale(decoded_fn, encoded_fn, np.dtype("f8"))

    def save(self, dataset, path, **how):
        return dataset.to_zarr(path, **{"mode": "w", **how}, zarr_format=3, consolidated=False)


class TestOperations(test_duck_array_ops.TestOps):
    @pytest.fixture(autouse=True)
    def setUp(self, tmp_path):
        nan = np.nan
        rows = [[nan, nan, 2, nan], [nan, 5, 6, nan], [8, 9, 10, nan]]
        more = [[nan, 13, 14, 15], [nan, 17, 18, nan], [nan, 21, nan, nan]]
        np.save(tmp_path / "x.npy", np.array([rows, more]))
        self.x = gm.open_arrays(tmp_path / "x.npy")["data"]

    # These test only arrays of pandas.
    test_where_extension_duck_array = None
    test_concatenate_extension_duck_array = None
    test_extension_array_pyarrow_concatenate = None
    test___getitem__extension_duck_array = None
    test__setitem__extension_duck_array = None
