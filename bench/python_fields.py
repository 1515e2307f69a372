"""Reductions in xarray of local netCDF files: with `gristmill.open_dataset`, and with xarray's own readers.

Each side runs in this process, which has imported everything, on all cores of the machine. The time is from opening the file to an
answer in memory. Gristmill remembers answers only while a file is open, so each round reduces the file anew.
"""

import warnings

import netCDF4  # noqa: F401, before anything is timed
import numpy as np
import xarray as xr

import data
import field_numpy
import fields
import gristmill
import pairs
from field_numpy import ALL, SOME

ROUNDS = 5

# The size of a decoded variable in bytes. It is smaller where decoding takes longest.
SIZE, SIZE_DEFLATE, QUICK_SIZE = data.GIB, 512 * data.MIB, 4 * data.MIB

# How many times as long as xarray a reduction may take.
GOAL = 1.1

OPENED = {"gristmill": gristmill.open_dataset, "xarray": xr.open_dataset}


def answer(opened, path, asked):
    with warnings.catch_warnings():
        # NumPy warns of cells over land, which have no values.
        warnings.simplefilter("ignore", RuntimeWarning)
        with OPENED[opened](path) as dataset:
            variable = dataset[fields.VARIABLE]
            found = getattr(variable, asked.op)("time" if asked.times_only else None)
            return found.values


def measure(options, layout, size):
    path = fields.make(options.data, layout, size)
    questions = SOME if options.quick or "deflate" in layout else ALL
    truths = field_numpy.truths(path, fields.VARIABLE, questions)
    times = fields.times_of(layout, size)
    for asked, truth in truths.items():
        ours, theirs = answer("gristmill", path, asked), answer("xarray", path, asked)
        what = f"{layout}, {asked.name}"
        pairs.require(ours.dtype == theirs.dtype, f"{what}: {ours.dtype} instead of {theirs.dtype}")
        pairs.require(bool((np.isnan(ours) == np.isnan(theirs)).all()), f"{what}: NaN elsewhere")
        far = field_numpy.ulps(ours, truth.astype(ours.dtype))
        pairs.require(far <= field_numpy.ULPS, f"{what}: {far} ulps from what is true")
        # xarray's sum of so many f32 in f32 is wrong in the fourth digit.
        near = np.allclose(theirs, truth, rtol=1e-3, equal_nan=True) or times < 2
        pairs.require(near, f"{what}, xarray: {theirs} instead of {truth}")
    pairs.warm(path)
    sides = {
        f"{opened}, {asked.name}": pairs.timed(lambda opened=opened, asked=asked: answer(opened, path, asked))
        for asked in questions
        for opened in OPENED
    }
    found = pairs.rounds(sides, options.rounds)
    ratios = [
        pairs.ratio(found, f"gristmill, {asked.name}", f"xarray, {asked.name}", GOAL) for asked in questions
    ]
    title = f"xarray, variables of {data.size_name(size)} decoded: {fields.LAYOUTS[layout].about}"
    note = f"xarray {xr.__version__}, NumPy {np.__version__}, netCDF4 {netCDF4.__version__}"
    bytes_ = dict.fromkeys(found, fields.decoded_bytes(layout, size))
    pairs.report(f"python_fields_{layout}", title, options, found, bytes_, ratios, note)


def main():
    options = pairs.arguments(
        __doc__.split("\n")[0],
        min_rounds=ROUNDS,
        quick_rounds=1,
        size={"type": data.parse_size, "help": "bytes decoded (default: 1GiB, 512MiB with deflate; --quick: 4MiB)"},
        layout={"choices": list(fields.LAYOUTS), "help": "only this one (default: one after the other)"},
    )
    for layout in [options.layout] if options.layout else fields.LAYOUTS:
        full = SIZE_DEFLATE if "deflate" in layout else SIZE
        size = options.size or (QUICK_SIZE if options.quick else full)
        measure(options, layout, size)


if __name__ == "__main__":
    main()
