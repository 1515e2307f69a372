"""The mean over time of a netCDF file behind a link of 1 Gbit/s, in xarray: with `gristmill.open_dataset`, and without.

As in variables_link.py, nodes and clients are in two network namespaces with a link between them. Gristmill uses TLS and tokens.
xarray reads the file from a web server at the nodes' end without either, in the fastest of its ways. Both clients are processes
that have imported everything. Their time is from opening the file to an answer in memory. The program needs root, ip and tc. It
says so and does nothing if they are missing.
"""

import contextlib
import os
import tempfile
from pathlib import Path

import numpy as np
import xarray as xr

import command
import data
import field_numpy
import fields
import pairs
from cluster import GRISTMILL, Nodes
from field_numpy import MEAN
from link import ENTRY_PORT, LEAST, MOST, RATE, STORAGE, link, missing
from variables_link import MEMORY, NODES, WEB_PORT, Helper, secured

ROUNDS = 5

# The goal for each layout: how many times as fast as xarray. None: there is no goal.
GOALS = {"chunked": 10, "deflate": None}

OURS, COPY = "gristmill.open_dataset", "plain copy of the file"


def measure(options, layout, size):
    path = fields.make(options.data, layout, size)
    times = fields.times_of(layout, size)
    truth = field_numpy.truths(path, fields.VARIABLE, [MEAN])[MEAN]
    pairs.warm(path)
    with contextlib.ExitStack() as stack:
        at_storage, at_client = stack.enter_context(link())
        secure, known = secured(stack, options)
        listen = {"listen": f"{STORAGE}:{ENTRY_PORT}", "prefix": at_storage, "options": [*secure, "--no-statistics"]}
        nodes = stack.enter_context(Nodes(options.gristmill, options.data, NODES, **listen))
        web = stack.enter_context(Helper(at_storage, "web.py", f"{STORAGE}:{WEB_PORT}", options.data))
        web.hear()
        client = stack.enter_context(Helper(at_client, "xarray_client.py", env=known))
        shared = MEMORY if os.access(MEMORY, os.W_OK) else options.data
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=shared, prefix="gristmill-bench-")))
        file = f"grist://{nodes.address}/{path.name}"
        # The file is put from the storage end, so that the link does not slow it down.
        command.put(options.gristmill, [path], file, prefix=at_storage, env=known)
        answer = scratch / "answer.npy"

        def side(way, url):
            def run():
                asked = {"way": way, "url": url, "variable": fields.VARIABLE, "scratch": scratch, "answer": answer}
                seconds = client.ask(**{name: str(value) for name, value in asked.items()})["seconds"]
                if way == "pushed":
                    found = np.load(answer)
                    far = field_numpy.ulps(found, truth)
                    pairs.require(far <= field_numpy.ULPS, f"{layout} on the nodes: {far} ulps from what is true")
                elif way != "plain":
                    pairs.require(field_numpy.near(np.load(answer), truth, times), f"{layout}, xarray, {way}")
                answer.unlink(missing_ok=True)
                return seconds

            return run

        web_url = f"http://{STORAGE}:{WEB_PORT}/{path.name}"
        ours = side("pushed", file)
        ours()
        ways = {way: side(way, web_url) for way in ("copy", "arriving", "fsspec")}
        found = {way: run() for way, run in ways.items()}
        for way, seconds in found.items():
            print(f"# {layout}, xarray, {way}: {seconds:.3f} s", flush=True)
        best = min(found, key=found.get)
        theirs = f"xarray, {best}"
        measured = {OURS: ours, theirs: ways[best], COPY: side("plain", web_url)}
        times_of_sides = pairs.rounds(measured, options.rounds)
    share = 8 * path.stat().st_size / float(np.median(times_of_sides[COPY])) / RATE
    print(f"# a plain copy has {share:.2f} of {RATE / 1e9:g} Gbit/s")
    if not options.quick and not LEAST <= share <= MOST:
        raise SystemExit(f"the link is no link of {RATE:g} bit/s: a plain copy has {share:.2f} of that")
    goal = GOALS[layout]
    ratios = [
        pairs.ratio(times_of_sides, OURS, theirs, goal and 1 / goal),
        pairs.ratio(times_of_sides, OURS, COPY),
        pairs.ratio(times_of_sides, theirs, COPY),
    ]
    about = fields.LAYOUTS[layout].about
    title = f"xarray: mean over time of {data.size_name(size)} decoded over {RATE / 1e9:g} Gbit/s: {about}"
    wanted = f"; goal: {goal:g} times as fast" if goal else ""
    note = f"two namespaces, {NODES} nodes, TLS and tokens; xarray {xr.__version__}{wanted}"
    sizes = dict.fromkeys(times_of_sides, fields.decoded_bytes(layout, size))
    pairs.report(f"python_link_{layout}", title, options, times_of_sides, sizes, ratios, note)


def main():
    options = pairs.arguments(
        __doc__.split("\n")[0],
        min_rounds=ROUNDS,
        quick_rounds=1,
        size={"type": data.parse_size, "help": "bytes of the decoded variable (default: 1GiB; --quick: 8MiB)"},
        gristmill=GRISTMILL,
        layout={"choices": list(GOALS), "help": "only this one (default: one after the other)"},
    )
    if why := missing():
        print(f"# python_link: skipped; {why}")
        return
    size = options.size or (8 * data.MIB if options.quick else data.GIB)
    options.data.mkdir(parents=True, exist_ok=True)
    for layout in [options.layout] if options.layout else GOALS:
        measure(options, layout, size)


if __name__ == "__main__":
    main()
