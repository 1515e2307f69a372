"""One request over 2,048 chunks of 64 KiB, in one netCDF-4 file and as a Zarr folder, on storage nodes.

The goal is for the whole command. The time of the request alone, from its report, is compared with it too. In the same rounds run
the same reduction by Gristmill without nodes, and by netCDF4-python or zarr-python with NumPy in a process that has imported
everything. If the command refuses, the program prints the reason, and the goal counts as not reached.
"""

import contextlib
import shutil
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import netCDF4
import numpy as np
import zarr

import command
import data
import field_numpy
import pairs
from cluster import GRISTMILL, Nodes
from command import Refused
from field_numpy import MEAN

NODE_COUNTS = (2, 4)
ROUNDS = 10
GOAL = 0.2

NAME, DIMENSIONS = "v", ("time", "y", "x")
# A chunk is 64 KiB of f32. There are 16 x 8 x 16 chunks, and 2 x 4 x 8 with --quick.
CHUNK = (64, 16, 16)
SHAPE, QUICK_SHAPE = (1024, 128, 256), (128, 64, 128)
MISSING = 0.3
SEED = 12

NETCDF, ZARR = "netCDF-4", "Zarr"


def values(shape):
    """A wave with noise. Missing elements are NaN."""
    rng = np.random.default_rng(SEED)
    time, y, x = (np.linspace(0, 7, length, dtype=np.float32) for length in shape)
    wave = np.sin(time[:, None, None]) + np.cos(y[None, :, None]) * np.sin(x[None, None, :])
    found = 285 + 10 * wave + rng.standard_normal(shape, dtype=np.float32)
    found[rng.random(shape, dtype=np.float32) < MISSING] = np.nan
    return found


def make_netcdf(path, found):
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip(DIMENSIONS, found.shape):
            file.createDimension(name, length)
        file.createVariable(NAME, "f4", DIMENSIONS, chunksizes=CHUNK, fill_value=np.float32("nan"))[:] = found


def make_zarr(path, found):
    """A store of version 2 as xarray writes it: the files of all chunks lie in one folder."""
    group = zarr.create_group(path, zarr_format=2)
    attributes = {"_ARRAY_DIMENSIONS": list(DIMENSIONS)}
    how = {"chunks": CHUNK, "compressors": None, "fill_value": np.nan, "attributes": attributes}
    group.create_array(NAME, shape=found.shape, dtype="f4", **how)[:] = found


MAKERS = {NETCDF: make_netcdf, ZARR: make_zarr}


def make(directory, kind, shape):
    """The path of the file or folder of this kind. It is made if it is missing."""
    ending = {NETCDF: "nc", ZARR: "zarr"}[kind]
    path = Path(directory) / f"chunks-{'x'.join(map(str, shape))}.{ending}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"part-{path.name}")
        shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)
        MAKERS[kind](part, values(shape))
        part.rename(path)
    return path


def put(binary, path, root):
    """Copies a file, or a folder with all its contents, to storage nodes."""
    if path.is_file():
        return command.put(binary, [path], f"{root}/{path.name}")
    for folder in [path, *(below for below in path.rglob("*") if below.is_dir())]:
        if files := sorted(file for file in folder.iterdir() if file.is_file()):
            command.put(binary, files, f"{root}/{folder.relative_to(path.parent)}/")


def numpy_netcdf(path):
    return field_numpy.answer(path, NAME, field_numpy.with_nan, MEAN)


def numpy_zarr(path):
    return np.nanmean(zarr.open_group(path, mode="r")[NAME][:], axis=0)


NUMPY = {NETCDF: ("netCDF4 and NumPy", numpy_netcdf), ZARR: ("zarr-python and NumPy", numpy_zarr)}


