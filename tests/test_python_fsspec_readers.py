"""Packages that read and write through fsspec give the same results on a cluster as with local files."""

import fsspec
import h5netcdf
import h5py
import netCDF4
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
import pytest
import xarray as xr
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from python_arrays import fields
from python_package import cluster, gm  # noqa: F401
from zarr.core.buffer import Buffer, cpu
from zarr.storage import FsspecStore
from zarr.testing.store import StoreTests

from gristmill._fsspec.filesystem import GristmillFileSystem


@pytest.fixture
def base(cluster, request):  # noqa: F811
    return cluster.path("".join(c if c.isalnum() else "-" for c in request.node.name))


class TestZarrStore(StoreTests[FsspecStore, cpu.Buffer]):
    store_cls = FsspecStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, base):
        return {
            "fs": AsyncFileSystemWrapper(fsspec.filesystem("grist"), asynchronous=True),
            "path": GristmillFileSystem._strip_protocol(base),
        }

    async def set(self, store: FsspecStore, key: str, value: Buffer) -> None:
        gm.put(value.to_bytes(), f"grist://{store.path}/{key}")

    async def get(self, store: FsspecStore, key: str) -> Buffer:
        return self.buffer_cls.from_bytes(gm.get(f"grist://{store.path}/{key}"))

    def test_store_repr(self, store):
        assert str(store) == f"<FsspecStore(AsyncFileSystemWrapper, {store.path})>"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


@pytest.fixture(scope="module")
def dataset():
    return xr.decode_cf(fields())


@pytest.fixture(scope="module")
def netcdf(dataset, tmp_path_factory):
    path = tmp_path_factory.mktemp("fsspec") / "fields.nc"
    dataset.to_netcdf(path, engine="netcdf4", encoding={"a": {"zlib": True, "chunksizes": (10, 5, 8)}})
    return path


@pytest.mark.parametrize("how", ["v2", "v3", "sharded"])
def test_zarr_is_written_and_read(base, dataset, how):
    version = 2 if how == "v2" else 3
    chunks = {"chunks": (10, 5, 8)}
    if how == "sharded":
        chunks |= {"shards": (20, 10, 16)}
    encoding = {name: chunks for name in ("tos", "a")}
    dataset.to_zarr(base, zarr_format=version, encoding=encoding, consolidated=False)
    with xr.open_zarr(base, consolidated=False, chunks=None) as again:
        xr.testing.assert_identical(again.load(), dataset)
    # Gristmill can reduce the files that others wrote.
    ours = gm.open_dataset(base)
    np.testing.assert_array_equal(ours.i4.sum("time").values, dataset.i4.sum("time").values)
    group = zarr.open_group(base, mode="r")
    np.testing.assert_array_equal(group["a"][3:17, ::2, 5], dataset.a.values[3:17, ::2, 5])


def test_netcdf_and_hdf5_are_read(base, netcdf, dataset):
    fs = fsspec.filesystem("grist")
    fs.put_file(netcdf, base, stripe="64KiB")
    with fs.open(base) as file, h5py.File(file) as opened, netCDF4.Dataset(netcdf) as wanted:
        wanted.set_auto_mask(False)
        np.testing.assert_array_equal(opened["a"][4:30:3, 2, 3:9], wanted["a"][4:30:3, 2, 3:9])
    with fs.open(base, cache_type="bytes") as file, h5netcdf.File(file, "r") as opened:
        assert opened["a"].chunks == (10, 5, 8) and set(opened.dimensions) == {"time", "lat", "lon"}
    with fs.open(base) as file, xr.open_dataset(file, engine="h5netcdf") as opened:
        xr.testing.assert_identical(opened.load(), dataset)
    with fs.open(base) as file, xr.open_dataset(file, engine="h5netcdf", chunks={}) as opened:
        np.testing.assert_array_equal(opened.a.max("time").values, dataset.a.max("time").values)


