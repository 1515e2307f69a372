"""The sum of one file by Gristmill and by Reductionist, which reads it from nginx on the same machine.

Reductionist sums one stretch in each request. So a client requests stretches from several threads and adds up the answers. The
program first tries several sizes and numbers of threads, and then measures the fastest. It needs nginx (Debian: nginx-light) and
Reductionist (cargo install --locked --root .tools reductionist@0.13.1). It says so and does nothing if they are missing.
"""

import contextlib
import http.client
import json
import math
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import data
import pairs
from cluster import GRISTMILL, Nodes, ends_with_us
from probe import ROOT, Probe

NODES = 4
GOAL = 5
TYPES = {"f64": ("float64", "<d"), "f32": ("float32", "<f")}

# The ways to use Reductionist: bytes of a stretch, number of threads, and options of its server. The fastest is measured.
STRETCHES = [4 * data.MIB, 16 * data.MIB, 64 * data.MIB]
THREADS = [2, 4, 8]
SERVERS = {"its defaults": [], "2 threads": ["--thread-limit", "2"], "Rayon": ["--use-rayon"]}
TRIES = 3

# The maximum time until a server listens, in seconds.
START_SECONDS = 10

# nginx is set up for static files in memory: no copies to user space, no log.
NGINX = """
daemon off; pid {dir}/pid; error_log {dir}/error.log; worker_processes auto;
events {{ worker_connections 256; }}
http {{
    access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000; open_file_cache max=16;
    client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
    uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
    server {{ listen 127.0.0.1:{port}; location / {{ root {root}; }} }}
}}
"""


