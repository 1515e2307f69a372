"""A Ceph that a benchmark program starts for itself, and the loop of librados over its objects.

The program starts again as a command beside the cluster (tests/ceph_cluster.py), once for each kind of store.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pairs
from probe import ROOT

STORES = {"memstore": "daemons keep objects in memory", "bluestore": "daemons keep objects in BlueStore"}
CLUSTER = ROOT / "tests/ceph_cluster.py"
#: Where storage nodes keep their objects: a pool, and the name of their stores.
NODE_POOL, STORE_NAME = "gristmill", "bench"
#: The option of `up` for this place.
OBJECTS = ("--objects", f"rados://{NODE_POOL}/{STORE_NAME}")
#: Set for the program inside the cluster that it started.
INSIDE = "GRISTMILL_BENCH_OWN_CEPH"

#: The option of the programs, for `pairs.arguments`.
STORE = {"choices": list(STORES), "help": "where the storage daemons keep objects (default: both, one after the other)"}


def is_inside():
    """Whether this program runs beside the cluster that it started. `options.store` says then of which kind that is."""
    return INSIDE in os.environ


def is_missing():
    """Says that the program is skipped, if Ceph is missing."""
    missing = shutil.which("ceph-osd") is None
    if missing:
        print("# skipped: Ceph is not installed; scripts/ceph installs it")
    return missing


def run_inside(program, options, *settings):
    """Runs a program again beside a new cluster with these settings, for each store. Ends this program if that fails."""
    for store in [options.store] if options.store else STORES:
        again = [sys.executable, program, *sys.argv[1:], *(() if options.store else ("--store", store))]
        command = [sys.executable, CLUSTER, "--store", store, *settings, "--", *again]
        cluster = subprocess.Popen(list(map(str, command)), env={**os.environ, INSIDE: "1"})
        try:
            code = cluster.wait()
        finally:
            cluster.terminate()
            cluster.wait()
        if code:
            sys.exit(code)
        print(flush=True)


def stores_of(nodes):
    """The namespaces of the pool with the objects of so many nodes."""
    return [f"{STORE_NAME}.node{number}" for number in range(nodes)]


def librados(pool, *words):
    """Runs librados.py and returns its output. The program reads the objects of a pool once, or calls a method of an object class on each."""
    command = [sys.executable, Path(__file__).with_name("librados.py"), pool, *words]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE)
    if done.returncode != 0:
        raise SystemExit("the loop over the objects failed")
    return json.loads(done.stdout)


def loop(size, pool, *words, beside=0):
    """The seconds of the loop. The objects have the bytes of the file, and at most `beside` more."""
    done = librados(pool, *words)
    pairs.require(size <= done["bytes"] <= size + beside, "the bytes of the objects")
    return done["seconds"]
