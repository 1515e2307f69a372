"""Chunks of an attached web server, with and without the cache on the disks of nodes.

The mean of 2,048 chunks of 64 KiB, of which no two lie side by side, is asked of two storage nodes without a cache, of two that read the
chunks for the first time and keep them, and of two that have them. nginx on the same machine is the server, so the network costs little: a
server that is far away is slower, and the cache is not. Without nginx the program says so and does nothing.
"""

import json
import os
import subprocess
import tempfile
from itertools import count as counter
from pathlib import Path

import h5py
import numpy as np

import pairs
from cluster import GRISTMILL, Nodes, environment, output_of
from outside import CHUNK_ELEMENTS, CHUNKS, QUICK_CHUNKS, make_chunks
from reductionist import NGINX, find, free_port, server

NODES = 2
WITHOUT, FIRST, KEPT = "without a cache", "read for the first time", "in the cache"


def mean(binary, url, want):
    """The seconds of a request, from its report."""
    words = [binary, "run", "mean", url, "--var", "v", "--axes", "0,1", "--place", "storage", "--json", "--no-progress"]
    done = subprocess.run(list(map(str, words)), capture_output=True, env=environment(), check=True)
    answer = json.loads(done.stdout)
    pairs.require(np.isclose(float(answer["result"]["mean"]["values"][0]), want), "the mean of the chunks")
    return answer["report"]["elapsed_seconds"]


def main():
    options = pairs.arguments(__doc__.split("\n")[0], quick_rounds=2, size=pairs.SIZE, gristmill=GRISTMILL)
    nginx = find("nginx")
    if nginx is None:
        print("# no nginx is installed, so the cache of attached servers is not measured")
        return
    count = QUICK_CHUNKS if options.quick else CHUNKS
    chunks = make_chunks(options.data, count).resolve()
    # The version of a file that changed just now is not believed, so such a file is not kept.
    os.utime(chunks, (1_700_000_000, 1_700_000_000))
    pairs.warm(chunks)
    with h5py.File(chunks) as file:
        want = file["v"][:].mean(dtype="f8")
    with tempfile.TemporaryDirectory() as directory:
        files, port = Path(directory) / "files", free_port()
        files.mkdir()
        config = Path(directory) / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        # With tcp_nopush each short answer would wait 40 ms for an acknowledgement.
        config.write_text(user + NGINX.replace("tcp_nopush on", "tcp_nopush off").format(dir=directory, port=port, root=files))
        plain = ("--admin", "anonymous", "--no-statistics")
        kept = (*plain, "--outside-cache", "4GiB")
        with (
            server([nginx, "-p", directory, "-c", str(config)], port),
            Nodes(options.gristmill, options.data, NODES, options=plain) as without,
            Nodes(options.gristmill, options.data, NODES, options=kept) as caching,
        ):
            for nodes in (without, caching):
                output_of(options.gristmill, "attach", f"http://127.0.0.1:{port}", f"grist://{nodes.address}/t", "--allow-local")
            names = (f"{number}.h5" for number in counter())

            def new_name():
                name = next(names)
                (files / name).symlink_to(chunks)
                return name

            same = new_name()

            def asked(nodes, name):
                return mean(options.gristmill, f"grist://{nodes.address}/t/{name}", want)

            sides = {
                WITHOUT: lambda: asked(without, same),
                # A new name is a new object.
                FIRST: lambda: asked(caching, new_name()),
                KEPT: lambda: asked(caching, same),
            }
            # Twice, because what waits too long to be written is not kept the first time.
            asked(caching, same), asked(caching, same)
            times = pairs.rounds(sides, options.rounds)
    sizes = dict.fromkeys(sides, count * CHUNK_ELEMENTS * 4)
    ratios = [pairs.ratio(times, KEPT, WITHOUT), pairs.ratio(times, FIRST, WITHOUT)]
    note = f"{count:,} chunks of 64 KiB from nginx on the same machine; the time of the request, from its report"
    pairs.report("outside_cache", "Chunks of an attached web server", options, times, sizes, ratios, note)


if __name__ == "__main__":
    main()
