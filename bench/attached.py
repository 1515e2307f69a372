"""A file that stays where it is: attached to four storage nodes, put on the same nodes, and read by one process.

The three sums have the same bits. The command is timed from its start to its end, and the report gives the time of the request. A mount is
a folder of this machine here, so the bytes come from the page cache.
"""

from pathlib import Path

import data
import pairs
from cluster import GRISTMILL, Nodes, output_of
from command import sum_request

NODES = 4
GOAL = 1.2
ATTACHED, PUT, LOCAL = "attached, 4 nodes", "put on 4 nodes", "plain file, one process"


def main():
    options = pairs.arguments(__doc__.split("\n")[0], quick_rounds=2, size=pairs.SIZE, gristmill=GRISTMILL)
    size = options.size or (64 * data.MIB if options.quick else data.GIB)
    path = Path(data.make(options.data, "normal", size)).resolve()
    pairs.warm(path)
    local = sum_request(options.gristmill, path, None)
    local()
    with Nodes(options.gristmill, options.data, NODES, options=("--admin", "anonymous")) as nodes:
        entry = f"grist://{nodes.address}"
        output_of(options.gristmill, "attach", path.parent, f"{entry}/tree")
        output_of(options.gristmill, "put", path, f"{entry}/{path.name}", "--no-progress")
        sides = {
            ATTACHED: sum_request(options.gristmill, f"{entry}/tree/{path.name}", local.sum),
            PUT: sum_request(options.gristmill, f"{entry}/{path.name}", local.sum),
            LOCAL: sum_request(options.gristmill, path, local.sum),
        }
        times = pairs.rounds(sides, options.rounds)
    ratios = [pairs.ratio(times, ATTACHED, LOCAL, GOAL), pairs.ratio(times, ATTACHED, PUT)]
    note = "the time of the request, from its report; all bytes are in the page cache"
    pairs.report("attached", f"Sum of {data.size_name(size)} of f64", options, times, dict.fromkeys(sides, size), ratios, note)


if __name__ == "__main__":
    main()
