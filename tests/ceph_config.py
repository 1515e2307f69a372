"""The configuration of a Ceph of tests: what its processes read, who may do what, and which object classes it loads."""

import subprocess
from pathlib import Path

#: The most storage daemons of a cluster.
MOST_OSDS = 4

CONFIG = """
[global]
fsid = {fsid}
mon host = {monitors}
public network = 127.0.0.0/8
ms bind ipv6 = false
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
run dir = {folder}
admin socket =
crash dir = {folder}
log file = {folder}/$name.log
osd pool default size = {copies}
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail crit = 1
# One daemon that misses another is believed, because all are on this machine.
mon osd reporter subtree level = osd
mon osd min down reporters = 1
osd heartbeat grace = 6
# A change of the map of the cluster waits a second otherwise, and starting changes it many times.
paxos propose interval = 0.05
[mon]
mon data = {folder}/mon.$id
mon cluster log file = {folder}/cluster.log
auth allow insecure global id reclaim = false
[osd]
osd data = {folder}/osd.$id
osd objectstore = {store}
memstore device bytes = 4294967296
bluestore block size = 4294967296
bluestore cache autotune = false
bluestore cache size = 67108864
osd op num shards = 2
{classes}{addresses}
[mds]
mds data = {folder}/mds
admin socket = {folder}/mds.sock
[client.rgw]
rgw data = {folder}
rgw frontends = beast endpoint=127.0.0.1:{gateway}
rgw thread pool size = 64
"""



def monitor_address(host, port, port_v1):
    """The address of a monitor, as `monmaptool` and the configuration take it."""
    return f"[v2:{host}:{port},v1:{host}:{port_v1}]"


#: The pool with the objects of storage nodes.
NODE_POOL = "gristmill"

#: The pool with the objects of files.
FILE_POOL = "cephfs_data"

#: The pool with the content of objects of buckets.
DATA_POOL = "default.rgw.buckets.data"

#: What each process, and the administrator, may do.
RIGHTS = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "osd": "allow *", "mgr": "allow *", "mds": "allow *"},
    **{f"osd.{number}": {"mon": "allow profile osd", "osd": "allow *"} for number in range(MOST_OSDS)},
    "mds.a": {"mon": "allow profile mds", "mds": "allow *", "osd": "allow rwx"},
    "client.rgw": {"mon": "allow rw", "osd": "allow rwx"},
    # The least that a node needs to keep its objects in a pool.
    "client.node": {"mon": "allow profile simple-rados-client-with-blocklist", "osd": "allow rwx pool=gristmill"},
    # Writes no piece of an object but the first one, in a store that was just made: a test of writes that fail in the middle.
    "client.first": {
        "mon": "allow profile simple-rados-client-with-blocklist",
        "osd": ", ".join(
            ["allow r pool=gristmill"]
            + [f"allow rwx pool=gristmill object_prefix {prefix}" for prefix in ("store", "h.", "p.log.10000000000.0")]
        ),
    },
    # A node that may take locks, and call no other object class.
    "client.notclass": {
        "mon": "allow profile simple-rados-client-with-blocklist",
        "osd": "allow rw pool=gristmill, allow pool=gristmill class lock",
    },
    # The least that a client needs to find the nodes of a cluster.
    "client.asker": {"mon": "allow r", "osd": "allow r class-read pool=gristmill namespace=cluster"},
    # A node that does both: it keeps its objects in a pool, and reads files.
    "client.both": {
        "mon": "allow r, allow profile simple-rados-client-with-blocklist",
        "mds": "allow r",
        "osd": "allow rwx pool=gristmill, allow r tag cephfs data=cephfs",
    },
    # The least that a node needs to read files.
    "client.reader": {"mon": "allow r", "mds": "allow r", "osd": "allow r tag cephfs data=cephfs"},
}

#: Daemons load any class of the folder, and whoever has the right `x` may call it.
CLASSES = """osd class dir = {folder}
osd class load list = *
osd class default list = *
"""


def class_settings(folder: Path, libraries) -> str:
    """Makes a folder with the object classes of the system and these, and returns the settings with which daemons load them."""
    if not libraries:
        return ""
    asked = ("ceph-conf", "--conf", "/dev/null", "--show-config-value", "osd_class_dir")
    system = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    folder.mkdir()
    for library in [*system.glob("libcls_*.so"), *map(Path, libraries)]:
        (folder / library.name).symlink_to(library.resolve(strict=True))
    return CLASSES.format(folder=folder)
