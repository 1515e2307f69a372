"""The sum of a file that lies behind the gateway of Ceph (S3), against the same file in a pool: what the way through the gateway costs.

Two storage nodes read an object of a bucket through the gateway, and two others keep the same bytes as objects in a pool. A
process sums the object of the bucket, too. The loop (librados.py) reads the objects in the pool and throws them away. The times of the sums are
those of the requests, from their reports. Gateway, storage daemons and nodes share this machine. The program starts Ceph itself, if its
programs are installed (scripts/ceph).
"""

import os
from pathlib import Path

import data
import own_ceph
import pairs
from cluster import GRISTMILL, Nodes, output_of
from command import sum_request

BUCKET, NAME = "bucket", "normal.f64"
LOOP, HERE = "loop over objects of nodes", "sum of a bucket in one process"
GATEWAY, POOL = "sum of a bucket on 2 nodes", "sum on 2 nodes with objects in Ceph"
#: Records, locks: what the objects of a node have beside the bytes of the file, at most.
BESIDE = 1 << 16


def measure(options, size):
    """The sides over a cluster that the environment names."""
    path = data.make(options.data, "normal", size)
    local = sum_request(options.gristmill, path, None)
    local()
    sides = {
        LOOP: lambda: own_ceph.loop(size, own_ceph.NODE_POOL, *own_ceph.stores_of(2), beside=2 * BESIDE),
        HERE: sum_request(options.gristmill, f"s3://{BUCKET}/{NAME}", local.sum),
    }
    # The gateway is on this machine, as one beside each node would be.
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    with (
        Nodes(options.gristmill, options.data, 2, options=("--admin", "anonymous")) as nodes,
        Nodes(options.gristmill, options.data, 2, options=own_ceph.OBJECTS) as owners,
    ):
        output_of(options.gristmill, "put", path, f"grist://{owners.address}/{NAME}")
        sides[POOL] = sum_request(options.gristmill, f"grist://{owners.address}/{NAME}", local.sum)
        entry = f"grist://{nodes.address}"
        output_of(options.gristmill, "attach", f"s3://{BUCKET}", f"{entry}/bucket", "--endpoint", endpoint, "--allow-local")
        sides[GATEWAY] = sum_request(options.gristmill, f"{entry}/bucket/{NAME}", local.sum)
        times = pairs.rounds(sides, options.rounds)
    ratios = [pairs.ratio(times, GATEWAY, POOL), pairs.ratio(times, GATEWAY, LOOP), pairs.ratio(times, HERE, LOOP), pairs.ratio(times, POOL, LOOP)]
    title = f"Sum of {data.size_name(size)} of f64 in Ceph, {own_ceph.STORES[options.store]}"
    pairs.report(f"ceph_gateway_{options.store}", title, options, times, dict.fromkeys(sides, size), ratios, "times of requests, without connecting")


def main():
    options = pairs.arguments(__doc__.split("\n")[0], quick_rounds=2, size=pairs.SIZE, gristmill=GRISTMILL, store=own_ceph.STORE)
    size = options.size or (64 if options.quick else 512) * data.MIB
    if own_ceph.is_inside():
        return measure(options, size)
    if own_ceph.is_missing():
        return
    path = Path(data.make(options.data, "normal", size)).resolve()
    own_ceph.run_inside(__file__, options, "--gateway", "--put", f"{path}={NAME}")


if __name__ == "__main__":
    main()