@pytest.mark.parametrize("made", ["kerchunk", "by hand"])
def test_references_into_a_file(base, netcdf, dataset, made):
    fs = fsspec.filesystem("grist")
    fs.put_file(netcdf, base)
    if made == "kerchunk":
        hdf = pytest.importorskip("kerchunk.hdf")
        with fs.open(base) as file:
            references = hdf.SingleHdf5ToZarr(file, base, inline_threshold=100).translate()
    else:
        references = {"version": 1, "refs": {".zgroup": '{"zarr_format": 2}', ".zattrs": "{}"}}
        with h5py.File(netcdf) as opened:
            stored = opened["tos"]
            about = {
                "zarr_format": 2, "shape": stored.shape, "chunks": stored.shape, "dtype": stored.dtype.str,
                "compressor": None, "filters": None, "fill_value": None, "order": "C",
            }  # fmt: skip
            refs = references["refs"]
            refs["tos/.zattrs"] = {"_ARRAY_DIMENSIONS": ["time", "lat", "lon"]}
            refs["tos/.zarray"] = about
            refs["tos/0.0.0"] = [base, stored.id.get_offset(), stored.id.get_storage_size()]
    opened = fsspec.filesystem("reference", fo=references, asynchronous=True)
    with xr.open_dataset(FsspecStore(opened, read_only=True, path=""), engine="zarr", consolidated=False) as found:
        np.testing.assert_array_equal(found.tos.values, dataset.tos.values)
        if made == "kerchunk":
            xr.testing.assert_equal(found.load(), dataset)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {"n": np.arange(3000), "x": rng.normal(size=3000), "name": rng.choice(["ocean", "land", "ice"], 3000)}
    )


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_pandas_reads_and_writes_text(base, table, suffix):
    url = f"{base}.{suffix}"
    table.to_csv(url, index=False)
    pd.testing.assert_frame_equal(pd.read_csv(url), table)
    pieces = pd.read_csv(url, chunksize=999)
    pd.testing.assert_frame_equal(pd.concat(pieces), table)


@pytest.mark.parametrize("filesystem", ["by the URL", "fsspec", "pyarrow"])
def test_pandas_reads_and_writes_parquet(base, table, filesystem):
    fs = fsspec.filesystem("grist")
    how = {}
    path = base
    if filesystem != "by the URL":
        how = {"filesystem": fs if filesystem == "fsspec" else pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fs))}
        path = fs._strip_protocol(base)
    table.to_parquet(path, engine="pyarrow", row_group_size=500, **how)
    pd.testing.assert_frame_equal(pd.read_parquet(path, engine="pyarrow", **how), table)
    some = pd.read_parquet(path, engine="pyarrow", columns=["x"], filters=[("n", ">=", 2500)], **how)
    assert list(some.columns) == ["x"] and some.x.tolist() == table.x[2500:].tolist()


def test_pyarrow_works_on_the_file_system(base, table):
    fs = fsspec.filesystem("grist")
    theirs = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fs))
    path = fs._strip_protocol(base)
    whole = pa.Table.from_pandas(table, preserve_index=False)
    pyarrow.dataset.write_dataset(
        whole, path, filesystem=theirs, format="parquet", partitioning=["name"], partitioning_flavor="hive"
    )
    found = pyarrow.dataset.dataset(path, filesystem=theirs, format="parquet", partitioning="hive")
    assert found.count_rows() == 3000
    ice = found.to_table(columns=["n", "x"], filter=pyarrow.dataset.field("name") == "ice").sort_by("n").to_pandas()
    pd.testing.assert_frame_equal(ice, table[table.name == "ice"][["n", "x"]].reset_index(drop=True))
    files = theirs.get_file_info(pyarrow.fs.FileSelector(path, recursive=True))
    kinds = {info.type for info in files}
    assert kinds == {pyarrow.fs.FileType.File, pyarrow.fs.FileType.Directory}
    with theirs.open_input_file(next(info.path for info in files if info.is_file)) as file:
        assert file.read_at(4, 0) == b"PAR1" and file.size() > 8
    with theirs.open_output_stream(f"{path}/text") as file:
        file.write(b"words")
    theirs.copy_file(f"{path}/text", f"{path}/copy")
    theirs.move(f"{path}/copy", f"{path}/moved")
    assert gm.get(f"{base}/moved") == b"words"
    theirs.delete_dir(path)
    assert theirs.get_file_info(path).type == pyarrow.fs.FileType.NotFound
