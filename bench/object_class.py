"""The sum of a file that storage nodes keep in a pool of Ceph, computed in the storage daemons, against three other ways.

The daemons fold with the object class of Gristmill (`--place osd`). The others are the nodes themselves (`--place storage`), a loop that reads
the same objects and throws them away (librados.py), and an object class in C++ that can only add (object_class/sum.cc), called on all
objects from one process. The times of the first two are those of the request, from its report; the others connect before the
measurement. Two storage daemons and two nodes share this machine. The daemons keep the objects in memory, or with BlueStore in files.
The program starts Ceph itself, if its programs are installed (scripts/ceph), and builds the class in C++.
"""

import math
import shutil
import subprocess
from pathlib import Path

import data
import own_ceph
import pairs
from cluster import GRISTMILL, Nodes, output_of
from command import sum_request

NAME, NODES = "normal.f64", 2
OSDS, STORAGE = "sum in the daemons", "sum on 2 storage nodes"
LOOP, CLASS = "loop over the objects", "class in C++ that adds"
#: The sum of Gristmill is exact, and that of the class in C++ is rounded. So it may take somewhat longer.
CLASS_GOAL, LOOP_GOAL = 1.25, 1.0
#: The largest relative difference between the two.
TOLERANCE = 1e-9
#: How many bytes were folded in the daemons, in a report.
FOLDED = "bytes_folded_in_storage"
#: The names of objects with bytes of files begin with this.
PIECES = ("--prefix", "p.")
OBJECT_CLASS = {"type": Path, "metavar": "FILE", "help": "the object class of Gristmill (default: libcls_gristmill.so beside --gristmill)"}

SOURCE, HEADER = Path(__file__).parent / "object_class/sum.cc", "rados/objclass.h"
COMPILER = ("g++", "-std=c++17", "-O3", "-march=native", "-Wall", "-Wno-psabi")


def missing(library):
    """Says what the program lacks and how to get it. Returns `None` if it has everything."""
    if not library.is_file():
        release = "--release " if library.parent.name == "release" else ""
        return f"{library} is missing; cargo build {release}-p gristmill-object-class"
    if shutil.which(COMPILER[0]) is None:
        return f"{COMPILER[0]} is not installed; it builds the class in C++"
    include = f"#include <{HEADER}>\n".encode()
    if subprocess.run([*COMPILER, "-E", "-x", "c++", "-"], input=include, capture_output=True).returncode != 0:
        return f"{HEADER} is not installed; it is in the package rados-objclass-dev, and needs libradospp-dev"
    return None


def build(folder):
    """Builds the class in C++."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libcls_benchsum.so"
    subprocess.run([*COMPILER, "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    return library


def call_class(exact):
    """The seconds to call the class in C++ on all objects."""
    done = own_ceph.librados(own_ceph.NODE_POOL, *own_ceph.stores_of(NODES), *PIECES, "--call", "benchsum", "sum")
    pairs.require(math.isclose(done["sum"], exact, rel_tol=TOLERANCE), f"the class in C++ adds up to {done['sum']}, not {exact}")
    return done["seconds"]


def measure(options, size):
    """The sides over a cluster that the environment names."""
    path = data.make(options.data, "normal", size)
    local = sum_request(options.gristmill, path, None)
    local()
    with Nodes(options.gristmill, options.data, NODES, options=own_ceph.OBJECTS) as nodes:
        url = f"grist://{nodes.address}/{NAME}"
        output_of(options.gristmill, "put", path, url)
        sides = {
            OSDS: sum_request(options.gristmill, url, local.sum, "--place", "osd"),
            STORAGE: sum_request(options.gristmill, url, local.sum, "--place", "storage"),
            LOOP: lambda: own_ceph.loop(size, own_ceph.NODE_POOL, *own_ceph.stores_of(NODES), *PIECES),
            CLASS: lambda: call_class(local.sum),
        }
        times = pairs.rounds(sides, options.rounds)
    for side, inside in ((OSDS, size), (STORAGE, 0)):
        pairs.require(sides[side].report[FOLDED] == inside, f"{side}: the bytes that were folded in the daemons")
    # The class in C++ is compared where the disk does not decide.
    class_goal = CLASS_GOAL if options.store == "memstore" else None
    ratios = [pairs.ratio(times, OSDS, CLASS, class_goal), pairs.ratio(times, OSDS, LOOP, LOOP_GOAL), pairs.ratio(times, OSDS, STORAGE)]
    title = f"Sum of {data.size_name(size)} of f64 inside Ceph, {own_ceph.STORES[options.store]}"
    pairs.report(f"object_class_{options.store}", title, options, times, dict.fromkeys(sides, size), ratios, "times of requests, without connecting")


def main():
    more = {"gristmill": GRISTMILL, "store": own_ceph.STORE, "object-class": OBJECT_CLASS}
    options = pairs.arguments(__doc__.split("\n")[0], quick_rounds=2, size=pairs.SIZE, **more)
    size = options.size or (64 if options.quick else 1024) * data.MIB
    if own_ceph.is_inside():
        return measure(options, size)
    library = (options.object_class or options.gristmill.with_name("libcls_gristmill.so")).resolve()
    if own_ceph.is_missing():
        return
    if lacks := missing(library):
        return print(f"# skipped: {lacks}")
    data.make(options.data, "normal", size)
    classes = (library, build(options.data / "classes"))
    own_ceph.run_inside(__file__, options, *(word for each in classes for word in ("--object-class", each)))


if __name__ == "__main__":
    main()
