"""Nodes near the bytes of a file of a mount fold them, if a program of the administrator tells where they lie."""

import importlib.util
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import attached
import numpy as np
import pytest
from cluster import Nodes, until

EXAMPLE = Path(__file__).parent.parent / "examples" / "locate" / "lustre.py"
UNIT = 1 << 16

# It answers with the content of the file FILE.at beside a file, with {} without one, and notes what it was asked.
PROGRAM = """#!/bin/sh
cd {folder}
echo >> runs
while read -r line; do
  echo "$line" >> asked
  path=$(printf %s "$line" | sed 's/.*"path":"\\([^"]*\\)".*/\\1/')
  if [ -e "$path.at" ]; then tr -d '\\n' < "$path.at"; echo; else echo '{{}}'; fi
done
"""


class Located(Nodes):
    """Nodes whose entry node asks a program."""

    def __init__(self, folder, program, **how):
        self.program = program
        super().__init__(folder, **how)

    def args_of(self, number):
        return (*self.args, "--locate", self.program) if number == 0 else self.args


@pytest.fixture
def near(nodes_of_test, tmp_path):
    """Three nodes, and a folder that is attached as /t. `near.put` stores bytes and says where they lie."""
    folder, mount = tmp_path / "program", tmp_path / "mount"
    folder.mkdir()
    mount.mkdir(mode=0o755)
    program = folder / "locate"
    program.write_text(PROGRAM.format(folder=folder))
    program.chmod(0o755)
    up = nodes_of_test(Located, program=program, nodes=3, args=("--admin", "anonymous"))
    up.grist.ok("attach", mount, up.url("/t"))
    up.mount, up.program_folder = mount, folder

    def put(name, content, *components):
        (mount / name).write_bytes(content)
        if components:
            (mount / f"{name}.at").write_text(json.dumps({"components": components}))
        return up.url(f"/t/{name}")

    up.store = put
    return up


def bytes_of(up, name):
    """Bytes of a file that each node owns, as `stat` says."""
    return {one["target"]: one["bytes"] for one in up.stat(f"/t/{name}")["targets"]}


def read_by(up, url, *args):
    """Bytes that each node read for a request, and its answer."""
    answer = up.grist.answer("sum", url, "--type", "f64", "--place", "storage", *args)
    return {one["target"]: one["bytes"] for one in answer["nodes"]}, answer["result"]["sum"]


def at(up, *numbers):
    return [up.listen[number] for number in numbers]


