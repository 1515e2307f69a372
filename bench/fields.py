"""Fields of daily temperatures over a grid of one degree, as netCDF files for the programs over variables.

    python bench/fields.py [--dir DIR] [--size 1GiB] [LAYOUT ...]

A field is the sum of a gradient from the equator to the poles, a yearly cycle, moving waves and noise. It is rounded to 12 bits
after the binary point, as in many archives, so that deflate leaves 36 % of it. Land has no values. Besides, some swaths are
missing each day. The size of a file is that of its decoded values. The same size gives the same values with every installation of
this NumPy version. A shorter file is the beginning of a longer one.
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import netCDF4
import numpy as np

import data

VARIABLE = "tas"
LATITUDES, LONGITUDES = 180, 360
CELLS = LATITUDES * LONGITUDES

# How many times are made at once. Each piece has its own generator, so pieces can be made one by one.
PIECE_TIMES = 16
SEED = 11

# Parts of the grid without values: land, and swaths of so many degrees on a day.
LAND = 0.3
SWATH, SWATHS = 10, 0.02

NOISE = 0.5
STEP = 1 / 4096
FILL = np.float32(1e20)

# The attributes of packed values. The offset is in the middle of the values.
SCALE, OFFSET, PACKED_FILL = 0.01, 273.15, np.int16(-32767)

# A chunk of f32 has 1 MiB, and one of i16 half of that.
CHUNK = (16, 90, 180)
DEFLATE = {"zlib": True, "complevel": 4, "shuffle": True}


@dataclass(frozen=True)
class Layout:
    """How a field is stored in a file. `decoded` is the type of its decoded values."""

    about: str
    format: str
    type: str
    decoded: str
    fill: object
    how: dict


LAYOUTS = {
    "classic": Layout("f32, classic netCDF, contiguous", "NETCDF3_64BIT_OFFSET", "f4", "f4", FILL, {}),
    "chunked": Layout(
        "f32 with NaN, netCDF-4, chunks of 1 MiB", "NETCDF4", "f4", "f4", np.float32("nan"), {"chunksizes": CHUNK}
    ),
    "deflate": Layout(
        "f32, netCDF-4, deflate 4 and shuffle", "NETCDF4", "f4", "f4", FILL, {"chunksizes": CHUNK, **DEFLATE}
    ),
    "packed": Layout("i16 with scale and offset, classic netCDF", "NETCDF3_64BIT_OFFSET", "i2", "f8", PACKED_FILL, {}),
    "packed-deflate": Layout(
        "i16 with scale and offset, deflate 4", "NETCDF4", "i2", "f8", PACKED_FILL, {"chunksizes": CHUNK, **DEFLATE}
    ),
}


def land():
    """The cells without values: those where the sum of a few smooth waves is highest."""
    lat, lon = np.meshgrid(np.linspace(-1, 1, LATITUDES), np.linspace(0, 2 * np.pi, LONGITUDES), indexing="ij")
    height = np.sin(2 * lon + 0.5) * np.cos(2 * lat) + 0.6 * np.sin(3 * lon - 4 * lat) + 0.4 * np.cos(5 * lon + 7 * lat)
    return height > np.quantile(height, 1 - LAND)


def piece(number):
    """Temperatures in kelvin at PIECE_TIMES times as f32, and a mask of the missing ones."""
    rng = np.random.default_rng([SEED, number])
    day = np.arange(number * PIECE_TIMES, (number + 1) * PIECE_TIMES, dtype=np.float32)[:, None, None]
    lat = np.linspace(-90, 90, LATITUDES, dtype=np.float32)[None, :, None] * np.float32(np.pi / 180)
    lon = np.linspace(0, 2 * np.pi, LONGITUDES, endpoint=False, dtype=np.float32)[None, None, :]
    year = np.sin(day * np.float32(2 * np.pi / 365)) * np.sin(lat)
    waves = np.sin(4 * lon - day / 5) * np.cos(lat) ** 2 + np.cos(7 * lon + day / 3) * np.cos(2 * lat)
    values = 255 + 45 * np.cos(lat) ** 2 + 12 * year + 3 * waves
    values += NOISE * rng.standard_normal(values.shape, dtype=np.float32)
    values = np.round(values / np.float32(STEP)) * np.float32(STEP)
    coarse = rng.random((PIECE_TIMES, LATITUDES // SWATH, LONGITUDES // SWATH)) < SWATHS
    missing = coarse.repeat(SWATH, axis=1).repeat(SWATH, axis=2)
    return values.astype(np.float32), missing


def times_of(layout, size):
    """The number of times in a file of this size, at least one piece."""
    return max(PIECE_TIMES, size // (CELLS * np.dtype(LAYOUTS[layout].decoded).itemsize))


def decoded_bytes(layout, size):
    return times_of(layout, size) * CELLS * np.dtype(LAYOUTS[layout].decoded).itemsize


def stored(layout, values, missing):
    """The values in the form in which a file of this layout has them."""
    if layout.type == "i2":
        values = np.round((values - OFFSET) / SCALE).astype(np.int16)
    return np.where(missing, layout.fill, values).astype(layout.type)


def make(directory, layout, size):
    """The path of a file of this layout and size. The file is made if it is missing."""
    how = LAYOUTS[layout]
    path = Path(directory) / f"field-{layout}-{data.size_name(size)}.nc"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    times, dry = times_of(layout, size), land()
    with netCDF4.Dataset(part, "w", format=how.format) as file:
        for name, length in (("time", times), ("lat", LATITUDES), ("lon", LONGITUDES)):
            file.createDimension(name, length)
        coordinates = {"time": np.arange(times) + 0.5, "lat": np.arange(-89.5, 90), "lon": np.arange(0.5, 360)}
        for name, values in coordinates.items():
            file.createVariable(name, "f8", (name,))[:] = values
        file["time"].units = "days since 2001-01-01"
        variable = file.createVariable(VARIABLE, how.type, ("time", "lat", "lon"), fill_value=how.fill, **how.how)
        variable.set_auto_maskandscale(False)
        variable.units = "K"
        if how.type == "i2":
            variable.scale_factor, variable.add_offset = SCALE, OFFSET
        for at in range(0, times, PIECE_TIMES):
            values, missing = piece(at // PIECE_TIMES)
            count = min(PIECE_TIMES, times - at)
            variable[at : at + count] = stored(how, values, missing | dry)[:count]
    with open(part, "rb") as written:
        # The data must not be written back in the middle of a measurement.
        os.fsync(written.fileno())
    os.replace(part, path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dir", type=Path, default=data.DEFAULT_DIR, help="where to (default: %(default)s)")
    parser.add_argument("--size", type=data.parse_size, default=data.GIB, help="bytes, decoded (default: 1GiB)")
    parser.add_argument("layouts", nargs="*", metavar="LAYOUT", help=f"of {', '.join(LAYOUTS)} (default: all)")
    options = parser.parse_args()
    for layout in options.layouts or LAYOUTS:
        if layout not in LAYOUTS:
            parser.error(f"there is no layout {layout!r}; there are {', '.join(LAYOUTS)}")
        print(make(options.dir, layout, options.size), flush=True)


if __name__ == "__main__":
    main()
