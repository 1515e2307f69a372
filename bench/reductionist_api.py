"""The same requests for sums of chunks, to Gristmill and to Reductionist: requests of 64 KiB, of 16 MiB, and one of 256 MiB.

Both servers read one file of f64 from nginx on the same machine, over plain HTTP and over the protocol of S3 (a bucket that is read without
credentials). A node of Gristmill refuses a chunk of 512 MiB, so one request for the whole file cannot be compared.

The load comes from one thread of this process. It waits for all connections at once (epoll), sends requests that were made before, and
keeps the answers for a check after the clock has stopped. Several processes would take more from the two servers. Its own share
of a processor is printed. By default Reductionist writes some lines to its log for each request; here it writes only errors, unless
--log changes that. The program needs nginx (Debian: nginx-light). Without Reductionist (cargo install --locked --root .tools
reductionist@0.13.1) it measures only Gristmill, and keeps no results.
"""

import contextlib
import json
import math
import os
import selectors
import socket
import struct
import tempfile
import time
from pathlib import Path

import numpy as np

import data
import pairs
from cluster import GRISTMILL, Nodes
from reductionist import NGINX, find, free_port, item, server

OURS, THEIRS = "Gristmill", "Reductionist"
CONNECTIONS, LARGE_CONNECTIONS = 16, 8
SMALL, LARGE, WHOLE = 64 << 10, 16 * data.MIB, 256 * data.MIB
# Requests of 64 KiB in one measurement.
MANY, QUICK_MANY = 4096, 256

# Reductionist adds in f64. Each addition may be off by this share of the sum of the magnitudes.
ROUNDING = 2.0**-53

# The longest wait for any answer, in seconds.
PATIENCE = 120


class Connection:
    """One connection that is kept open, with one request on it at a time."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number, self.answer = None, b""

    def send(self, number, request):
        self.number, self.answer = number, b""
        self.socket.sendall(request)

    def receive(self):
        """Whether the answer is complete now."""
        more = self.socket.recv(1 << 16)
        if not more:
            raise SystemExit(f"a server closed a connection after {self.answer[:300]}")
        self.answer += more
        head, blank, body = self.answer.partition(b"\r\n\r\n")
        if not blank:
            return False
        name, found, rest = head.lower().partition(b"\r\ncontent-length:")
        if not found:
            raise SystemExit(f"an answer does not tell its length: {head}")
        return len(body) >= int(rest.split(b"\r\n", 1)[0])


class Load:
    """Sends requests over some connections, the next one as soon as an answer is there."""

    def __init__(self, port, connections):
        self.port, self.count = port, connections
        # Seconds of the processor, and of the clock.
        self.used = self.passed = 0.0

    def run(self, requests):
        """The answers and the seconds. The connections are made before the clock starts: servers close those that wait for long."""
        with contextlib.ExitStack() as stack:
            waiting = stack.enter_context(selectors.EpollSelector())
            connections = [Connection(self.port) for _ in range(self.count)]
            for one in connections:
                stack.enter_context(one.socket)
                waiting.register(one.socket, selectors.EVENT_READ, one)
            return self.timed(waiting, connections, requests)

    def timed(self, waiting, connections, requests):
        answers = [b""] * len(requests)
        begun, used = time.perf_counter(), time.process_time()
        left = iter(enumerate(requests))
        busy = 0
        for connection, (number, request) in zip(connections, left):
            connection.send(number, request)
            busy += 1
        while busy:
            ready = waiting.select(PATIENCE)
            if not ready:
                raise SystemExit(f"no answer in {PATIENCE} s")
            for key, _ in ready:
                connection = key.data
                if connection.receive():
                    answers[connection.number] = connection.answer
                    number, request = next(left, (None, None))
                    if request is None:
                        busy -= 1
                    else:
                        connection.send(number, request)
        seconds = time.perf_counter() - begun
        self.used += time.process_time() - used
        self.passed += seconds
        return answers, seconds


def made(port, interface, url, offset, size):
    """The bytes of one request."""
    asked = {"interface_type": interface, "url": url, "dtype": "float64", "byte_order": "little"}
    body = json.dumps(asked | {"offset": offset, "size": size}).encode()
    head = f"POST /v2/sum/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def sum_in(answer):
    """The sum in an answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if head.split(b" ", 2)[1] != b"200":
        raise SystemExit(f"a server answered {answer[:500]}")
    return struct.unpack("<d", item(body, 0)[0]["bytes"])[0]


class Side:
    """One way to ask one server. A call returns the seconds for all requests, after a check of all answers."""

    def __init__(self, port, connections, interface, url, chunks, truth):
        self.load = Load(port, connections)
        self.requests = [made(port, interface, url, offset, size) for offset, size in chunks]
        self.name, self.truth = url, truth

    def __call__(self):
        answers, seconds = self.load.run(self.requests)
        for answer, (exact, tolerance) in zip(answers, self.truth):
            found = sum_in(answer)
            pairs.require(abs(found - exact) <= tolerance, f"{self.name}: {found!r} instead of {exact!r}")
        return seconds


