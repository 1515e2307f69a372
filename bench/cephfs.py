"""The sum of a file of CephFS, and of a file that storage nodes keep in a pool, against a loop over the objects.

The loop (librados.py) reads the same objects and throws them away. A file of CephFS is summed in one process and on two nodes, the other one
on the nodes that have it. It connects before the measurement. The times of the sums are those of
the request, from its report. Two storage daemons and the nodes share this machine. The daemons keep the objects in memory, or with
BlueStore in files. The program starts Ceph itself, if its programs are installed (scripts/ceph).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import data
import pairs
from cluster import GRISTMILL, Nodes, output_of
from command import sum_request
from probe import ROOT

STORES = {"memstore": "daemons keep objects in memory", "bluestore": "daemons keep objects in BlueStore"}
POOL, NAME = "cephfs_data", "normal.f64"
GOAL = 1.0
LOOP, HERE, NODES = "loop of librados", "sum in one process", "sum on 2 storage nodes"
OWN_LOOP, OWN = "loop over objects of nodes", "sum on 2 nodes with objects in Ceph"
#: Where the nodes keep their objects.
NODE_POOL, STORE = "gristmill", "bench"
#: Records, locks: what objects of nodes have beside the bytes of the file, at most.
BESIDE = 1 << 16
CLUSTER = ROOT / "tests/ceph_cluster.py"
#: Set for the program inside the cluster that it started.
INSIDE = "GRISTMILL_BENCH_OWN_CEPH"


def loop(size, pool=POOL, *namespaces):
    """Reads all objects of the pool once."""
    words = [sys.executable, Path(__file__).with_name("librados.py"), pool, *namespaces]
    done = json.loads(subprocess.run(list(map(str, words)), capture_output=True, check=True).stdout)
    pairs.require(size <= done["bytes"] <= size + BESIDE * len(namespaces), "the bytes of the objects")
    return done["seconds"]


def measure(options, size):
    """The sides over a cluster that the environment names."""
    local = sum_request(options.gristmill, data.make(options.data, "normal", size), None)
    local()
    url = f"cephfs:///{NAME}"
    sides = {LOOP: lambda: loop(size), HERE: sum_request(options.gristmill, url, local.sum)}
    own = ("--objects", f"rados://{NODE_POOL}/{STORE}")
    with (
        Nodes(options.gristmill, options.data, 2, options=("--admin", "anonymous")) as nodes,
        Nodes(options.gristmill, options.data, 2, options=own) as owners,
    ):
        output_of(options.gristmill, "put", data.make(options.data, "normal", size), f"grist://{owners.address}/{NAME}")
        sides[OWN_LOOP] = lambda: loop(size, NODE_POOL, *(f"{STORE}.node{number}" for number in range(2)))
        sides[OWN] = sum_request(options.gristmill, f"grist://{owners.address}/{NAME}", local.sum)
        entry = f"grist://{nodes.address}"
        output_of(options.gristmill, "attach", "cephfs:///", f"{entry}/ceph")
        sides[NODES] = sum_request(options.gristmill, f"{entry}/ceph/{NAME}", local.sum)
        times = pairs.rounds(sides, options.rounds)
    ratios = [pairs.ratio(times, HERE, LOOP, GOAL), pairs.ratio(times, NODES, LOOP, GOAL), pairs.ratio(times, OWN, OWN_LOOP, GOAL)]
    title = f"Sum of {data.size_name(size)} of f64 in Ceph, {STORES[options.store]}"
    pairs.report(f"cephfs_{options.store}", title, options, times, dict.fromkeys(sides, size), ratios, "times of requests, without connecting")


def main():
    choice = {"choices": list(STORES), "help": "where the storage daemons keep objects (default: both, one after the other)"}
    options = pairs.arguments(__doc__.split("\n")[0], quick_rounds=2, size=pairs.SIZE, gristmill=GRISTMILL, store=choice)
    size = options.size or (64 if options.quick else 512) * data.MIB
    if INSIDE in os.environ:
        return measure(options, size)
    if not shutil.which("ceph-osd"):
        return print("# skipped: Ceph is not installed; scripts/ceph installs it")
    path = Path(data.make(options.data, "normal", size)).resolve()
    for store in [options.store] if options.store else STORES:
        again = [sys.executable, __file__, *sys.argv[1:], *(() if options.store else ("--store", store))]
        command = [sys.executable, CLUSTER, "--store", store, "--put", f"{path}={NAME}", "--", *again]
        cluster = subprocess.Popen(list(map(str, command)), env={**os.environ, INSIDE: "1"})
        try:
            code = cluster.wait()
        finally:
            cluster.terminate()
            cluster.wait()
        if code:
            sys.exit(code)
        print(flush=True)


if __name__ == "__main__":
    main()
