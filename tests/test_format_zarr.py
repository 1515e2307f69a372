"""Zarr arrays that zarr-python writes, versions 2 and 3, with shards."""

import numcodecs
import numpy as np
import pytest
import zarr
from formats import elements, fill, same, stat, table, variables
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

TYPES = ["i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", "<u8", ">f4", "<f8"]
V2 = {
    "none": None,
    "zlib": numcodecs.Zlib(),
    "gzip": numcodecs.GZip(),
    "zstd": numcodecs.Zstd(),
    "zstd with checksums": numcodecs.Zstd(checksum=True),
    "lz4": numcodecs.LZ4(),
    **{
        f"blosc {codec} {shuffle}": numcodecs.Blosc(cname=codec, shuffle=shuffle)
        for codec in ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
        for shuffle in (0, 1, 2)
    },
}
V3 = {
    "none": [],
    "gzip": [GzipCodec()],
    "zstd": [ZstdCodec(level=3, checksum=True)],
    "blosc": [BloscCodec(cname="lz4", shuffle="bitshuffle")],
    "gzip, crc32c": [GzipCodec(), Crc32cCodec()],
}


def some(shape, dtype="<f4"):
    values = np.random.default_rng(3).integers(0, 100, shape)
    return values.astype(dtype)


def check(grist, path, name, array):
    ours = table(grist, path, name)
    assert ours["shape"] == list(array.shape) and ours["chunk"] == list(array.chunks)
    same(elements(grist, path, name), array[...])
    return ours


@pytest.mark.parametrize("codec", V2)
@pytest.mark.parametrize("order", ["C", "F"])
def test_version_2(grist, tmp_path, codec, order):
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    for dtype in TYPES:
        name = f"g/{np.dtype(dtype).str[1:]}"
        array = root.create_array(
            name, shape=(23, 17), chunks=(5, 6), dtype=dtype, compressors=V2[codec], order=order, fill_value=3
        )
        array[2:20] = some((18, 17), dtype)
    large = root.create_array("large", shape=(200_000,), chunks=(90_000,), dtype="<f8", compressors=V2[codec])
    large[:] = some(200_000, "<f8")
    for name, array in [(f"g/{np.dtype(t).str[1:]}", root[f"g/{np.dtype(t).str[1:]}"]) for t in TYPES] + [("large", large)]:
        ours = check(grist, tmp_path / "a.zarr", name, array)
        for file, offset, size, _ in ours["places"].values():
            assert offset == 0 and (tmp_path / "a.zarr" / file).stat().st_size == size
    ours = table(grist, tmp_path / "a.zarr", "g/i4")
    assert fill(ours) == 3 and ours["stored_chunks"] <= ours["chunks"] == 15


@pytest.mark.parametrize("codec", V3)
@pytest.mark.parametrize("shards", [None, (20, 12)])
def test_version_3(grist, tmp_path, codec, shards):
    root = zarr.open_group(tmp_path / "a.zarr", mode="w", attributes={"title": "t"})
    for dtype in TYPES:
        dtype = np.dtype(dtype)
        array = root.create_array(
            f"g/{dtype.name}", shape=(23, 17), chunks=(5, 6), shards=shards, dtype=dtype, compressors=V3[codec],
            serializer=BytesCodec(endian="big"), fill_value=3, dimension_names=("y", "x"),
        )  # fmt: skip
        array[2:14] = some((12, 17), dtype)
    path = tmp_path / "a.zarr"
    assert stat(grist, path)["format"] == "Zarr v3" and stat(grist, path)["attributes"] == {"title": "t"}
    for dtype in TYPES:
        name = f"g/{np.dtype(dtype).name}"
        ours = check(grist, path, name, root[name])
        assert ours["dimensions"] == ["y", "x"] and ours["stored_chunks"] < ours["chunks"]
        for file, offset, size, _ in ours["places"].values():
            assert offset + size <= (path / file).stat().st_size


