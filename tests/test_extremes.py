"""The largest allowed sizes: files of nearly 2^63 bytes, a million stripes, ten thousand files at once."""

import json
import os
import resource
import selectors
import socket
import time
from pathlib import Path

import numpy as np
import pytest
from cluster import Up

LARGEST = 2**63 - 1
#: The last seven bytes of the file. The line begins after the first one.
LAST = b"\n234567"
FILES = 10_000
#: Simultaneous uploads. A node takes fewer.
AT_ONCE = 1_500
DEADLINE = 600  # seconds; a bound on a hang, not a measure of speed


@pytest.fixture
def largest(tmp_path):
    """A file of 2^63 - 1 bytes, of which only the last seven are stored. Few file systems can hold one."""
    for folder in (tmp_path, Path("/dev/shm")):
        path = folder / f"largest-{os.getpid()}"
        try:
            with open(path, "wb") as file:
                file.truncate(LARGEST)
                file.seek(LARGEST - 7)
                file.write(LAST)
        except OSError:
            path.unlink(missing_ok=True)
            continue
        yield path
        path.unlink()
        return
    pytest.skip("no file system here takes a file of 2^63 - 1 bytes")


def test_the_end_of_the_largest_file_is_read_and_nothing_behind_it(grist, largest):
    end = LARGEST - 7
    for given in (("--range", f"{end}:7"), ("--range", f"{end}:"), ("--skip", end)):
        assert grist.ask("sum", largest, "--type", "u8", *given)["sum"] == sum(LAST), given
    assert grist.ask("wc", largest, "--range", f"{end}:7")["bytes"] == 6
    assert grist.ask("first", largest, "--type", "u8")["first"] == 0
    found = grist.ask("grep", largest, "--range", f"{end}:7", pattern="345")
    assert found["count"] == 1
    for given in (("--range", f"{end}:8"), ("--range", f"{LARGEST}:1"), ("--range", f"{2**64 - 1}:1"), ("--skip", LARGEST + 1)):
        grist.refuses(2, "run", "sum", largest, "--type", "u8", *given)


@pytest.fixture(scope="module")
def up(clusters):
    return clusters(Up, nodes=3)


def test_a_file_of_a_million_stripes(up):
    numbers = np.random.default_rng(11).integers(0, 100, 1 << 20, dtype="u4")
    up.put("/stripes", numbers.tobytes(), "--stripe", "4")
    stat = up.stat("/stripes")
    assert stat["length"] == 4 << 20 and stat["stripe_unit"] == 4, stat
    assert up.get("/stripes") == numbers.tobytes()
    for place in ("storage", "client"):
        how = ("--type", "u32", "--place", place)
        assert up.grist.ask("sum", up.url("/stripes"), *how)["sum"] == int(numbers.sum(dtype="u8"))
    median = up.grist.ask("median", up.url("/stripes"), "--type", "u32", "--place", "storage")
    assert median["median"] == float(np.median(numbers))
    up.grist.ok("rm", up.url("/stripes"))


class Uploads:
    """Many simultaneous uploads of small files over plain HTTP. An upload that the node refuses for now is repeated later."""

    def __init__(self, up, content):
        self.up, self.content = up, content
        host, _, port = up.entry.rpartition(":")
        self.address = (host, int(port))
        self.selector = selectors.DefaultSelector()
        self.waiting, self.told, self.later = list(content), {}, []

    def begin(self, name):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(self.address)
        body = self.content[name]
        head = f"PUT /files/at-once/{name} HTTP/1.1\r\nHost: {self.up.entry}\r\nConnection: close\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        self.selector.register(one, selectors.EVENT_WRITE, [name, request, b""])

    def step(self, one, state):
        """Continues an upload and returns whether it has ended."""
        name, request, answer = state
        if request:
            sent = one.send(request)
            state[1] = request[sent:]
            if not state[1]:
                self.selector.modify(one, selectors.EVENT_READ, state)
            return False
        read = one.recv(65536)
        state[2] = answer + read
        return not read

    def over(self, name, answer):
        status = int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None
        if status in (429, None):
            # Without an answer the result of an upload is unknown, so it is repeated.
            self.later.append((time.monotonic() + 1, name))
        else:
            self.told[name] = status

    def run(self):
        end = time.monotonic() + DEADLINE
        while len(self.told) < len(self.content):
            now = time.monotonic()
            assert now < end, f"{len(self.told)} of {len(self.content)} files after {DEADLINE} s"
            self.waiting += [name for at, name in self.later if at <= now]
            self.later = [one for one in self.later if one[0] > now]
            while self.waiting and len(self.selector.get_map()) < AT_ONCE:
                self.begin(self.waiting.pop())
            for key, _ in self.selector.select(timeout=0.1):
                try:
                    ended = self.step(key.fileobj, key.data)
                except OSError:
                    ended, key.data[2] = True, b""
                if ended:
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()
                    self.over(key.data[0], key.data[2])


def test_ten_thousand_files_at_once(up):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * AT_ONCE)), hard))
    content = {f"{n:05}": b"%d" % n * 20 for n in range(FILES)}
    uploads = Uploads(up, content)
    uploads.run()
    assert set(uploads.told.values()) <= {200, 201}, {name: code for name, code in uploads.told.items() if code not in (200, 201)}
    listed = {entry["name"] for entry in json.loads(up.grist.ok("ls", up.url("/at-once"), "--json"))["entries"]}
    assert listed == set(content)
    folder = up.folder / "back"
    up.grist.ok("get", up.url("/at-once"), folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == content
    up.grist.ok("rm", "-r", up.url("/at-once"))
