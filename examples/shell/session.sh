#!/bin/sh
# A session of an administrator of storage: starts two storage nodes, stores and sums a file, and stops them.
# It needs 'gristmill' in PATH. It works in a folder of its own, which it removes at the end.
#
# It prints:
#
#     2 storage nodes; files are at grist://127.0.0.1:.../
#     in the background; to stop them: kill ...
#     target 0  127.0.0.1:...  up
#     target 1  127.0.0.1:...  up
#     grist:///sensors/readings.csv: 781.26 KiB in stripes of 64.00 KiB on 2 targets
#     644  anonymous  781.26 KiB      x2  ...  readings.csv
#     text reading: 13 of 13 chunks are read; ...
#     place: storage (the nodes move less than a plain read would); ...
#     sum  5000050000
#     read ...
#     the copy is the same
#     all is stopped
set -eu

folder=$(mktemp -d)
nodes=''

# Ends the nodes in order, and waits until they are gone.
stop() {
    if [ -n "$nodes" ]; then
        kill "$nodes" || true
        tries=300
        while [ "$tries" -gt 0 ] && kill -0 "$nodes" 2> /dev/null; do
            tries=$((tries - 1))
            sleep 0.1
        done
        nodes=''
    fi
}
trap 'stop; rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Start. Port 0 takes a free port; a real cluster has a fixed one, 7440 by default. What 'up' prints names the cluster,
# and the process that 'kill' ends.
gristmill up --dir "$folder/store" --nodes 2 --listen 127.0.0.1:0 --wait > "$folder/started"
nodes=$(sed -n 's/.*to stop them: kill //p' "$folder/started")
GRISTMILL_CLUSTER=$(sed -n 's/.*files are at //p' "$folder/started")
export GRISTMILL_CLUSTER
cat "$folder/started"
gristmill nodes

# Store: a column of numbers with its name above it. Lines of 8 bytes fit stripes of 64 KiB.
awk 'BEGIN { print "reading"; for (i = 1; i <= 100000; i++) printf "%07d\n", i }' > "$folder/readings.csv"
gristmill put "$folder/readings.csv" grist:///sensors/readings.csv --stripe 64KiB
gristmill ls --long grist:///sensors/

# Compute: --explain says where, why, and what moves.
gristmill run sum grist:///sensors/readings.csv --var reading --explain

# Fetch, and compare.
gristmill get grist:///sensors/readings.csv "$folder/copy.csv"
cmp "$folder/readings.csv" "$folder/copy.csv"
echo "the copy is the same"

# Remove, and stop. Files would stay in the folder of --dir, and the same 'up' would serve them again.
gristmill rm --recursive grist:///sensors/
stop
echo "all is stopped"