def test_nodes_own_the_stripes_near_them(near):
    values = np.random.default_rng(3).normal(size=100_000)
    content, want = values.tobytes(), None
    cases = {
        "plain": [],
        "one": [{"unit": UNIT, "hosts": at(near, 2)}],
        "turn": [{"unit": UNIT, "hosts": at(near, 2, 0)}],
        "again": [{"unit": UNIT, "hosts": at(near, 1, 1, 2)}],
        "parts": [{"end": UNIT, "unit": UNIT, "hosts": at(near, 0)}, {"unit": 2 * UNIT, "hosts": at(near, 1, 2, 1)}],
        "others": [{"unit": UNIT, "hosts": ["oss7", *at(near, 2), "oss8"]}],
        "nowhere": [{"unit": UNIT, "hosts": ["oss7"]}],
        "short": [{"end": UNIT, "unit": UNIT, "hosts": at(near, 2)}],
    }
    for name, components in cases.items():
        url = near.store(f"{name}.f64", content, *components)
        owned = bytes_of(near, f"{name}.f64")
        assert sum(owned.values()) == len(content)
        stripe = {number: 0 for number in range(3)}
        known = {address: number for number, address in near.listen.items()}
        start = 0
        for part in components if name not in ("others", "nowhere", "short") else []:
            for byte in range(start, part.get("end", len(content)), UNIT):
                hosts = part["hosts"]
                stripe[known[hosts[byte // part["unit"] % len(hosts)]]] += min(UNIT, len(content) - byte)
            start = part.get("end")
        if any(stripe.values()):
            assert owned == {number: bytes for number, bytes in stripe.items() if bytes}, name
        if name == "others":
            assert owned[2] > len(content) / 3 and len(owned) == 3
        # Where they are folded does not change the answer.
        want = want or near.grist.answer("sum", url, "--type", "f64", "--place", "client")["result"]["sum"]
        for place in ("storage", "client", "auto"):
            answer = near.grist.answer("sum", url, "--type", "f64", "--place", place)
            assert answer["result"]["sum"] == want, (name, place)
        records = near.grist.answer("max", url, "--type", "f64", "--place", "storage")["result"]
        assert records["index"] == values.argmax(), name
        assert near.get(f"/t/{name}.f64") == content
    # One program answers for all of them.
    assert (near.program_folder / "runs").read_text() == "\n"
    asked = [json.loads(line) for line in (near.program_folder / "asked").read_text().splitlines()]
    assert {"path": f"{near.mount}/plain.f64", "length": len(content)} in asked


def test_several_files_and_lines(near):
    text = "".join(f"line {n} {'x' * (n % 50)}\n" for n in range(20_000))
    half = len(text) // 2
    parts = [{"end": UNIT, "unit": UNIT, "hosts": at(near, 2)}, {"unit": UNIT, "hosts": at(near, 0, 1, 1)}]
    one, two = near.store("a.log", text[:half].encode(), *parts), near.store("b.log", text[half:].encode(), *parts)
    for url, part in ((one, text[:half]), (two, text[half:])):
        for place in ("storage", "client"):
            found = near.grist.ok("run", "grep", url, "--pattern", "9 x{7}$", "--place", place).decode()
            lines = [line for line in part.split("\n") if line.endswith("9 " + "x" * 7)]
            assert [line for line in lines if line not in found] == []
            counted = near.grist.answer("wc", url, "--place", place)["result"]
            assert counted["lines"] == part.count("\n")


def test_chunks_of_variables(near, tmp_path):
    values = attached.made_temperatures(tmp_path)
    hosts = at(near, 1, 1, 2)
    near.store("t.nc", (tmp_path / "t.nc").read_bytes(), {"unit": 1 << 20, "hosts": hosts})
    assert set(bytes_of(near, "t.nc")) == {1, 2}
    for _ in range(2):
        answer = near.grist.answer("mean", near.url("/t/t.nc"), "--var", "t", "--axes", "t", "--place", "storage")
        np.testing.assert_allclose(answer["result"]["mean"]["values"], values.mean(0).ravel(), rtol=1e-5)
    # Each chunk of an array of Zarr is a file of its own.
    near.grist.ok("run", "count", near.url("/t/t.nc"), "--var", "t")


def test_a_node_near_the_bytes_that_is_away(near):
    values = np.arange(50_000, dtype="f8")
    url = near.store("x.f64", values.tobytes(), {"unit": UNIT, "hosts": at(near, 2, 1)})
    assert set(bytes_of(near, "x.f64")) == {1, 2}
    near.kill(2)
    until(lambda: 2 not in bytes_of(near, "x.f64"), "the entry node misses the node")
    assert near.grist.answer("sum", url, "--type", "f64")["result"]["sum"] == values.sum()


def test_a_program_that_fails_is_left_out(nodes_of_test, tmp_path):
    program = tmp_path / "locate"
    program.write_text("#!/bin/sh\nread -r line\necho no json\n")
    program.chmod(0o755)
    up = nodes_of_test(Located, program=program, nodes=2, args=("--admin", "anonymous"))
    (tmp_path / "m").mkdir(mode=0o755)
    (tmp_path / "m" / "x.f64").write_bytes(np.arange(9.0).tobytes())
    up.grist.ok("attach", tmp_path / "m", up.url("/t"))
    for _ in range(3):
        assert up.grist.answer("sum", up.url("/t/x.f64"), "--type", "f64")["result"]["sum"] == 36
    said = (up.folder / "node0.err").read_text()
    assert said.count("--locate") == 1 and "malformed" in said and "60 s" in said


def test_a_program_that_is_not_there(grist, tmp_path):
    (tmp_path / "file").write_text("#!/bin/sh\n")
    for name, why in (("none", "No such file"), ("file", "cannot be executed"), (".", "cannot be executed")):
        given = ("serve", "--target", tmp_path / "t", "--listen", "127.0.0.1:0", "--locate", tmp_path / name)
        assert why in grist.refuses(2, *given)


def plain(unit, osts, pattern=1, pool=False):
    """A layout as Lustre has it in `lustre.lov`."""
    magic = 0x0BD30BD0 if pool else 0x0BD10BD0
    header = struct.pack("<II16xIHH", magic, pattern, unit, len(osts), 0) + (b"pool".ljust(16, b"\0") if pool else b"")
    return header + b"".join(struct.pack("<16xII", 0, ost) for ost in osts)


def composite(*entries):
    """A layout of components: id, flags, begin, end, and a plain layout."""
    offset, table, parts = 32 + 48 * len(entries), b"", b""
    for number, flags, begin, end, part in entries:
        table += struct.pack("<IIQQII16x", number, flags, begin, end, offset + len(parts), len(part))
        parts += part
    return struct.pack("<IIIHHHBB4xQ", 0x0BD60BD0, offset + len(parts), 1, 0, len(entries), 0, 0, 0, 0) + table + parts


@pytest.fixture(scope="module")
def lustre():
    spec = importlib.util.spec_from_file_location("lustre", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_layouts_of_lustre(lustre, monkeypatch):
    hosts = lustre.read_hosts(["# OST host\n", "0 oss0\n", "1  oss0\n", "\n", "3 oss1\n"])
    assert hosts == {0: "oss0", 1: "oss0", 3: "oss1"}
    whole = 2**64 - 1
    made, cases = 0x10, {}
    cases["plain"] = plain(1 << 20, [3, 0]), [{"unit": 1 << 20, "hosts": ["oss1", "oss0"]}]
    cases["pool"] = plain(1 << 22, [0, 1, 2], pool=True), [{"unit": 1 << 22, "hosts": ["oss0", "oss0", ""]}]
    cases["released"] = plain(1 << 20, [], pattern=0x80000001), [{"unit": 1 << 20, "hosts": [""]}]
    progressive = composite(
        (1, made, 0, 1 << 16, plain(1 << 16, [], pattern=0x100)),
        (2, made, 1 << 16, 1 << 30, plain(1 << 20, [0, 3])),
        (3, 0, 1 << 30, whole, plain(1 << 20, [])),
    )
    cases["progressive"] = progressive, [
        {"end": 1 << 16, "unit": 1 << 16, "hosts": [""]},
        {"end": 1 << 30, "unit": 1 << 20, "hosts": ["oss0", "oss1"]},
        {"unit": 1 << 20, "hosts": [""]},
    ]  # fmt: skip
    mirrors = composite(
        (1 << 16 | 1, made | 1, 0, whole, plain(1 << 20, [0])), (2 << 16 | 2, made, 0, whole, plain(1 << 20, [3]))
    )
    cases["mirrors"] = mirrors, [{"unit": 1 << 20, "hosts": ["oss1"]}]
    for name, (layout, want) in cases.items():
        monkeypatch.setattr(os, "getxattr", lambda path, attribute, layout=layout: layout)
        assert lustre.located({"path": "/x", "length": 1}, hosts) == {"components": want}, name
        # A layout that is cut gives no answer, or another one, and never an error.
        for end in range(len(layout)):
            monkeypatch.setattr(os, "getxattr", lambda path, attribute, layout=layout[:end]: layout)
            lustre.located({"path": "/x", "length": 1}, hosts)


def test_the_program_for_lustre_runs(tmp_path):
    (tmp_path / "osts").write_text("0 oss0\n")
    (tmp_path / "file").write_bytes(b"x")
    # The file is on no Lustre.
    questions = "".join(json.dumps({"path": str(tmp_path / name), "length": 1}) + "\n" for name in ("file", "none"))
    done = subprocess.run([sys.executable, EXAMPLE, tmp_path / "osts"], input=questions, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}\n{}\n", "")
