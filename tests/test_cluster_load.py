"""Many clients at once, and large files: no answer mixes two versions, and memory stays bounded."""

import json
import math
import random
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest
from cluster import Up, until

CLIENTS = 64
MIB = 1 << 20


class Version:
    """One of the contents that a file may have."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        values = rng.normal(loc=seed, size=20_000 + 997 * seed)
        self.bytes = values.tobytes()
        self.sum = {"sum": math.fsum(values), "count": len(values)}
        above = np.flatnonzero(values > seed + 2.5)
        self.rows = [(int(at), float(values[at])) for at in above]


LAYOUTS = (("--stripe", "4KiB"), ("--stripe", "1000B", "--targets", "2"), ("--stripe", "64KiB", "--on", "2,0"))


@pytest.fixture(scope="module")
def versions():
    return [Version(seed) for seed in range(3)]


def lookup(number):
    return f"where=> {number + 2.5}"


class Crowd:
    """Clients that read in different ways and record wrong answers."""

    def __init__(self, up, versions, files):
        self.up, self.versions, self.files = up, versions, files
        self.wrong, self.right, self.stale = [], 0, 0
        self.lock = threading.Lock()

    def check(self, good, about):
        with self.lock:
            if good:
                self.right += 1
            else:
                self.wrong.append(about)

    def failed(self, text):
        with self.lock:
            if "replaced or removed" in text or "again" in text and "stale" in text.lower():
                self.stale += 1
            else:
                self.wrong.append(text)

    def by_command(self, rng):
        url = self.up.url(rng.choice(self.files))
        kind = rng.choice(["sum", "get", "lookup"])
        place = rng.choice(["storage", "client", "auto"])
        if kind == "get":
            done = self.up.grist("get", url, "-")
        elif kind == "sum":
            done = self.up.grist("run", "sum", url, "--type", "f64", "--json", "--place", place)
        else:
            number = rng.randrange(len(self.versions))
            done = self.up.grist(
                "run", "lookup", url, "--type", "f64", "--json", "--place", place, "--param", lookup(number)
            )
        if done.returncode != 0:
            return self.failed(done.stderr.decode())
        if kind == "get":
            return self.check(done.stdout in [v.bytes for v in self.versions], (kind, len(done.stdout)))
        result = json.loads(done.stdout)["result"]
        if kind == "sum":
            return self.check(result in [v.sum for v in self.versions], (place, result))
        rows = [(row["index"], row["value"]) for row in result["rows"]]
        possible = [self.matching(v, number) for v in self.versions]
        return self.check(rows in possible, (place, "rows", len(rows)))

    @staticmethod
    def matching(version, number):
        values = np.frombuffer(version.bytes)
        return [(int(at), float(values[at])) for at in np.flatnonzero(values > number + 2.5)]

    def by_flight(self, rng):
        flight = pytest.importorskip("pyarrow.flight")
        asked = {"gristmill": 1, "kernel": "sum", "path": rng.choice(self.files), "type": "f64"}
        try:
            with flight.connect(f"grpc://{self.up.entry}") as client:
                [result] = client.do_get(flight.Ticket(json.dumps(asked).encode())).read_all().to_pylist()
        except Exception as error:  # noqa: BLE001
            return self.failed(str(error))
        return self.check(result in [v.sum for v in self.versions], ("flight", result))

    def client(self, seed, rounds):
        rng = random.Random(seed)
        ask = self.by_flight if seed % 4 == 0 else self.by_command
        try:
            for _ in range(rounds):
                ask(rng)
        except Exception as error:  # noqa: BLE001
            self.wrong.append(repr(error))


def test_many_clients_while_files_are_swapped(nodes_of_test, versions, tmp_path):
    up = nodes_of_test(Up, nodes=3)
    files = [f"/file{n}" for n in range(4)]
    sources = []
    for n, version in enumerate(versions):
        sources.append(tmp_path / f"version{n}")
        sources[-1].write_bytes(version.bytes)
    for name in files:
        up.grist.ok("put", sources[0], up.url(name), *LAYOUTS[0])
    crowd = Crowd(up, versions, files)
    threads = [threading.Thread(target=crowd.client, args=(seed, 5)) for seed in range(CLIENTS)]
    reading = threading.Event()
    reading.set()

    def swap(names, seed):
        rng = random.Random(seed)
        while reading.is_set():
            done = up.grist("put", rng.choice(sources), up.url(rng.choice(names)), *rng.choice(LAYOUTS))
            if done.returncode != 0:
                crowd.wrong.append(("put", done.stderr))

    writers = [threading.Thread(target=swap, args=(files[2 * n : 2 * n + 2], n)) for n in range(2)]
    for thread in (*threads, *writers):
        thread.start()
    for thread in threads:
        thread.join(120)
    reading.clear()
    for thread in writers:
        thread.join(60)
    assert not any(thread.is_alive() for thread in (*threads, *writers))
    assert not crowd.wrong, crowd.wrong[:5]
    assert crowd.right + crowd.stale == CLIENTS * 5
    # Folds give way to writers, so many files are replaced before they are folded.
    assert crowd.right > CLIENTS, "clients are served"
    # The objects of the old versions are removed.
    def settled():
        ids = {json.loads(up.grist.ok("stat", up.url(name), "--json"))["id"] for name in files}
        return {path.name for path in up.objects()} == {f"file-{identity}" for identity in ids}

    until(settled, "old objects are cleared away", 60)


def test_writers_of_one_file_leave_one_of_theirs(nodes_of_test, versions, tmp_path):
    up = nodes_of_test(Up, nodes=2)
    sources = []
    for n, version in enumerate(versions):
        sources.append(tmp_path / f"version{n}")
        sources[-1].write_bytes(version.bytes)
    failed = []

    def put(n):
        done = up.grist("put", sources[n % 3], up.url("/file"), "--stripe", "4KiB")
        if done.returncode != 0:
            failed.append(done.stderr)

    threads = [threading.Thread(target=put, args=(n,)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed, failed[:3]
    assert up.get("/file") in [version.bytes for version in versions]
    until(lambda: len(up.objects()) == 2, "old objects are cleared away", 60)


def high_water(pid) -> int:
    """The peak memory of a process, in bytes."""
    with open(f"/proc/{pid}/status") as status:
        [kib] = re.findall(r"VmHWM:\s+(\d+) kB", status.read())
    return int(kib) << 10


def test_memory_stays_bounded_whatever_the_file(nodes_of_test, tmp_path):
    size = 600 * MIB
    if shutil.disk_usage(tmp_path).free < 4 * size:
        pytest.skip("there is no room for a big file")
    up = nodes_of_test(Up, nodes=3)
    block = b"".join(b"line %07d of many in a text\n" % n for n in range(32 * 1024))
    block = block + b"." * (MIB - len(block) % MIB - 1) + b"\n"
    source = tmp_path / "big"
    with open(source, "wb") as out:
        while out.tell() + len(block) <= size:
            out.write(block)
    blocks, length = source.stat().st_size // len(block), source.stat().st_size
    url = up.url("/big")
    up.grist.ok("put", source, url)
    source.unlink()
    counted = up.grist.answer("sum", url, "--type", "u8", "--place", "storage")["result"]
    assert counted == {"sum": sum(block) * blocks, "count": length}
    for place in ("storage", "client"):
        grep = up.grist.answer("grep", url, "--place", place, pattern="line 00.*77 of", count_only="true")
        assert grep["result"]["count"] == blocks * len(re.findall(rb"line 00.*77 of", block))
    some = up.grist.ok("run", "grep", url, "--place", "storage", "--param", "pattern=00077 of")
    assert some.count(b"\n") == blocks * block.count(b"00077 of")
    # The rows are most of the file.
    with open("/dev/null", "wb") as nowhere:
        done = up.grist("run", "grep", url, "--place", "storage", "--param", "pattern=line", stdout=nowhere)
        assert done.returncode == 0, done.stderr
        done = up.grist("get", url, "-", stdout=nowhere)
        assert done.returncode == 0, done.stderr
    if shutil.which("curl"):
        copy = tmp_path / "copy"
        subprocess.run(["curl", "-sS", "-f", "-o", copy, up.http("/big")], check=True)
        assert copy.stat().st_size == length
        subprocess.run(["curl", "-sS", "-f", "-T", copy, up.http("/uploaded")], check=True)
        copy.unlink()
        uploaded = up.grist.answer("sum", up.url("/uploaded"), "--type", "u8")["result"]
        assert uploaded == counted
    used = {number: high_water(pid) // MIB for number, pid in up.pids().items()}
    assert max(used.values()) < 256, used
