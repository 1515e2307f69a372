"""Reads a file behind a link with xarray, in a process that imports everything before the first question.

It reads one line of JSON for each question, {"way", "url", "variable", "answer", "scratch"}, and answers with one, {"seconds"}. It
writes the mean over time to `answer` (.npy). Ways:

    plain    the file is copied and nothing is computed: nothing that moves its bytes can be faster
    copy     the file is copied, then opened
    arriving the file is read while it is copied, some times at once
    fsspec   the file is opened over fsspec's HTTP, which reads ahead
    pushed   the nodes reduce it, by gristmill.open_dataset
"""

import http.client
import json
import os
import sys
import time
import warnings
from urllib.parse import urlsplit

import numpy as np
import xarray as xr

import field_numpy
from arriving import PIECE, Arriving

# How much fsspec reads at once, and its cache: it fetches the next block while this one is used.
FSSPEC = {"block_size": 8 << 20, "cache_type": "background"}


def copied(asked, path):
    url = urlsplit(asked["url"])
    connection = http.client.HTTPConnection(url.hostname, url.port)
    connection.request("GET", url.path)
    response = connection.getresponse()
    size, got = int(response.headers["Content-Length"]), 0
    buffer = memoryview(bytearray(PIECE))
    with open(path, "wb", buffering=0) as out:
        while count := response.readinto(buffer):
            out.write(buffer[:count])
            got += count
    connection.close()
    if response.status != 200 or got != size:
        raise OSError(f"{asked['url']}: {got} of {size} bytes, HTTP status {response.status}")


def mean(opened, asked):
    with opened as dataset:
        return dataset[asked["variable"]].mean("time").values


def copy(asked):
    path = os.path.join(asked["scratch"], "copied.nc")
    try:
        copied(asked, path)
        return mean(xr.open_dataset(path, decode_times=False), asked)
    finally:
        os.unlink(path)


def plain(asked):
    path = os.path.join(asked["scratch"], "copied.nc")
    try:
        copied(asked, path)
    finally:
        os.unlink(path)


def arriving(asked):
    total, count = 0.0, 0
    with Arriving(asked["url"]) as file, xr.open_dataset(file, engine="h5netcdf", decode_times=False) as dataset:
        variable = dataset[asked["variable"]]
        for at in range(0, variable.sizes["time"], field_numpy.BLOCK_TIMES):
            block = variable.isel(time=slice(at, at + field_numpy.BLOCK_TIMES)).load()
            total = total + block.sum("time", dtype=np.float64).values
            count = count + block.count("time").values
    with np.errstate(invalid="ignore"):
        return total / count


def over_http(asked):
    import fsspec

    with fsspec.open(asked["url"], **FSSPEC) as file:
        return mean(xr.open_dataset(file, engine="h5netcdf", decode_times=False), asked)


def pushed(asked):
    import gristmill

    with warnings.catch_warnings():
        # NumPy warns of cells over land, which have no values.
        warnings.simplefilter("ignore", RuntimeWarning)
        return mean(gristmill.open_dataset(asked["url"], decode_times=False), asked)


WAYS = {"plain": plain, "copy": copy, "arriving": arriving, "fsspec": over_http, "pushed": pushed}


def main():
    import fsspec.implementations.http  # noqa: F401, before anything is timed
    import h5netcdf  # noqa: F401
    import netCDF4  # noqa: F401

    for line in sys.stdin:
        asked = json.loads(line)
        begun = time.perf_counter()
        found = WAYS[asked["way"]](asked)
        seconds = time.perf_counter() - begun
        if found is not None:
            np.save(asked["answer"], found)
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