def draw(path, title, times, judged, foot):
    figure, axes = plt.subplots(figsize=(11, 1.9 + 0.36 * len(times)), layout="constrained")
    axes.set_title(title)
    for y, (name, seconds) in enumerate(times.items()):
        axes.barh(y, np.median(seconds) * 1e3, color=pairs.FAINT, height=0.62)
        axes.plot(np.array(seconds) * 1e3, np.full(len(seconds), y), "o", color=pairs.DOT, ms=4, alpha=0.6)
        label = f"{np.median(seconds) * 1e3:,.0f}"
        axes.annotate(label, (1.01, y), xycoords=("axes fraction", "data"), va="center")
        if name in judged:
            axes.plot([GOAL * 1e3] * 2, [y - 0.4, y + 0.4], color=pairs.GOAL, lw=2)
    axes.set_yticks(range(len(times)), list(times))
    axes.set_ylim(len(times) - 0.4, -0.6)
    axes.set_xlim(0)
    axes.set_xlabel("milliseconds: bar is the median, dots are rounds, red mark is the goal")
    axes.grid(axis="x", color="#e3e3e3", lw=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(textwrap.fill(foot, 140), fontsize=8, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    options = pairs.arguments(__doc__.split("\n")[0], min_rounds=ROUNDS, quick_rounds=2, gristmill=GRISTMILL)
    shape = QUICK_SHAPE if options.quick else SHAPE
    paths = {kind: make(options.data, kind, shape) for kind in MAKERS}
    pairs.warm(*paths.values())
    truth = field_numpy.truths(paths[NETCDF], NAME, [MEAN])[MEAN]
    sides, judged, refused, inside, bases = {}, [], [], {}, {}
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(Nodes(options.gristmill, options.data, count)) for count in NODE_COUNTS]

        def ours(name, file):
            def run():
                answered = command.variable(options.gristmill, "mean", file, NAME, axes="time")
                far = field_numpy.ulps(answered.value, truth)
                pairs.require(far <= field_numpy.ULPS, f"{name}: {far} ulps from what is true")
                inside.setdefault(f"{name}, inside", []).append(answered.inside)
                return answered.seconds

            return run

        def theirs(kind):
            found = []
            seconds = pairs.timed(lambda: found.append(NUMPY[kind][1](paths[kind])))()
            pairs.require(field_numpy.near(found[0], truth, shape[0]), f"{NUMPY[kind][0]}: {found[0]}")
            return seconds

        for kind, path in paths.items():
            places = {}
            for each in nodes:
                put(options.gristmill, path, f"grist://{each.address}")
                places[f"{kind}, {each.count} nodes"] = f"grist://{each.address}/{path.name}"
            for name, file in {**places, f"{kind}, no nodes": path}.items():
                side = ours(name, file)
                try:
                    side()
                except Refused as why:
                    refused.append((name, why))
                    continue
                finally:
                    inside.pop(f"{name}, inside", None)
                sides[name] = side
                bases[name] = NUMPY[kind][0]
                judged += [name, f"{name}, inside"] if name in places else []
            sides[NUMPY[kind][0]] = lambda kind=kind: theirs(kind)
        times = pairs.rounds(sides, options.rounds)
    # The first round does not count.
    times |= {name: seconds[1:] for name, seconds in inside.items()}
    count = int(np.prod(np.array(shape) // np.array(CHUNK)))
    title = f"Mean over time of {count:,} chunks of 64 KiB in one request"
    print(f"# {title} ({pairs.described(options)})")
    for name, seconds in times.items():
        low, high = pairs.interval(seconds)
        line = f"{name}: {np.median(seconds) * 1e3:,.1f} ms [{low * 1e3:,.1f}, {high * 1e3:,.1f}]"
        if name in judged:
            line += f"  goal <= {GOAL * 1e3:g} ms: {'reached' if np.median(seconds) <= GOAL else 'NOT reached'}"
        print(line)
    print(f"# median of {options.rounds} paired ratios of times [95 % bootstrap interval]")
    for name, base in bases.items():
        print(pairs.ratio(times, name, base).line())
    for name, why in refused:
        print(f"{name}: NOT reached; {why}", flush=True)
    sizes = dict.fromkeys(times, int(np.prod(shape)) * 4)
    pairs.times_to_csv(options.results / "variables_chunks.csv", times, sizes)
    foot = pairs.footer(options, f"{data.size_name(int(np.prod(shape)) * 4)} of f32, not compressed; loopback")
    draw(options.results / "variables_chunks.png", title, {n: times[n] for n in sorted(times)}, judged, foot)


if __name__ == "__main__":
    main()
