"""HDF5 files of h5py: the chunk tables are those of the C library, and the elements are the same bit for bit."""

import h5py
import hdf5plugin
import numpy as np
import pytest
from formats import cut, elements, fill, same, stat, table, variables

LIBVER = ["earliest", "v110", "latest"]
# Shapes for which HDF5 chooses each kind of index, if the version of the format has it.
SHAPES = {
    "single": ((6, 5), (6, 5), (6, 5)),
    "fixed": ((20, 30), (20, 30), (3, 7)),
    "fixed shorter than it may be": ((20, 30), (50, 41), (3, 7)),
    "fixed in pages": ((9000,), (9000,), (2,)),
    "extensible": ((50, 9), (None, 9), (4, 4)),
    "extensible in the last axis": ((5, 60), (5, None), (2, 4)),
    "extensible and long": ((3000,), (None,), (2,)),
    "tree": ((13, 17), (None, None), (4, 5)),
    "larger than the data": ((3, 3), (None, None), (8, 8)),
}
FILTERS = {
    "none": {},
    "deflate": {"compression": "gzip"},
    "shuffle, deflate, checksum": {"shuffle": True, "compression": "gzip", "fletcher32": True},
    "checksum": {"fletcher32": True},
    "lzf": {"compression": "lzf", "shuffle": True},
    "szip": {"compression": "szip"},
    "zstd": dict(hdf5plugin.Zstd()),
    "lz4": dict(hdf5plugin.LZ4()),
    "lz4 in blocks": dict(hdf5plugin.LZ4(nbytes=64)),
    **{
        f"blosc {codec} {shuffle}": dict(hdf5plugin.Blosc(cname=codec, clevel=5, shuffle=shuffle))
        for codec in ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
        for shuffle in (0, 1, 2)
    },
}


def chunks(dataset) -> dict:
    """The chunks that the C library lists."""
    out = {}
    dataset.id.chunk_iter(
        lambda info: out.__setitem__(tuple(info.chunk_offset), ("", info.byte_offset, info.size, info.filter_mask))
    )
    return out


def swizzled(dataset) -> bool:
    """Whether HDF5 2.0 lists chunks at wrong coordinates: an extensible array whose unlimited axis is not the first.

    HDF5 numbers such chunks with the unlimited axis first, and its chunk_iter and get_chunk_info_by_coord ignore that."""
    new = dataset.file.libver[0] != "earliest" or dataset.file.id.get_create_plist().get_version()[0] > 0
    return new and dataset.maxshape.count(None) == 1 and dataset.maxshape[0] is not None


def check(grist, path, name, dataset):
    """Compares everything that the command says about a dataset with h5py."""
    ours = table(grist, path, name)
    assert ours["shape"] == list(dataset.shape)
    if dataset.chunks:
        assert ours["chunk"] == list(dataset.chunks)
        if swizzled(dataset):
            # HDF5 lists these chunks at wrong coordinates, so only their offsets are compared here. The elements are compared
            # below.
            assert sorted(ours["places"].values()) == sorted(chunks(dataset).values())
        else:
            assert ours["places"] == chunks(dataset)
        assert ours["stored_chunks"] == dataset.id.get_num_chunks()
    assert fill(ours).tobytes() == np.asarray(dataset.fillvalue, dataset.dtype.newbyteorder("<")).tobytes()
    same(elements(grist, path, name), dataset[()])


def some(shape, dtype="<f4", seed=1):
    """Numbers that compress a little, so that each codec changes them."""
    values = np.random.default_rng(seed).integers(0, 50, shape)
    return (values * (0.5 if np.dtype(dtype).kind == "f" else 1)).astype(dtype)


@pytest.mark.parametrize("libver", LIBVER)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("filters", ["none", "shuffle, deflate, checksum"])
def test_every_index(grist, tmp_path, libver, shape, filters):
    path = tmp_path / "a.h5"
    now, most, chunk = SHAPES[shape]
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("a", now, "<f4", chunks=chunk, maxshape=most, **FILTERS[filters])[...] = some(now)
        # Some chunks are missing, and one extends beyond the array.
        sparse = file.create_dataset(
            "g/sparse", now, ">i2", chunks=chunk, maxshape=most, fillvalue=-7, **FILTERS[filters]
        )
        sparse[-1:, ...] = some(now, ">i2")[-1:, ...]
        file.create_dataset("empty", now, "<u8", chunks=chunk, maxshape=most, fillvalue=2**64 - 1)
    with h5py.File(path) as file:
        for name in ("a", "g/sparse", "empty"):
            check(grist, path, name, file[name])


