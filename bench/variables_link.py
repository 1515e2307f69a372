"""The mean over time of a netCDF file behind a link of 1 Gbit/s: `gristmill run` on its nodes, and xarray.

Nodes and clients are in two network namespaces with a link between them, as in link.py. Gristmill uses TLS and tokens, and its
time is that of the whole command. xarray reads the file from a web server at the nodes' end, without TLS, in a process that has
imported everything. The program first tries the ways of xarray_client.py and then measures the fastest. It also measures a copy of
the file alone: it shows the speed of the link, and nothing that moves the bytes of the file can be faster. The program needs root,
ip and tc. It says so and does nothing if they are missing.
"""

import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import xarray as xr

import command
import data
import field_numpy
import fields
import pairs
from cluster import GRISTMILL, Nodes, ends_with_us, environment
from field_numpy import MEAN
from link import ENTRY_PORT, LEAST, MOST, RATE, STORAGE, link, missing

NODES = 4
ROUNDS = 5
WEB_PORT = 7442

# The goal for each layout: how many times as fast as xarray.
GOALS = {"chunked": 10, "deflate": 2.5}

# Copies go to memory, so that no disk slows xarray down.
MEMORY = Path("/dev/shm")

OURS, INSIDE, COPY = "gristmill run", "gristmill run, inside", "plain copy of the file"
HERE = Path(__file__).resolve().parent


class Helper:
    """A Python program of this folder, started through `prefix` with the additional environment `env`; use with `with`."""

    def __init__(self, prefix, program, *arguments, env=None):
        self.process = subprocess.Popen(
            [*prefix, sys.executable, str(HERE / program), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment(), **(env or {})},
            preexec_fn=ends_with_us,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args[-1]} ended; what it said is above")
        return line

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.hear())


def secured(stack, options):
    """The options of nodes with TLS and tokens, and the environment of a client for them."""
    certs = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.data, prefix="certs-")))
    make = [str(options.gristmill), "cert", "--dir", str(certs), STORAGE]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL, env=environment())
    token, tokens = secrets.token_hex(32), certs / "tokens"
    tokens.touch(0o600)
    tokens.write_text(f"bench {token}\n")
    secure = ["--cert", certs / "cert.pem", "--tls-key", certs / "key.pem"]
    secure += ["--ca", certs / "ca.pem", "--tokens", tokens]
    return secure, {"GRISTMILL_CA": str(certs / "ca.pem"), "GRISTMILL_TOKEN": token}


def measure(options, layout, size):
    path = fields.make(options.data, layout, size)
    times = fields.times_of(layout, size)
    truth = field_numpy.truths(path, fields.VARIABLE, [MEAN])[MEAN]
    pairs.warm(path)
    inside = []
    with contextlib.ExitStack() as stack:
        at_storage, at_client = stack.enter_context(link())
        secure, known = secured(stack, options)
        listen = {"listen": f"{STORAGE}:{ENTRY_PORT}", "prefix": at_storage, "options": secure}
        nodes = stack.enter_context(Nodes(options.gristmill, options.data, NODES, **listen))
        web = stack.enter_context(Helper(at_storage, "web.py", f"{STORAGE}:{WEB_PORT}", options.data))
        web.hear()
        client = stack.enter_context(Helper(at_client, "xarray_client.py"))
        shared = MEMORY if os.access(MEMORY, os.W_OK) else options.data
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=shared, prefix="gristmill-bench-")))
        file = f"grist://{nodes.address}/{path.name}"
        # The file is put from the storage end, so that the link does not slow it down.
        command.put(options.gristmill, [path], file, prefix=at_storage, env=known)

        def ours():
            answered = command.variable(
                options.gristmill, "mean", file, fields.VARIABLE, axes="time", prefix=at_client, env=known
            )
            far = field_numpy.ulps(answered.value, truth)
            pairs.require(far <= field_numpy.ULPS, f"{layout} on the nodes: {far} ulps from what is true")
            inside.append(answered.inside)
            return answered.seconds

        def xarray(way):
            url, answer = f"http://{STORAGE}:{WEB_PORT}/{path.name}", scratch / "answer.npy"

            def side():
                asked = {"way": way, "url": url, "variable": fields.VARIABLE, "scratch": scratch, "answer": answer}
                seconds = client.ask(**{name: str(value) for name, value in asked.items()})["seconds"]
                if way != "plain":
                    near = field_numpy.near(np.load(answer), truth, times)
                    pairs.require(near, f"{layout}, xarray, {way}")
                    answer.unlink()
                return seconds

            return side

        ours()
        inside.clear()
        ways = {way: xarray(way) for way in ("copy", "arriving", "fsspec")}
        found = {way: side() for way, side in ways.items()}
        for way, seconds in found.items():
            print(f"# {layout}, xarray, {way}: {seconds:.3f} s", flush=True)
        best = min(found, key=found.get)
        theirs = f"xarray, {best}"
        times_of_sides = pairs.rounds({OURS: ours, theirs: ways[best], COPY: xarray("plain")}, options.rounds)
    # The first round does not count.
    times_of_sides[INSIDE] = inside[1:]
    stored, decoded = path.stat().st_size, fields.decoded_bytes(layout, size)
    share = 8 * stored / float(np.median(times_of_sides[COPY])) / RATE
    print(f"# {layout}: {stored:,} bytes stored, {decoded:,} decoded")
    print(f"# a plain copy has {share:.2f} of {RATE / 1e9:g} Gbit/s")
    if not options.quick and not LEAST <= share <= MOST:
        raise SystemExit(f"the link is no link of {RATE:g} bit/s: a plain copy has {share:.2f} of that")
    goal = GOALS[layout]
    ratios = [
        pairs.ratio(times_of_sides, OURS, theirs, 1 / goal),
        pairs.ratio(times_of_sides, INSIDE, theirs),
        pairs.ratio(times_of_sides, OURS, COPY),
        pairs.ratio(times_of_sides, theirs, COPY),
    ]
    about = fields.LAYOUTS[layout].about
    title = f"Mean over time of {data.size_name(size)} decoded over a link of {RATE / 1e9:g} Gbit/s: {about}"
    note = f"two namespaces, {NODES} nodes, TLS and tokens; xarray {xr.__version__}; goal: {goal:g} times as fast"
    sizes = dict.fromkeys(times_of_sides, decoded)
    pairs.report(f"variables_link_{layout}", title, options, times_of_sides, sizes, ratios, note)


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
        print(f"# variables_link: skipped; {why}")
        return
    size = options.size or (8 * data.MIB if options.quick else data.GIB)
    options.data.mkdir(parents=True, exist_ok=True)
    for layout in [options.layout] if options.layout else GOALS:
        measure(options, layout, size)


if __name__ == "__main__":
    main()
