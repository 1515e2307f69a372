"""Random variables in the form in which files have them: elements, attributes for decoding, chunks and codecs."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .values import elements

#: What each format can store.
TYPES = {
    "NETCDF3_CLASSIC": "i1 i2 i4 f4 f8".split(),
    "NETCDF3_64BIT_DATA": "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8".split(),
    "NETCDF4": "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 bool".split(),
    "zarr2": "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 bool".split(),
    "zarr3": "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 bool".split(),
}
CODECS = {
    "NETCDF4": ["{}", "{}", "{'zlib': True}", "{'zlib': True, 'shuffle': True, 'complevel': 1}", "{'fletcher32': True}"],
    "zarr2": [
        "{}",
        "{'compressors': None}",
        "{'compressors': [numcodecs.Zlib(1)]}",
        "{'compressors': [numcodecs.LZ4()]}",
        "{'compressors': [numcodecs.Blosc('lz4', 3, numcodecs.Blosc.BITSHUFFLE)]}",
    ],
    "zarr3": [
        "{}",
        "{'compressors': None}",
        "{'compressors': [zarr.codecs.GzipCodec(level=1)]}",
        "{'compressors': [zarr.codecs.BloscCodec(cname='zstd', shuffle='shuffle')]}",
        "{'compressors': [zarr.codecs.ZstdCodec(level=1)]}",
        "sharded",
    ],
}


@dataclass(frozen=True)
class Stored:
    """A variable as it is in a file."""

    name: str
    dims: tuple[str, ...]
    values: Any
    attrs: dict[str, Any] = field(default_factory=dict)
    chunks: tuple[int, ...] | None = None
    codec: str = "{}"


def variable(rng, choose, form, name, dims, sizes):
    """A variable of data."""
    dtype = np.dtype(choose.choice(TYPES[form] + ["f4", "f8", "f8"]))
    shape = tuple(sizes[dim] for dim in dims)
    values = elements(rng, choose, shape, dtype)
    made = Stored(name, dims, values)
    if dtype.kind in "iu":
        made = packed(rng, choose, made)
    elif dtype.kind == "f" and choose.random() < 0.3:
        made = filled(rng, choose, made)
        if choose.random() < 0.3:
            kind = choose.choice([np.float64, np.float32])
            made = replace(made, attrs=made.attrs | {"scale_factor": kind(choose.choice([0.1, 2.0, 1e-7]))})
    more = {}
    if choose.random() < 0.3:
        more["units"] = choose.choice(["K", "m s-1", "1"])
    if choose.random() < 0.05:
        more["missing_number"] = choose.choice([np.nan, np.inf, -1.5])
    if choose.random() < 0.1 and dtype.kind != "b":
        more["valid_range"] = np.array([0, 100], dtype)
    made = replace(made, attrs=made.attrs | more)
    return stored(choose, form, made)


def filled(rng, choose, made):
    """Adds missing elements, which a fill value stands for."""
    dtype = made.values.dtype
    fill = dtype.type(choose.choice([1e20, -999.0, 9.96921e36, 0.0]))
    values = np.where(rng.random(made.values.shape) < 0.2, fill, made.values)
    names = choose.choice([["_FillValue"], ["missing_value"], ["_FillValue", "missing_value"]])
    return replace(made, values=values.astype(dtype), attrs=dict.fromkeys(names, fill))


def packed(rng, choose, made):
    """Integers, some with missing elements, some with a scale and an offset."""
    dtype = made.values.dtype
    attrs = {}
    values = made.values
    if choose.random() < 0.4:
        fill = dtype.type(choose.choice([np.iinfo(dtype).min, np.iinfo(dtype).max, 1]))
        values = np.where(rng.random(values.shape) < choose.choice([0.1, 0.3, 1]), fill, values).astype(dtype)
        attrs[choose.choice(["_FillValue", "_FillValue", "missing_value"])] = fill
    if choose.random() < 0.35 and dtype.itemsize < 8:
        # xarray itself cannot read integers with an integer scale if some of them are missing.
        kind = choose.choice([np.float64, np.float64, np.float32, np.float64 if attrs else np.int16])
        attrs["scale_factor"] = kind(choose.choice([0.01, 0.5, 2.0, 1e-3]) if kind is not np.int16 else 3)
        if choose.random() < 0.6:
            attrs["add_offset"] = kind(choose.choice([0.0, 273.15, -5.0, 100.0]))
    if choose.random() < 0.1 and dtype.itemsize < 8 and "missing_value" not in attrs:
        attrs["_Unsigned"] = "true" if dtype.kind == "i" else "false"
    return replace(made, values=values, attrs=attrs)


def stored(choose, form, made):
    """Adds chunks and codecs if the format has them."""
    if form not in CODECS or not made.dims:
        return made
    if form == "NETCDF4" and choose.random() < 0.25:
        return made
    chunks = tuple(choose.randint(1, max(1, size)) for size in made.values.shape)
    codec = choose.choice(CODECS[form])
    if codec == "sharded":
        codec = f"{{'shards': {tuple(n * choose.randint(1, 3) for n in chunks)!r}}}"
    return replace(made, chunks=chunks, codec=codec)
