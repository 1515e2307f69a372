"""The ways to open a file: with Gristmill on this machine, in blocks of dask, or from nodes; and with xarray."""

import os
import subprocess
import sys
from random import Random

import xarray as xr

import gristmill as gm

#: All ways. ``blocks`` are the chunks of the file, and ``pieces`` are random chunks. On ``nodes`` Gristmill decides where to
#: compute. With ``storage`` the option tells it to compute on the nodes. ``far`` are blocks of a file on nodes.
WAYS = ("plain", "blocks", "pieces", "nodes", "storage", "far")
ON_NODES = ("nodes", "storage", "far")
OF_DASK = ("blocks", "pieces", "far")
#: It is long enough for a folder of chunks. It is a bound on a hang, not a measure of speed.
TIMEOUT = 120
STRIPE = "4KiB"


def of_xarray(path, chunks=None):
    """The data set that xarray opens. It is in memory if it has no chunks."""
    engine = {"engine": "zarr", "consolidated": False} if str(path).endswith(".zarr") else {"engine": "netcdf4"}
    with xr.open_dataset(path, chunks=chunks, **engine) as ds:
        return ds.load() if chunks is None else ds


def pieces(seed, number, sizes):
    """Random chunks that differ from those of the file."""
    choose = Random(f"pieces {seed} {number}")
    return {dim: choose.randint(1, max(1, size)) for dim, size in sizes.items()}


def of_program(number, asked):
    """The ways for a program: plain, and in turns one with blocks of dask on this machine and one on nodes. Each costs about the
    same."""
    of_dask = [way for way in asked if way in OF_DASK and way not in ON_NODES]
    on_nodes = [way for way in asked if way in ON_NODES]
    turns = [ways[number % len(ways)] for ways in (of_dask, on_nodes) if ways]
    return [way for way in asked if way in turns or way == "plain"]


def opened(way, path, url, chunks):
    """The data set that Gristmill opens in one way."""
    name = url if way in ON_NODES else path
    if way in OF_DASK:
        return gm.open_dataset(name, chunks=chunks if way == "pieces" else {})
    return gm.open_dataset(name)


def options(way):
    """The options that are set while a program runs."""
    return gm.set_options(place="storage") if way == "storage" else gm.set_options()


def put(path, url):
    """Stores a file, or a folder, on nodes."""
    if not path.is_dir():
        gm.put(path, url, stripe=STRIPE)
        return
    named = os.environ.get("GRISTMILL_BIN")
    command = [named] if named else [sys.executable, "-m", "gristmill"]
    done = subprocess.run([*command, "put", str(path), url], capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        raise RuntimeError(f"put {path.name}: {done.stderr}")
