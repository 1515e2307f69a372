"""Compares an older build of Gristmill with the present one: which common commands became slower?

    git worktree add ../before COMMIT && (cd ../before && cargo build --release -p gristmill)
    python bench/before.py --before ../before/target/release/gristmill

Both commands do the same tasks in turns: kernels over a plain file, a variable of a netCDF file, and the same on a cluster of four
nodes that each build has for itself. There they also copy large and small files, and run a request over a few bytes. The time of a
kernel is that of its report. All other times are from the start of the command to its end.
"""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import xarray as xr

import data
import pairs
from cluster import GRISTMILL, Nodes, output_of

SIZE, QUICK_SIZE = 512 * data.MIB, 8 * data.MIB
NODES = 4
GOAL = 1.03

# The number of files in a folder that is put, and the bytes of each.
SMALL_FILES, SMALL_BYTES = 200, 4096

# Kernels over numbers and over text, with their parameters.
NUMBERS = {
    "sum": (), "minmax": (), "var": (), "histogram": ("bins=50", "range=-5:5"), "lookup": ("where=> 5",), "median": (),
    "kmeans": ("dims=8", "k=8", "init=first", "max_iter=2", "tol=0"),
}  # fmt: skip
TEXT = {"wc": (), "grep": (f"pattern={data.LITERAL}", "count_only=true")}


class Build:
    """One of the two builds, with its own nodes."""

    def __init__(self, binary, options, files):
        self.binary, self.files = binary, files
        self.nodes = Nodes(binary, options.data, NODES)
        self.url = f"grist://{self.nodes.address}/"
        for name, path in files.items():
            self.command("put", path, f"{self.url}{name}")
        for number in range(NODES):
            self.command("put", files["tiny"], f"{self.url}tiny{number}", "--on", number)

    def command(self, *args):
        return output_of(self.binary, *args)

    def kernel(self, kernel, path, *how, params=()):
        """The seconds of a request, and its answer."""
        given = [word for param in params for word in ("--param", param)]
        answer = json.loads(self.command("run", kernel, path, *how, *given, "--json"))
        return answer["report"]["elapsed_seconds"], answer["result"]

    def timed(self, *args):
        begun = time.perf_counter()
        self.command(*args)
        return time.perf_counter() - begun


def tasks(files, folder):
    """The tasks of each build: {name: function}. A function takes a build and returns seconds and the answer. The answers of both
    builds must agree."""
    found = {}
    for name, params in {**NUMBERS, **TEXT}.items():
        file, how = ("numbers", ("--type", "f64")) if name in NUMBERS else ("text", ())

        def here(build, name=name, params=params, file=file, how=how):
            return build.kernel(name, files[file], *how, params=params)

        def there(build, name=name, params=params, file=file, how=how):
            return build.kernel(name, f"{build.url}{file}", *how, "--place", "storage", params=params)

        found[f"{name}, here"], found[f"{name}, nodes"] = here, there
    for axes in ("time", "lat,lon"):
        found[f"mean over {axes}, here"] = lambda build, axes=axes: build.kernel(
            "mean", files["field.nc"], "--var", "v", "--axes", axes
        )
        found[f"mean over {axes}, nodes"] = lambda build, axes=axes: build.kernel(
            "mean", f"{build.url}field.nc", "--var", "v", "--axes", axes, "--place", "storage", "--no-statistics"
        )
    found["put"] = lambda build: (build.timed("put", files["numbers"], f"{build.url}again"), None)
    found["get"] = lambda build: (build.timed("get", f"{build.url}numbers", folder / "back"), None)
    found["put of a folder"] = lambda build: (build.timed("put", folder / "small", f"{build.url}small/"), None)
    found["ls"] = lambda build: (build.timed("ls", build.url), None)

    def tiny(build):
        """The seconds of requests about a small file on each node. The node that opens files answers faster than the others. With one
        file, the node that has it would decide the ratio."""
        how = ("--type", "u8", "--place", "storage")
        each = [build.kernel("count", f"{build.url}tiny{number}", *how) for number in range(NODES)]
        return sum(seconds for seconds, _ in each), [answer for _, answer in each]

    found["count of 8 bytes on each node"] = tiny
    return found


def bytes_of(name, files):
    """The number of bytes that a task reads or writes."""
    kernel = name.partition(",")[0]
    if kernel in TEXT:
        return files["text"].stat().st_size
    if kernel.startswith("mean over"):
        return files["field.nc"].stat().st_size
    if kernel in NUMBERS or name in ("put", "get"):
        return files["numbers"].stat().st_size
    return SMALL_FILES * SMALL_BYTES if name == "put of a folder" else 8 * NODES


def field(path, size):
    """Writes a variable in chunks, half as large as the other files."""
    rng = np.random.default_rng(3)
    shape = (max(8, size // 2 // (256 * 512 * 4)), 256, 512)
    values = rng.normal(280, 10, shape).astype("f4")
    xr.Dataset({"v": (("time", "lat", "lon"), values)}).to_netcdf(
        path, encoding={"v": {"chunksizes": (4, 128, 256)}}, engine="netcdf4"
    )
    return path


def main():
    before = {"type": Path, "required": True, "help": "the gristmill of the older build"}
    options = pairs.arguments(__doc__.splitlines()[0], size=pairs.SIZE, gristmill=GRISTMILL, before=before)
    size = options.size or (QUICK_SIZE if options.quick else SIZE)
    folder = Path(tempfile.mkdtemp(prefix="before-", dir=options.data))
    (folder / "small").mkdir()
    for number in range(SMALL_FILES):
        (folder / "small" / f"{number}").write_bytes(bytes(SMALL_BYTES))
    (folder / "tiny").write_bytes(b"12345678")
    files = {
        "numbers": data.make(options.data, "normal", size), "text": data.make(options.data, "text", size // 4),
        "field.nc": field(folder / "field.nc", size), "tiny": folder / "tiny",
    }  # fmt: skip
    builds, found, times, sizes = {}, [], {}, {}
    try:
        for side, binary in (("before", options.before), ("now", options.gristmill)):
            builds[side] = Build(binary.resolve(), options, files)
        pairs.warm(*files.values(), *(build.nodes.directory for build in builds.values()))
        for name, task in tasks(files, folder).items():
            answers = {}

            def side(which, task=task, answers=answers):
                def one():
                    seconds, answers[which] = task(builds[which])
                    return seconds

                return one

            of_task = pairs.rounds({which: side(which) for which in builds}, options.rounds)
            pairs.require(answers["before"] == answers["now"], f"{name}: {answers}")
            times |= {f"{name}: {which}": seconds for which, seconds in of_task.items()}
            sizes |= {f"{name}: {which}": bytes_of(name, files) for which in builds}
            found.append(pairs.ratio(times, f"{name}: now", f"{name}: before", GOAL))
            print(found[-1].line(), file=sys.stderr, flush=True)
    finally:
        for build in builds.values():
            build.nodes.stop()
        shutil.rmtree(folder)
    middle = float(np.median([one.median for one in found]))
    pairs.report("before", "The present build beside an older one", options, times, sizes, found, f"in the middle {middle:.3f}")


if __name__ == "__main__":
    main()