@pytest.mark.parametrize("libver", ["v110", "latest"])
def test_an_index_that_is_none(grist, tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((3, 4))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        for name, most in (("whole", (10, 10)), ("may grow", (20, 30))):
            space = h5py.h5s.create_simple((10, 10), most)
            made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_I32LE, space, plist)
            h5py.Dataset(made)[...] = some((10, 10), "<i4")
    with h5py.File(path) as file:
        for name in file:
            check(grist, path, name, file[name])


@pytest.mark.parametrize("filters", FILTERS)
def test_every_filter(grist, tmp_path, filters):
    path = tmp_path / "a.h5"
    options = FILTERS[filters]
    with h5py.File(path, "w") as file:
        for dtype in ("<f4", ">f8", "<i2", "|u1"):
            # Some chunks are small. Others are so large that blosc splits its blocks.
            file.create_dataset(f"{dtype[1:]} small", (33, 21), dtype, chunks=(8, 8), **options)[...] = some((33, 21), dtype)
            file.create_dataset(f"{dtype[1:]} large", (300_001,), dtype, chunks=(120_000,), **options)[...] = some(
                300_001, dtype
            )
        noise = np.random.default_rng(2).bytes(40_000)
        file.create_dataset("noise", (40_000,), "u1", chunks=(10_000,), **options)[...] = np.frombuffer(noise, "u1")
    with h5py.File(path) as file:
        for name in file:
            check(grist, path, name, file[name])


@pytest.mark.parametrize("libver", LIBVER)
def test_chunks_that_a_filter_was_left_out_of(grist, tmp_path, libver):
    path = tmp_path / "a.h5"
    plain = some((4,), "<i4")
    with h5py.File(path, "w", libver=libver) as file:
        dataset = file.create_dataset("a", (12,), "<i4", chunks=(4,), maxshape=(None,), shuffle=True, compression="gzip")
        dataset[...] = np.arange(12)
        dataset.id.write_direct_chunk((4,), plain.tobytes(), 0b11)
    with h5py.File(path) as file:
        check(grist, path, "a", file["a"])
    assert table(grist, path, "a")["places"][(4,)][3] == 0b11


@pytest.mark.parametrize("libver", LIBVER)
@pytest.mark.parametrize("block", [0, 512, 4096])
def test_contiguous_compact_scalar_and_empty_datasets(grist, tmp_path, libver, block):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=block) as file:
        file["contiguous"] = some((30, 40), ">f8")
        file["scalar"] = np.float32(2.5)
        file["empty"] = np.zeros((0, 3))
        file.create_dataset("never written", (5, 2), "<i8", fillvalue=9)
        file.create_dataset("no rows", (0, 4), "<i8", maxshape=(None, 4), chunks=(2, 4))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((5, 3))
        made = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I16BE, space, plist)
        h5py.Dataset(made)[...] = some((5, 3), ">i2")
        file.create_dataset("chunks", (5, 3), "<i4", chunks=(2, 2))[...] = some((5, 3), "<i4")
    with h5py.File(path) as file:
        for name in file:
            check(grist, path, name, file[name])
        offset, data = file["contiguous"].id.get_offset(), path.read_bytes()
    first = min(place[1] for place in table(grist, path, "contiguous")["places"].values())
    assert first == offset and block <= offset
    ours = table(grist, path, "compact")
    assert ours["storage"] == "compact" and ours["stored_chunks"] == 1
    for _, at, size, _ in ours["places"].values():
        same(np.frombuffer(data[at : at + size], ">i2").reshape(5, 3).astype("<i2"), some((5, 3), "<i2"))


