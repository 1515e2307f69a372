"""A reduction of an array with ten thousand blocks in dask, compared with one request for the whole array.

The same graph over zeros in memory shows how much time dask itself takes.
"""

import dask
import dask.array as da
import numpy as np
import xarray as xr

import data
import gristmill
import pairs
from gristmill._pushdown import batches
from gristmill._variables import variable

ROUNDS = 5
SIZE, QUICK_SIZE = data.GIB, 16 * data.MIB

# The number of blocks along time, latitude and longitude.
BLOCKS, QUICK_BLOCKS = (25, 20, 20), (4, 5, 5)
LAT, LON = 100, 200

# How many times as long as one request the graph may take.
GOAL = 2.0

GRAPH, ONE, ZEROS = "graph of blocks", "one request", "graph over zeros"
ASKED = {"mean over time": lambda a: a.mean("dim_0"), "mean": lambda a: a.mean(), "std": lambda a: a.std()}


def make(folder, size):
    """Makes a file of f32 with NaN. Returns its path and shape."""
    shape = (size // (4 * LAT * LON), LAT, LON)
    path = folder / f"blocks-{data.size_name(size)}.npy"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        rng = np.random.default_rng(7)
        values = np.lib.format.open_memmap(path, "w+", np.float32, shape)
        for row in range(0, shape[0], 64):
            part = rng.normal(285, 10, values[row : row + 64].shape)
            part[rng.random(part.shape) < 0.1] = np.nan
            values[row : row + 64] = part
        values.flush()
    return path, shape


def forget():
    """Removes the answers that were remembered in the last round."""
    batches.forget()
    variable.answers.clear()


def main():
    options = pairs.arguments(
        __doc__.split("\n")[0],
        min_rounds=ROUNDS,
        quick_rounds=1,
        size={"type": data.parse_size, "help": "bytes of the file (default: 1GiB; --quick: 16MiB)"},
    )
    size = options.size or (QUICK_SIZE if options.quick else SIZE)
    path, shape = make(options.data, size)
    pairs.warm(path)
    counts = QUICK_BLOCKS if options.quick else BLOCKS
    chunks = dict(zip(("dim_0", "dim_1", "dim_2"), (-(-n // count) for n, count in zip(shape, counts))))
    eager = gristmill.open_dataset(path)["data"]
    graph = gristmill.open_dataset(path, chunks=chunks)["data"]
    zero = da.from_array(np.broadcast_to(np.float32(0), shape), graph.data.chunks, name="zeros")
    zeros = xr.DataArray(zero, dims=graph.dims)
    print(f"# {graph.data.npartitions} blocks of {data.size_name(size)} ({pairs.described(options)})")
    print(f"# dask {dask.__version__}, xarray {xr.__version__}", flush=True)
    for name, asked in ASKED.items():
        forget()
        with gristmill.set_options(fallback="error"), gristmill.trace() as trace:
            got = asked(graph).compute()
        print(f"# {name}: {trace.requests} requests", flush=True)
        pairs.require(np.allclose(got, asked(eager), rtol=1e-6, equal_nan=True), f"{name}: blocks say {got}")

        def ours(of, asked=asked):
            forget()
            return asked(of).compute()

        sides = {
            f"{GRAPH}, {name}": pairs.timed(lambda ours=ours: ours(graph)),
            f"{ONE}, {name}": pairs.timed(lambda ours=ours: ours(eager)),
            f"{ZEROS}, {name}": pairs.timed(lambda asked=asked: asked(zeros).compute()),
        }
        times = pairs.rounds(sides, options.rounds)
        ratios = [
            pairs.ratio(times, f"{GRAPH}, {name}", f"{ONE}, {name}", GOAL),
            pairs.ratio(times, f"{GRAPH}, {name}", f"{ZEROS}, {name}"),
        ]
        pairs.report(
            f"python_blocks_{name.replace(' ', '_')}",
            f"{graph.data.npartitions} blocks, {name}",
            options,
            times,
            dict.fromkeys(times, size),
            ratios,
        )


if __name__ == "__main__":
    main()
