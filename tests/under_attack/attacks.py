"""The attacks. Each one is its own process and goes on until it is killed.

``python -m under_attack.attacks NAME ENTRY FOLDER`` runs one. The numbers are those of the review.
"""

import os
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from conftest import binary
from h2.exceptions import H2Error
from http2 import SERVICE, Connection, action, message, result, ticket

MIB = 1 << 20
#: Seconds before an attack begins again after the node ended its connection.
AGAIN = 0.05
#: Tries to change the priority of a session.
TRIES = 200
#: Seconds for which an attacker keeps its connections before it opens new ones.
HELD = 10

ALICE, BOB = "token-of-alice-0123456789", "token-of-bob-0123456789-x"


@dataclass(frozen=True)
class Site:
    """The target of the attacks, and the folder of the attacker."""

    entry: str
    folder: Path

    def url(self, path):
        return f"grist://{self.entry}{path}"

    def connect(self, **how):
        return Connection(self.entry, **how)

    def command(self, *args):
        """A command that Alice started."""
        env = {**os.environ, "GRISTMILL_TOKEN": ALICE}
        return subprocess.Popen([binary(), *args], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, cwd=self.folder)  # fmt: skip

    def reached(self, attack):
        """Notes that the attack has reached a node."""
        with open(self.folder / f"reached-{attack}", "a") as file:
            file.write("x")

    def socket(self):
        host, _, port = self.entry.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=HELD)


def end(commands):
    """Waits for commands. A command that is wrong in itself is not an attack."""
    codes = [one.wait() for one in commands]
    if 2 in codes:
        raise RuntimeError(f"the command was not understood: {commands[codes.index(2)].args}")


OF_ALICE = [("authorization", f"Bearer {ALICE}")]


def grep(pattern):
    return ticket({"gristmill": 1, "kernel": "grep", "path": "/words", "params": {"pattern": pattern}})


def hold(connections):
    """Reads no data from the connections for a while, but answers pings."""
    end = time.monotonic() + HELD
    while time.monotonic() < end:
        for connection in connections:
            connection.socket.settimeout(1)
            try:
                connection.pump()
            except TimeoutError:
                pass


def unread_rows(site):
    """Requests rows and never reads them: 128 requests with a window of 0."""
    with ExitStack() as stack:
        connections = [stack.enter_context(site.connect(window=0)) for _ in range(4)]
        for connection in connections:
            for _ in range(32):
                connection.ask(f"{SERVICE}DoGet", grep("fox"), headers=OF_ALICE)
        site.reached("unread_rows")
        hold(connections)


def millions_of_chunks(site):
    """Sends requests of a few bytes over millions of chunks, and leaves at once."""
    asked = [site.command("run", "sum", site.url("/chunks.h5"), "--var", "x", "--place", "storage") for _ in range(4)]
    # They need about so long to start if others use the processors.
    time.sleep(1)
    site.reached("millions_of_chunks")
    for one in asked:
        one.kill()
        one.wait()


def large_chunks(site):
    """Requests a small file whose chunks are large after decoding."""
    asked = [site.command("run", "mean", site.url("/bomb.h5"), "--var", "x", "--place", "storage") for _ in range(6)]
    end(asked)


def strangers(site):
    """Sends requests of 16 MiB without credentials."""
    with site.connect() as stranger:
        streams = [stranger.begin(f"{SERVICE}DoGet") for _ in range(64)]
        for stream in streams:
            stranger.send(stream, b"\0\1\0\0\0" + b"[" * MIB, end=False)


def large_requests(site):
    """Sends requests of Alice that are 16 MiB of JSON."""
    content = message(b"[" * (15 * MIB))
    with site.connect() as alice:
        for _ in range(4):
            alice.ask(f"{SERVICE}DoAction", content, headers=OF_ALICE)
            site.reached("large_requests")