def test_large_contiguous_data_is_cut_into_chunks_of_whole_rows(grist, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["a"] = some((50, 300, 70), "<f8")
    ours = table(grist, path, "a")
    assert ours["chunk"][1:] == [300, 70] and ours["chunks"] == -(-50 // ours["chunk"][0])
    with h5py.File(path) as file:
        check(grist, path, "a", file["a"])


@pytest.mark.parametrize("libver", LIBVER)
def test_data_that_became_shorter_and_longer(grist, tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        dataset = file.create_dataset("a", (20, 9), "<i4", chunks=(4, 4), maxshape=(None, 12), fillvalue=3)
        dataset[...] = some((20, 9), "<i4")
        dataset.resize((9, 6))
        dataset.resize((31, 11))
    with h5py.File(path) as file:
        check(grist, path, "a", file["a"])


@pytest.mark.parametrize("libver", LIBVER)
def test_many_names_groups_and_links(grist, tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for n in range(120):
            file[f"many/d{n:03}"] = np.int32(n)
        file["many/deeper/x"] = [1.0, 2.0]
        file["hard"] = file["many/deeper/x"]
        file["soft"] = h5py.SoftLink("/many/deeper/x")
        file["broken"] = h5py.SoftLink("/nowhere")
        file["round"] = h5py.SoftLink("/many")
        file["away"] = h5py.ExternalLink("other.h5", "/x")
        file["a type"] = np.dtype("<f4")
    ours = variables(grist, path)
    assert sorted(name for name in ours if name.startswith(("many/d", "round/d")) and name[-1].isdigit()) in (
        [f"many/d{n:03}" for n in range(120)],
        [f"round/d{n:03}" for n in range(120)],
    )
    assert {"hard", "soft", "away"} <= set(ours) and not {"broken", "a type"} & set(ours)
    same(elements(grist, path, "hard"), np.array([1.0, 2.0]))
    same(elements(grist, path, "/soft"), np.array([1.0, 2.0]))
    assert "other.h5" in ours["away"]["kind"]


def test_types_that_are_no_numbers_are_listed_and_refused_by_name(grist, tmp_path):
    path = tmp_path / "a.h5"
    others = {
        "text": np.array([b"ab", b"c"]),
        "strings": np.array(["a", "bc"], dtype=h5py.string_dtype()),
        "bools": np.array([True, False]),
        "half": np.arange(3, dtype="f2"),
        "complex": np.arange(3, dtype="c8"),
        "record": np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
        "opaque": np.zeros(2, dtype="V5"),
    }
    with h5py.File(path, "w") as file:
        for name, value in others.items():
            file[name] = value
        file.create_dataset("lists", (2,), dtype=h5py.vlen_dtype("i4"))
        file.create_dataset("names", data=[1, 0], dtype=h5py.enum_dtype({"no": 0, "yes": 1}, basetype="i1"))
        file.create_dataset("references", (2,), dtype=h5py.ref_dtype)
        file["null"] = h5py.Empty("f4")
        odd = h5py.h5t.STD_I32LE.copy()
        odd.set_precision(20)
        h5py.h5d.create(file.id, b"narrow", odd, h5py.h5s.create_simple((2,)))
        vax = h5py.h5t.IEEE_F32LE.copy()
        vax.set_ebias(100)
        h5py.h5d.create(file.id, b"biased", vax, h5py.h5s.create_simple((2,)))
        file["good"] = [1, 2]
    ours = variables(grist, path)
    words = {
        "text": "text of 2", "strings": "text of any", "bools": "boolean", "half": "16 bits", "complex": "complex",
        "record": "2 fields", "opaque": "opaque", "lists": "lists", "names": "enumeration", "references": "references",
        "null": "null", "narrow": "bits left out", "biased": "IEEE",
    }  # fmt: skip
    for name, word in words.items():
        assert word in ours[name]["kind"] and ours[name]["type"] is None, ours[name]
        message = grist.refuses(1, "get", path, "-", "--var", name)
        assert repr(name).replace("'", '"') in message and ours[name]["kind"] in message
    same(elements(grist, path, "good"), np.array([1, 2]))


def test_what_cannot_be_decoded_is_refused_by_name(grist, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("nbit", (4,), "<i4", chunks=(4,), scaleoffset=0)[...] = 1
        file.create_dataset("shuffled bits", (64,), "<i4", chunks=(64,), **hdf5plugin.Bitshuffle())[...] = 1
        file.create_dataset("two", (64,), "<i4", chunks=(64,), **hdf5plugin.Blosc2())[...] = 1
        file.create_dataset("away", (4,), "<i4", external=[("raw.bin", 0, 16)])
        layout = h5py.VirtualLayout((4,), "<i4")
        layout[:] = h5py.VirtualSource("other.h5", "a", (4,))
        file.create_virtual_dataset("virtual", layout)
        file["good"] = [1, 2]
    ours = variables(grist, path)
    words = {
        "nbit": "scaleoffset", "shuffled bits": "bitshuffle", "two": "blosc2", "away": "external", "virtual": "virtual",
    }  # fmt: skip
    for name, word in words.items():
        assert word in grist.refuses(1, "stat", path, "--var", name, "--chunks"), name
        assert word in ours[name].get("refused", "") + ours[name]["kind"]
    same(elements(grist, path, "good"), np.array([1, 2]))
    message = grist.refuses(2, "stat", path, "--var", "nosuch")
    assert "nosuch" in message and "good" in message


def test_attributes_keep_their_types(grist, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        data = file.create_dataset("a", (2,), "<f4")
        file.attrs["title"] = "Größe"
        data.attrs["units"] = np.bytes_(b"K")
        data.attrs["names"] = ["a", "bc"]
        data.attrs["offset"] = np.float32(0.1)
        data.attrs["range"] = np.array([-1, 2**40], ">i8")
        data.attrs["flag"] = np.uint8(255)
        data.attrs["matrix"] = np.zeros((2, 2))
        data.attrs["truth"] = True
        for n in range(40):
            data.attrs[f"n{n:02}"] = n
    ours = stat(grist, path)
    assert ours["attributes"] == {"title": "Größe"}
    (a,) = ours["variables"]
    a = a["attributes"]
    assert a["units"] == "K" and a["names"] == ["a", "bc"]
    assert a["offset"] == {"type": "f32", "value": float(np.float32(0.1))}
    assert a["range"] == {"type": "i64", "value": [-1, 2**40]}
    assert a["flag"] == {"type": "u8", "value": 255}
    assert "other" in a["matrix"] and "other" in a["truth"]
    assert [a[f"n{n:02}"]["value"] for n in range(40)] == list(range(40))


def test_truncated_and_damaged_files(grist, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", (40, 50), "<f8", chunks=(10, 50), compression="gzip", fletcher32=True)[...] = some((40, 50))
    places = table(grist, path, "a")["places"]
    last = max(place[1] for place in places.values())
    short = tmp_path / "short.h5"
    short.write_bytes(path.read_bytes()[: last + 3])
    assert "truncated" in grist.refuses(1, "get", short, "-", "--var", "a")
    assert b"unreadable" in grist.ok("stat", cut(path, path.stat().st_size - 60), "--json")
    data = bytearray(path.read_bytes())
    data[last + 7] ^= 1
    path.write_bytes(data)
    # The output begins before the damage is found. The command must fail and leave no file.
    done = grist("get", path, tmp_path / "out.npy", "--var", "a")
    assert done.returncode == 1 and b"damaged" in done.stderr and not (tmp_path / "out.npy").exists()


def test_get_makes_a_file_of_the_variable(grist, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["g/x"] = some((7, 5), ">f4")
    grist.ok("get", path, tmp_path / "x.npy", "--var", "g/x")
    same(np.load(tmp_path / "x.npy"), some((7, 5), "<f4"))
    text = grist.ok("stat", path, "--var", "g/x", "--chunks").decode()
    assert "g/x  f32 (g/phony_dim_0=7, g/phony_dim_1=5) big-endian, contiguous: 1 chunk of 7x5" in text and "chunk 0 at [0, 0]: bytes" in text


def test_one_dataset_that_cannot_be_used_leaves_the_others(grist, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["good"] = np.arange(4.0)
        file["large"] = np.arange(4.0)
        file["large"].attrs["notes"] = np.zeros(20 << 20, "u1")
    same(elements(grist, path, "good"), np.arange(4.0))


def test_names_do_nothing_to_a_terminal(grist, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["\x1b]0;title\x07\nname"] = np.arange(4.0)
    said = grist.ok("stat", path)
    assert b"\x1b" not in said and b"\x07" not in said and b" ]0;title  name" in said