@pytest.mark.parametrize("where", ["start", "end"])
def test_indexes_of_shards_on_either_side(grist, tmp_path, where):
    from zarr.codecs import ShardingCodec, ShardingCodecIndexLocation

    codec = ShardingCodec(chunk_shape=(3,), codecs=[BytesCodec(), GzipCodec()], index_location=ShardingCodecIndexLocation(where))
    array = zarr.create(
        store=tmp_path / "a.zarr", shape=(50,), chunks=(12,), dtype="<i4", codecs=[codec], fill_value=-1, zarr_format=3
    )
    array[:20] = some(20, "<i4")
    ours = table(grist, tmp_path / "a.zarr", "data")
    assert ours["chunk"] == [3] and ours["chunks"] == 17
    same(elements(grist, tmp_path / "a.zarr", "data"), array[:])
    shard = next((tmp_path / "a.zarr" / "c").iterdir())
    data = shard.read_bytes()
    damaged = bytearray(data)
    damaged[0 if where == "start" else -5] ^= 1
    shard.write_bytes(damaged)
    assert "checksum" in grist.refuses(1, "stat", tmp_path / "a.zarr", "--var", "data", "--chunks")
    shard.write_bytes(data[:10])
    assert "truncated" in grist.refuses(1, "stat", tmp_path / "a.zarr", "--var", "data", "--chunks")


def test_axes_in_another_order(grist, tmp_path):
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=(7, 8, 9), chunks=(2, 3, 4), dtype="<i4",
        filters=[TransposeCodec(order=(2, 0, 1))], fill_value=0,
    )  # fmt: skip
    array[...] = some((7, 8, 9), "<i4")
    check(grist, tmp_path / "a.zarr", "data", array)


def test_scalars_empty_arrays_and_other_keys(grist, tmp_path):
    path = tmp_path / "a.zarr"
    for version in (2, 3):
        root = zarr.open_group(path, mode="w", zarr_format=version)
        root.create_array("scalar", shape=(), dtype="<f8")[...] = 2.5
        root.create_array("empty", shape=(0, 3), chunks=(1, 3), dtype="<f8")
        dots = {"name": "v2", "separator": "."} if version == 3 else {"name": "v2", "separator": "/"}
        root.create_array("keys", shape=(5, 5), chunks=(2, 2), dtype="<i4", chunk_key_encoding=dots)[...] = some((5, 5), "<i4")
        root.create_array("words", shape=(2,), dtype="U4")
        for name in ("scalar", "empty", "keys"):
            check(grist, path, name, root[name])
        assert variables(grist, path)["words"]["type"] is None


def test_what_is_not_supported_is_named(grist, tmp_path):
    path = tmp_path / "a.zarr"
    root = zarr.open_group(path, mode="w", zarr_format=2)
    root.create_array("delta", shape=(4,), dtype="<i4", filters=[numcodecs.Delta("<i4")])[...] = 1
    root.create_array("bz2", shape=(4,), dtype="<i4", compressors=numcodecs.BZ2())[...] = 1
    for name in ("delta", "bz2"):
        assert name in grist.refuses(1, "get", path, "-", "--var", name)
    (path / "bz2" / ".zarray").write_text("{")
    assert '"unreadable"' in grist.ok("stat", path, "--json").decode()


def test_a_damaged_chunk(grist, tmp_path):
    path = tmp_path / "a.zarr"
    array = zarr.create_array(path, shape=(100,), chunks=(50,), dtype="<i4", zarr_format=2, compressors=numcodecs.Zlib())
    array[...] = some(100, "<i4")
    (path / "1").write_bytes((path / "1").read_bytes()[:-4])
    done = grist("get", path, tmp_path / "out.npy", "--var", "data")
    assert done.returncode == 1 and b"damaged" in done.stderr
    assert not (tmp_path / "out.npy").exists()