def slow_requests(site):
    """Sends one byte of a request now and then, for extents, actions and uploads."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(site.socket()) for _ in range(256)]
        for number, one in enumerate(sockets):
            one.sendall(f"PUT /files/slow-{number} HTTP/1.1\r\nHost: {site.entry}\r\nAuthorization: Bearer {ALICE}\r\n"
                        f"Content-Length: {1 << 30}\r\n\r\n".encode())  # fmt: skip
        streams = []
        connections = [stack.enter_context(site.connect()) for _ in range(4)]
        for connection in connections:
            streams += [(connection, connection.begin(f"{SERVICE}DoAction", headers=OF_ALICE)) for _ in range(64)]
        site.reached("slow_requests")
        end = time.monotonic() + HELD
        while time.monotonic() < end:
            for one in sockets:
                try:
                    one.sendall(b"x")
                except OSError:
                    pass
            for connection, stream in streams:
                if not connection.answers[stream].ended:
                    connection.send(stream, b"\0", end=False)
            time.sleep(1)


def long_kernels(site):
    """Runs kernels that compute for minutes."""
    how = ("--type", "f64", "--place", "storage", "-p", "dims=1", "-p", "k=60000", "-p", "init=first", "-p", "max_iter=3")
    asked = [site.command("run", "kmeans", site.url("/numbers"), *how) for _ in range(8)]
    end(asked)


def patterns(site):
    """Sends regular expressions that would take hundreds of MB."""
    with site.connect() as alice:
        streams = [alice.ask(f"{SERVICE}DoGet", grep(pattern), headers=OF_ALICE) for pattern in (r"\pL{1000}", r"(\w{1,40}){8}x") * 8]
        for stream in streams:
            alice.answer(stream)


def abandoned_puts(site):
    """Begins puts and abandons them."""
    with site.connect() as alice:
        for number in range(200):
            body = b'{"path": "/left-%d", "unit": 65536}' % number
            alice.answer(alice.ask(f"{SERVICE}DoAction", action("create", body), headers=OF_ALICE))
            site.reached("abandoned_puts")


def listings(site):
    """Requests long listings and never reads them."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(site.socket()) for _ in range(40)]
        for one in sockets:
            one.sendall(f"GET /files/many/ HTTP/1.1\r\nHost: {site.entry}\r\nAuthorization: Bearer {ALICE}\r\n\r\n".encode())
        site.reached("listings")
        time.sleep(HELD)


def resets(site):
    """Opens streams and resets them."""
    with site.connect() as alice:
        for _ in range(5000):
            stream = alice.begin(f"{SERVICE}DoGet", headers=OF_ALICE)
            alice.h2.reset_stream(stream)
            alice.flush()


def connections(site):
    """Opens connections and sends nothing. There are more of them than the node takes."""
    with ExitStack() as stack:
        for _ in range(1100):
            stack.enter_context(site.socket())
        time.sleep(1)


def untaken_pages(site):
    """Requests pages that everybody may read, and takes no byte of them. There are more connections than the node takes."""
    with ExitStack() as stack:
        for _ in range(1100):
            stranger = stack.enter_context(site.connect(window=0))
            stranger.begin("/page.js", method="GET", kind="text/plain", end=True)
            site.reached("untaken_pages")
        time.sleep(1)


def extents(site):
    """Requests bytes of an object and never reads them."""
    with site.connect() as alice:
        found = result(alice.answer(alice.ask(f"{SERVICE}DoAction", action("open", b'{"path": "/words"}'), headers=OF_ALICE)))
    name, address = f"file-{found['info']['file']['id']}", found["info"]["file"]["targets"][0]["address"]
    body = b"\0" * 8 + (3 * MIB).to_bytes(8, "little")
    with ExitStack() as stack:
        host, _, port = address.rpartition(":")
        for _ in range(32):
            one = stack.enter_context(socket.create_connection((host, int(port)), timeout=HELD))
            one.sendall(f"POST /objects/{name}/extents HTTP/1.1\r\nHost: {address}\r\nx-gristmill-grant: {found['grant']}\r\n"
                        f"Content-Length: {16 * len(body)}\r\n\r\n".encode() + 16 * body)  # fmt: skip
        site.reached("extents")
        time.sleep(HELD)


ATTACKS = {
    attack.__name__: attack
    for attack in (unread_rows, millions_of_chunks, large_chunks, strangers, large_requests, slow_requests, long_kernels, patterns,
                   abandoned_puts, listings, resets, connections, untaken_pages, extents)
}  # fmt: skip


def go_on(name, site):
    """Attacks without end, and notes in a file that the attack has reached a node."""
    while True:
        try:
            ATTACKS[name](site)
        except (OSError, AssertionError, H2Error, KeyError) as error:
            # The node ended the connection or refused the request.
            if isinstance(error, FileNotFoundError):
                raise
            if isinstance(error, ConnectionRefusedError):
                time.sleep(AGAIN)
                continue
        site.reached(name)
        time.sleep(AGAIN)


def leave_processors():
    """Lets this process and its children use only processor time that others leave: real attackers have their own machines."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    # With autogroups the policy counts only inside a session, and an attack is a session of its own.
    # The kernel takes one such change in 100 ms from users without privileges.
    for _ in range(TRIES):
        try:
            Path("/proc/self/autogroup").write_text("19")
        except BlockingIOError:
            time.sleep(AGAIN)
        except OSError:
            # There are no autogroups, or they cannot be changed here.
            return
        else:
            return


if __name__ == "__main__":
    leave_processors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    go_on(sys.argv[1], Site(sys.argv[2], Path(sys.argv[3])))