def truth(values, chunks, exact):
    """The sum of each chunk, and how far an answer may be from it."""
    found = []
    for offset, size in chunks:
        part = values[offset // 8 : (offset + size) // 8]
        bound = float(np.abs(part).sum()) * len(part) * ROUNDING
        found.append((math.fsum(part.tolist()), 0.0 if exact else bound))
    return found


def main():
    options = pairs.arguments(
        __doc__.split("\n")[0],
        quick_rounds=2,
        size=pairs.SIZE,
        gristmill=GRISTMILL,
        reductionist={"help": "the server to compare with (default: .tools/bin/reductionist, then PATH)"},
        log={"default": "error", "help": "RUST_LOG of Reductionist; empty: its default, some lines for each request"},
    )
    nginx, theirs = find("nginx"), find("reductionist", options.reductionist)
    if nginx is None:
        print("# no nginx is installed, so sums of chunks are not measured")
        return
    size = options.size or (32 * data.MIB if options.quick else 512 * data.MIB)
    path = Path(data.make(options.data, "normal", size)).resolve()
    pairs.warm(path)
    values = np.memmap(path, "<f8", "r")
    many = QUICK_MANY if options.quick else MANY
    # A stride that shares no divisor with the number of chunks: neighbours are not asked for one after the other.
    small = [(at * 37 % (size // SMALL) * SMALL, SMALL) for at in range(many)]
    large = [(at, min(LARGE, size - at)) for at in range(0, size, LARGE)]
    whole = [(0, min(WHOLE, size))]
    # Name: (connections, interface, chunks).
    ways = {
        f"64 KiB x {CONNECTIONS}, http": (CONNECTIONS, "http", small),
        f"64 KiB x {CONNECTIONS}, s3": (CONNECTIONS, "s3", small),
        f"16 MiB x {LARGE_CONNECTIONS}, http": (LARGE_CONNECTIONS, "http", large),
        f"{data.size_name(whole[0][1])} in one, http": (1, "http", whole),
    }
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (scratch / "files" / "bucket").mkdir(parents=True)
        (scratch / "files" / "bucket" / path.name).symlink_to(path)
        web, user = free_port(), "user root;" if os.geteuid() == 0 else ""
        config = scratch / "nginx.conf"
        # With tcp_nopush each short answer would wait 40 ms for an acknowledgement.
        quick = NGINX.replace("tcp_nopush on", "tcp_nopush off")
        config.write_text(user + quick.format(dir=scratch, port=web, root=scratch / "files"))
        stack.enter_context(server([nginx, "-p", str(scratch), "-c", str(config)], web))
        nodes = stack.enter_context(Nodes(options.gristmill, options.data, 1, options=("--outside-sources", "all")))
        ports = {OURS: int(nodes.address.rsplit(":", 1)[1])}
        if theirs:
            ports[THEIRS] = free_port()
            log = ["env", f"RUST_LOG={options.log}"] if options.log else ["env", "-u", "RUST_LOG"]
            command = [*log, theirs, "--host", "127.0.0.1", "--port", str(ports[THEIRS])]
            stack.enter_context(server(command, ports[THEIRS]))
        url = f"http://127.0.0.1:{web}/bucket/{path.name}"
        sides = {
            f"{who}, {way}": Side(port, connections, interface, url, chunks, truth(values, chunks, who == OURS))
            for way, (connections, interface, chunks) in ways.items()
            for who, port in ports.items()
        }
        times = pairs.rounds(sides, options.rounds)
    for name, side in sides.items():
        seconds, share = float(np.median(times[name])), side.load.used / side.load.passed
        rate = len(side.requests) / seconds
        print(f"# {name}: {rate:,.1f} requests/s, median of {seconds:.3f} s; the load takes {share:.2f} of a processor")
    if not theirs:
        print("# There is no Reductionist here, so only Gristmill was measured.")
        return
    sizes = {f"{who}, {way}": sum(size for _, size in ways[way][2]) for way in ways for who in ports}
    ratios = [pairs.ratio(times, f"{OURS}, {way}", f"{THEIRS}, {way}") for way in ways]
    title = f"Requests for sums of chunks: one node of Gristmill and Reductionist, from nginx"
    log = f"RUST_LOG={options.log or '(default)'}"
    note = f"loopback; {log}; {many:,} requests of 64 KiB over {CONNECTIONS} connections, 16 MiB over {LARGE_CONNECTIONS}"
    pairs.report("reductionist_api", title, options, times, sizes, ratios, note)


if __name__ == "__main__":
    main()
