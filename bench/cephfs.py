"""The sum of a file of CephFS, and of a file that storage nodes keep in a pool, against a loop over the objects.

The loop (librados.py) reads the same objects and throws them away. A file of CephFS is summed in one process and on two nodes, the other one
on the nodes that have it. It connects before the measurement. The times of the sums are those of
the request, from its report. Two storage daemons and the nodes share this machine. The daemons keep the objects in memory, or with
BlueStore in files. The program starts Ceph itself, if its programs are installed (scripts/ceph).
"""

from pathlib import Path

import data
import own_ceph
import pairs
from cluster import GRISTMILL, Nodes, output_of
from command import sum_request

POOL, NAME = "cephfs_data", "normal.f64"
GOAL = 1.0
LOOP, HERE, NODES = "loop of librados", "sum in one process", "sum on 2 storage nodes"
OWN_LOOP, OWN = "loop over objects of nodes", "sum on 2 nodes with objects in Ceph"
#: Records, locks: what the objects of a node have beside the bytes of the file, at most.
BESIDE = 1 << 16


def measure(options, size):
    """The sides over a cluster that the environment names."""
    local = sum_request(options.gristmill, data.make(options.data, "normal", size), None)
    local()
    url = f"cephfs:///{NAME}"
    sides = {LOOP: lambda: own_ceph.loop(size, POOL), HERE: sum_request(options.gristmill, url, local.sum)}
    with (
        Nodes(options.gristmill, options.data, 2, options=("--admin", "anonymous")) as nodes,
        Nodes(options.gristmill, options.data, 2, options=own_ceph.OBJECTS) as owners,
    ):
        output_of(options.gristmill, "put", data.make(options.data, "normal", size), f"grist://{owners.address}/{NAME}")
        sides[OWN_LOOP] = lambda: own_ceph.loop(size, own_ceph.NODE_POOL, *own_ceph.stores_of(2), beside=2 * BESIDE)
        sides[OWN] = sum_request(options.gristmill, f"grist://{owners.address}/{NAME}", local.sum)
        entry = f"grist://{nodes.address}"
        output_of(options.gristmill, "attach", "cephfs:///", f"{entry}/ceph")
        sides[NODES] = sum_request(options.gristmill, f"{entry}/ceph/{NAME}", local.sum)
        times = pairs.rounds(sides, options.rounds)
    ratios = [pairs.ratio(times, HERE, LOOP, GOAL), pairs.ratio(times, NODES, LOOP, GOAL), pairs.ratio(times, OWN, OWN_LOOP, GOAL)]
    title = f"Sum of {data.size_name(size)} of f64 in Ceph, {own_ceph.STORES[options.store]}"
    pairs.report(f"cephfs_{options.store}", title, options, times, dict.fromkeys(sides, size), ratios, "times of requests, without connecting")


def main():
    options = pairs.arguments(__doc__.split("\n")[0], quick_rounds=2, size=pairs.SIZE, gristmill=GRISTMILL, store=own_ceph.STORE)
    size = options.size or (64 if options.quick else 512) * data.MIB
    if own_ceph.is_inside():
        return measure(options, size)
    if own_ceph.is_missing():
        return
    path = Path(data.make(options.data, "normal", size)).resolve()
    own_ceph.run_inside(__file__, options, "--put", f"{path}={NAME}")


if __name__ == "__main__":
    main()
