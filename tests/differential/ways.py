"""The ways to open a file: with Gristmill from here, in blocks of dask, from nodes; and with xarray."""

import os
import subprocess
import sys
from random import Random

import xarray as xr

import gristmill as gm

#: All ways. ``blocks`` are those of the file, ``pieces`` are made up. On ``nodes`` Gristmill finds out where to compute, in ``storage``
#: it is told to do so where the file is, and ``far`` are blocks of a file on nodes.
WAYS = ("plain", "blocks", "pieces", "nodes", "storage", "far")
ON_NODES = ("nodes", "storage", "far")
OF_DASK = ("blocks", "pieces", "far")
#: Long enough for a folder of chunks; a bound on a hang, not a measure of speed.
TIMEOUT = 120
STRIPE = "4KiB"


def of_xarray(path, chunks=None):
    """As xarray opens it, in memory unless it has chunks."""
    engine = {"engine": "zarr", "consolidated": False} if str(path).endswith(".zarr") else {"engine": "netcdf4"}
    with xr.open_dataset(path, chunks=chunks, **engine) as ds:
        return ds.load() if chunks is None else ds


def pieces(seed, number, sizes):
    """Chunks that are not those of the file."""
    choose = Random(f"pieces {seed} {number}")
    return {dim: choose.randint(1, max(1, size)) for dim, size in sizes.items()}


def of_program(number, asked):
    """The ways of a program: plain, one with blocks of dask from here and one on nodes, each in turn, as each costs much the same."""
    of_dask = [way for way in asked if way in OF_DASK and way not in ON_NODES]
    on_nodes = [way for way in asked if way in ON_NODES]
    turns = [ways[number % len(ways)] for ways in (of_dask, on_nodes) if ways]
    return [way for way in asked if way in turns or way == "plain"]


def opened(way, path, url, chunks):
    """As Gristmill opens it in one way."""
    name = url if way in ON_NODES else path
    if way in OF_DASK:
        return gm.open_dataset(name, chunks=chunks if way == "pieces" else {})
    return gm.open_dataset(name)


def options(way):
    """What is set while a program runs."""
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
