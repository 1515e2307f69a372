"""A stopped disk with hundreds of uploads: readers still get answers, and no acknowledged upload is lost."""

import json
import socket
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from cluster import Up, until

pytest.importorskip("pyarrow.flight", reason="pyarrow is not installed")

from raw import UNIT, action, ask, opened, parts

UPLOADS = 600
CONTENT = bytes(range(250)) * 4
NUMBERS = np.arange(100_000, dtype="f8")


class Stallable(Up):
    """Nodes whose disks wait in every sync while a certain file exists."""

    def __init__(self, folder, **how):
        library = folder / "stalled_disk.so"
        source = Path(__file__).with_name("stalled_disk.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        self.stalled = folder / "stalled"
        super().__init__(folder, env={"LD_PRELOAD": str(library), "STALLED_DISK": str(self.stalled)}, **how)


class Uploads:
    """Uploads that have begun and lack their last byte, so that all can end at once."""

    def __init__(self, up, count):
        self.puts = [action(up, "create", {"path": f"/many/{n}", "unit": UNIT, "on": [1]}) for n in range(count)]
        self.sockets, self.threads, self.answers = [], [], {}
        for put in self.puts:
            name, [place] = parts(put)
            host, _, port = place["address"].rpartition(":")
            one = socket.create_connection((host, int(port)), timeout=60)
            head = f"PUT /objects/{name} HTTP/1.1\r\nHost: {place['address']}\r\nx-gristmill-grant: {put['grant']}\r\n"
            one.sendall(f"{head}Connection: close\r\nContent-Length: {len(CONTENT)}\r\n\r\n".encode() + CONTENT[:-1])
            self.sockets.append(one)

    def end(self):
        for number, one in enumerate(self.sockets):
            try:
                one.sendall(CONTENT[-1:])
            except OSError:
                pass  # The node refused it already, as its answer says.
            self.threads.append(threading.Thread(target=self.answer, args=(number, one)))
            self.threads[-1].start()

    def answer(self, number, one):
        found = b""
        with one:
            try:
                while chunk := one.recv(65536):
                    found += chunk
            except ConnectionResetError:
                pass  # The node closed the connection after its answer.
        self.answers[number] = found

    def wait(self):
        for thread in self.threads:
            thread.join()
        return self.answers


def test_who_reads_is_answered_while_hundreds_of_uploads_wait_for_the_disk(nodes_of_test):
    up = nodes_of_test(Stallable, nodes=2)
    up.put("/numbers", NUMBERS.tobytes(), "--stripe", "4KiB")
    uploads = Uploads(up, UPLOADS)
    up.stalled.touch()
    try:
        uploads.end()
        # The accepted uploads wait, and the node has refused the others.
        found, address = opened(up, "/numbers"), up.addresses()[1]
        for _ in range(5):
            assert up.get("/numbers") == NUMBERS.tobytes()
            total = json.loads(up.grist.ok("run", "sum", up.url("/numbers"), "--type", "f64", "--place", "storage", "--json"))
            assert float(total["result"]["sum"]) == NUMBERS.sum()
            assert b"numbers" in up.grist.ok("ls", up.url("/"))
        name, _ = parts(found)
        assert ask(address, "GET", f"/objects/{name}", found["grant"])[0] == 200
        assert sum(thread.is_alive() for thread in uploads.threads) > UPLOADS // 2
    finally:
        up.stalled.unlink()
    answers = uploads.wait()
    assert len(answers) == UPLOADS and all(answers.values()), [number for number in range(UPLOADS) if not answers.get(number)]
    status = {number: int(answer.split(b" ", 2)[1]) for number, answer in answers.items()}
    assert set(status.values()) <= {201, 429}, sorted(set(status.values()))
    kept = [number for number, code in status.items() if code == 201]
    assert len(kept) > UPLOADS // 2
    for number in kept:
        receipt = json.loads(answers[number].partition(b"\r\n\r\n")[2])
        commit = {"id": uploads.puts[number]["file"]["id"], "length": len(CONTENT), "receipts": [receipt]}
        action(up, "commit", commit)
    for number in kept[::50]:
        assert up.get(f"/many/{number}") == CONTENT
    listed = json.loads(up.grist.ok("ls", up.url("/many"), "--json"))["entries"]
    assert len(listed) == len(kept)
    assert until(lambda: up.grist("fsck", up.url("/")).returncode == 0, "files and objects agree")