def find(name, given=None):
    own = ROOT / ".tools" / "bin" / name
    return given or (str(own) if own.is_file() else shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin"))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def server(command, port):
    """A server that runs until the end of the `with` block."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=ends_with_us)
    try:
        until = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                break
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{command[0]} does not listen on port {port}")
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def item(body, at):
    """Parses one CBOR item (maps, arrays, integers, byte and text strings). Returns it and the start of the next one."""
    kind, size, at = body[at] >> 5, body[at] & 31, at + 1
    if size >= 24:
        width = 1 << (size - 24)
        size, at = int.from_bytes(body[at : at + width], "big"), at + width
    match kind:
        case 0:
            return size, at
        case 1:
            return -1 - size, at
        case 2:
            return body[at : at + size], at + size
        case 3:
            return body[at : at + size].decode(), at + size
        case 4 | 5:
            items = []
            for _ in range(size * (kind - 3)):
                one, at = item(body, at)
                items.append(one)
            return (items if kind == 4 else dict(zip(items[::2], items[1::2]))), at
    raise SystemExit(f"Reductionist answered CBOR of kind {kind}")


class Client:
    """Sends requests to Reductionist from threads that keep their connections."""

    def __init__(self, port, threads, url, dtype):
        self.url, self.dtype = url, dtype
        self.pool = ThreadPoolExecutor(threads)
        self.connections = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(threads)]

    def share(self, connection, stretches):
        """Sums of some stretches, one after the other."""
        name, packed = TYPES[self.dtype]
        sums = []
        for offset, size in stretches:
            body = {"interface_type": "http", "url": self.url, "dtype": name, "byte_order": "little"}
            body |= {"offset": offset, "size": size}
            connection.request("POST", "/v2/sum/", json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise SystemExit(f"Reductionist answered {response.status}: {answer[:300]}")
            (found,) = struct.unpack(packed, item(answer, 0)[0]["bytes"])
            sums.append(found)
        return sums

    def sum(self, length, stretch):
        stretches = [(at, min(stretch, length - at)) for at in range(0, length, stretch)]
        many = len(self.connections)
        shares = [stretches[n::many] for n in range(many)]
        return math.fsum(x for sums in self.pool.map(self.share, self.connections, shares) for x in sums)

    def close(self):
        self.pool.shutdown()
        for connection in self.connections:
            connection.close()


def single(source):
    """The same numbers rounded to f32."""
    path = source.with_suffix(".f32")
    path = path.with_name(path.name.replace("normal", "single"))
    if not path.exists():
        with open(source, "rb") as values, open(path.with_suffix(".part"), "wb") as out:
            while piece := values.read(8 << 20):
                out.write(np.frombuffer(piece, "<f8").astype("<f4").tobytes())
        os.replace(path.with_suffix(".part"), path)
    return path


def fastest(choices, tries):
    """The median seconds of every choice, and the name of the fastest."""
    found = {name: float(np.median(seconds)) for name, seconds in pairs.rounds(choices, tries).items()}
    return found, min(found, key=found.get)


def main():
    options = pairs.arguments(
        __doc__.split("\n")[0],
        min_rounds=10,
        quick_rounds=2,
        size=pairs.SIZE,
        probe=pairs.PROBE,
        gristmill=GRISTMILL,
        reductionist={"help": "the server (default: .tools/bin/reductionist, then PATH)"},
        nginx={"help": "the HTTP server (default: PATH)"},
    )
    theirs, nginx = find("reductionist", options.reductionist), find("nginx", options.nginx)
    if not theirs or not nginx:
        lacks = "Reductionist (cargo install --locked --root .tools reductionist@0.13.1)" if not theirs else "nginx"
        print(f"# reductionist: skipped; there is no {lacks}")
        return
    version = subprocess.run([theirs, "--version"], capture_output=True, text=True).stdout.strip() or "Reductionist"
    size = options.size or (32 * data.MIB if options.quick else 512 * data.MIB)
    wide = data.make(options.data, "normal", size)
    # Both files have the same number of bytes.
    files = {"f64": wide, "f32": single(data.make(options.data, "normal", 2 * size))}
    pairs.warm(*files.values())
    with contextlib.ExitStack() as stack:
        probe = stack.enter_context(Probe(options.probe))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.data, prefix="nginx-")))
        # The workers of nginx run as another user than root.
        scratch.chmod(0o755)
        web = free_port()
        config = scratch / "nginx.conf"
        config.write_text(NGINX.format(dir=scratch, port=web, root=options.data.resolve()))
        user = ["-g", "user root;"] if os.geteuid() == 0 else []
        stack.enter_context(server([nginx, "-c", str(config), *user], web))
        nodes = stack.enter_context(Nodes(options.gristmill, options.data, NODES))
        ports = {}
        for name, how in SERVERS.items():
            ports[name] = free_port()
            command = [theirs, "--host", "127.0.0.1", "--port", str(ports[name]), *how]
            stack.enter_context(server(command, ports[name]))
        sides, ratios, best = {}, [], {}
        for dtype, path in files.items():
            nodes.put(probe, path, f"/{path.name}")
            truth = probe.run("sum", path, type=dtype)["result"]["sum"]
            values = np.memmap(path, f"<{dtype[0]}{int(dtype[1:]) // 8}", "r")
            magnitude = float(np.abs(values, dtype=np.float64).sum())
            # Reductionist adds in the type of the data. This is the bound of its rounding error.
            tolerance = 2.0 ** (-20 if dtype == "f32" else -48) * magnitude

            def ours(path=path, dtype=dtype, truth=truth):
                answer = nodes.ask(probe, "sum", f"/{path.name}", dtype=dtype)
                pairs.require(answer["result"]["sum"] == truth, f"{path.name}: {answer} instead of {truth}")
                return answer["seconds"]

            def asks(how, stretch, threads, path=path, dtype=dtype, truth=truth, tolerance=tolerance):
                client = Client(ports[how], threads, f"http://127.0.0.1:{web}/{path.name}", dtype)
                stack.callback(client.close)

                def side():
                    begun = time.perf_counter()
                    found = client.sum(size, stretch)
                    seconds = time.perf_counter() - begun
                    pairs.require(abs(found - truth) <= tolerance, f"{path.name}: {found!r} instead of {truth!r}")
                    return seconds

                return side

            choices = {
                f"{data.size_name(stretch)} x {threads}, {how}": asks(how, stretch, threads)
                for stretch in (STRETCHES if not options.quick else STRETCHES[:1])
                for threads in (THREADS if not options.quick else THREADS[:1])
                for how in SERVERS
            }
            found, best[dtype] = fastest(choices, TRIES if not options.quick else 1)
            for name, seconds in sorted(found.items(), key=lambda both: both[1])[:5]:
                print(f"# Reductionist, {dtype}, {name}: {seconds:.3f} s", flush=True)
            sides[f"gristmill, {dtype}"] = ours
            sides[f"Reductionist, {dtype}"] = choices[best[dtype]]
        times = pairs.rounds(sides, options.rounds)
    ratios = [pairs.ratio(times, f"gristmill, {dtype}", f"Reductionist, {dtype}", 1 / GOAL) for dtype in files]
    title = f"Sum of {data.size_name(size)}: Gristmill on {NODES} nodes and {version} over nginx"
    note = f"loopback; Reductionist with {best['f64']} (f64) and {best['f32']} (f32); goal: {GOAL} times as fast"
    pairs.report("reductionist", title, options, times, dict.fromkeys(times, size), ratios, note)


if __name__ == "__main__":
    main()
