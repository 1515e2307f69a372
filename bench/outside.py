"""Files of a web server and of an object store, read where they lie by a process on the same machine.

The sum of one file over HTTP is compared with curl, which reads the same bytes in ranges of the same size over as many connections and
throws them away. The mean of 2,048 chunks of 64 KiB, of which no two lie side by side, goes through the protocol of S3. nginx (Debian:
nginx-light) is both servers: for one bucket that is read without credentials it answers as S3 does. Without nginx the program says so
and does nothing.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import h5py
import numpy as np

import command
import data
import pairs
from cluster import GRISTMILL, environment
from reductionist import NGINX, find, free_port, server

PIECE = 2 * data.MIB
CONNECTIONS = 16
GOAL = 1.15
CHUNKS, QUICK_CHUNKS, CHUNK_ELEMENTS = 2048, 128, 16384
CHUNKS_GOAL = 1.0
SEED = 25

OURS, CURL, LOCAL, CHUNKED = "Gristmill over HTTP", "curl over HTTP, thrown away", "Gristmill, local file", "chunks over S3"


def make_chunks(directory, count):
    """A file with two variables whose chunks alternate."""
    path = Path(directory) / f"alternating-{count}.h5"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"part-{path.name}")
        rng = np.random.default_rng(SEED)
        with h5py.File(part, "w") as file:
            both = [
                file.create_dataset(name, (count, CHUNK_ELEMENTS), "<f4", chunks=(1, CHUNK_ELEMENTS))
                for name in ("v", "w")
            ]
            for row in range(count):
                for variable in both:
                    values = rng.normal(280, 10, CHUNK_ELEMENTS).astype("<f4")
                    variable.id.write_direct_chunk((row, 0), values.tobytes())
        part.rename(path)
    return path


def run_sum(binary, path):
    words = [binary, "run", "sum", path, "--type", "f64", "--json", "--no-progress"]
    done = subprocess.run(list(map(str, words)), capture_output=True, env=environment(), check=True)
    return json.loads(done.stdout)["result"]["sum"]


def curl(url, length):
    """Reads all bytes in ranges, and throws them away."""
    config = "\n".join(
        f'url = "{url}"\nrange = {at}-{min(at + PIECE, length) - 1}\noutput = /dev/null'
        for at in range(0, length, PIECE)
    )
    words = ["curl", "-s", "--fail", "-Z", "--parallel-max", str(CONNECTIONS), "-K", "-"]
    subprocess.run(words, input=config, text=True, check=True, stderr=subprocess.DEVNULL)


def main():
    more = {"size": pairs.SIZE, "gristmill": GRISTMILL}
    options = pairs.arguments(__doc__.split("\n")[0], quick_rounds=2, **more)
    nginx = find("nginx")
    if nginx is None:
        print("# no nginx is installed, so files of servers are not measured")
        return
    size = options.size or (64 * data.MIB if options.quick else 512 * data.MIB)
    path = Path(data.make(options.data, "normal", size)).resolve()
    count = QUICK_CHUNKS if options.quick else CHUNKS
    chunks = make_chunks(options.data, count).resolve()
    pairs.warm(path, chunks)
    want = run_sum(options.gristmill, path)
    with tempfile.TemporaryDirectory() as directory:
        files, port = Path(directory) / "files", free_port()
        (files / "bucket").mkdir(parents=True)
        for one in (path, chunks):
            (files / "bucket" / one.name).symlink_to(one)
        config = Path(directory) / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        # With tcp_nopush each short answer would wait 40 ms for an acknowledgement.
        config.write_text(user + NGINX.replace("tcp_nopush on", "tcp_nopush off").format(dir=directory, port=port, root=files))
        address = f"http://127.0.0.1:{port}"
        env = {"AWS_ENDPOINT_URL": address, "AWS_SKIP_SIGNATURE": "true", "AWS_REGION": "nowhere"}
        with server([nginx, "-p", directory, "-c", str(config)], port):

            def ours(file):
                def run():
                    pairs.require(run_sum(options.gristmill, file) == want, f"the sum of {file}")

                return pairs.timed(run)

            def chunked():
                answered = command.variable(
                    options.gristmill, "mean", f"s3://bucket/{chunks.name}", "v", axes="0,1", env=env
                )
                with h5py.File(chunks) as file:
                    pairs.require(np.isclose(answered.value, file["v"][:].mean(dtype="f8")), "the mean of the chunks")
                return answered.seconds

            sides = {
                OURS: ours(f"{address}/bucket/{path.name}"),
                CURL: pairs.timed(lambda: curl(f"{address}/bucket/{path.name}", size)),
                LOCAL: ours(path),
                CHUNKED: chunked,
            }
            times = pairs.rounds(sides, options.rounds)
    sizes = {OURS: size, CURL: size, LOCAL: size, CHUNKED: count * CHUNK_ELEMENTS * 4}
    ratios = [pairs.ratio(times, OURS, CURL, GOAL), pairs.ratio(times, OURS, LOCAL)]
    seconds = float(np.median(times[CHUNKED]))
    goal = "reached" if seconds <= CHUNKS_GOAL else "NOT reached"
    note = f"{count:,} chunks of 64 KiB over S3: {seconds * 1e3:,.0f} ms (goal {CHUNKS_GOAL:g} s: {goal})"
    pairs.report("outside", "Files of servers on the same machine", options, times, sizes, ratios, note)
    print(note)


if __name__ == "__main__":
    main()
