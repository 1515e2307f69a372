"""Ctrl-C and resumption from the checkpoint, and files that change while they are read."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from conftest import TIMEOUT, one_message, sane

SIZE = 3 << 30
ENOUGH = 32 << 20
# A few numbers among zeros, by their index in f64 elements.
ISLANDS = {0: 1.5, 7: -2.25, (SIZE >> 4) - 1: 1e300, (SIZE >> 4): -1e300, (3 << 26) + 5: 0.1, (SIZE >> 3) - 1: 4.0}


@pytest.fixture
def sparse(tmp_path):
    path = tmp_path / "sparse.f64"
    fill(path)
    yield path
    path.unlink()


def fill(path):
    with path.open("wb") as file:
        file.truncate(SIZE)
        for index, value in ISLANDS.items():
            file.seek(8 * index)
            file.write(np.array([value]).tobytes())


def bytes_read(pid):
    """The bytes that a process has requested from the system so far, or None if it has ended."""
    try:
        with open(f"/proc/{pid}/io") as file:
            return int(file.readline().split()[1])
    except OSError:
        return None


def start(grist, *args):
    """Starts a run and waits until it has read a good part of its file or has ended."""
    process = subprocess.Popen(
        [grist.path, "run", *map(str, args)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=grist.env, cwd=grist.cwd,
    )
    begun = bytes_read(process.pid) or 0
    patience = time.monotonic() + TIMEOUT
    while process.poll() is None and (bytes_read(process.pid) or 0) - begun < ENOUGH:
        if time.monotonic() > patience:
            process.kill()
            pytest.fail(f"nothing was read: {process.communicate()}")
        os.sched_yield()
    return process


def end(process):
    out, err = process.communicate(timeout=TIMEOUT)
    sane(process.returncode, err)
    return process.returncode, out, err


def stopped(grist, *args):
    """Repeats a run until Ctrl-C stops one, and returns the output of that run."""
    for _ in range(30):
        process = start(grist, *args)
        process.send_signal(signal.SIGINT)
        code, out, _ = end(process)
        if code == 130:
            return out
    pytest.fail("no run was long enough to be interrupted")


@pytest.mark.parametrize(
    "kernel",
    [("sum",), ("minmax",), ("lookup", "--param", "where=!= 0"), ("histogram", "--param", "bins=4", "--param", "range=-3:5")],
    ids=lambda kernel: kernel[0],
)
def test_stopped_and_resumed_is_as_run_at_once(grist, sparse, tmp_path, kernel):
    name, *params = kernel
    how = [name, sparse, "--type", "f64", "--lanes", "2", *params]
    want = grist.ok("run", *how)
    checkpoint = tmp_path / "checkpoint"
    stops, out = 0, b""
    for attempt in range(30):
        process = start(grist, *how, "--checkpoint", checkpoint)
        if stops < 3:
            process.send_signal(signal.SIGINT)
        code, printed, message = end(process)
        out += printed
        if code == 0:
            assert out == want
            assert not checkpoint.exists()
            if stops:
                break
            out = b""
            continue
        assert code == 130 and checkpoint.exists() and str(checkpoint).encode() in message
        stops += 1
    assert stops >= 1, "no run was long enough to be interrupted"
    assert code == 0


def test_a_checkpoint_fits_only_its_own_request(grist, sparse, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    how = ["sum", sparse, "--type", "f64", "--checkpoint", checkpoint]
    stopped(grist, *how)
    saved = checkpoint.read_bytes()
    for other in (["mean", *how[1:]], [*how, "--range", "0:800"]):
        message = grist.refuses(2, "run", *other)
        assert "of another request, of 'sum'" in message
    small = tmp_path / "other.f64"
    small.write_bytes(bytes(800))
    grist.refuses(2, "run", "sum", small, *how[2:])
    for bad in (b"", b"nonsense", saved[:-1], saved[: len(saved) // 2], saved + b"x"):
        checkpoint.write_bytes(bad)
        message = grist.refuses(1, "run", *how)
        assert str(checkpoint) in message or "saved" in message
        assert checkpoint.read_bytes() == bad
    checkpoint.write_bytes(saved)
    with sparse.open("r+b") as file:
        file.write(np.array([9.0]).tobytes())
    assert "changed" in grist.refuses(1, "run", *how)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_copy_that_is_stopped_leaves_nothing(grist, tmp_path, how):
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.truncate(1 << 40)
    folder = tmp_path / "folder"
    folder.mkdir()
    process = subprocess.Popen(
        [grist.path, "get", source, folder / "copy"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=grist.env,
    )  # fmt: skip
    patience = time.monotonic() + TIMEOUT
    while not any(path.stat().st_size for path in folder.iterdir()):
        assert process.poll() is None and time.monotonic() < patience
        os.sched_yield()
    process.send_signal(how)
    code, out, err = end(process)
    assert (code, out, list(folder.iterdir())) == (130, b"", []) and str(folder / "copy") in one_message(err)


OTHER_QUESTIONS = {
    "condition": (("lookup", "--type", "f64", "-pcount_only=true", "-pwhere=!= 0"), "-pwhere=> -1e308"),
    "NaN rule": (("mean", "--type", "f64"), "-pnan=skip"),
    "ddof": (("var", "--type", "f64"), "-pddof=1"),
    "bins": (("histogram", "--type", "f64", "-pbins=3", "-prange=0:1"), "-prange=0:9"),
    "type": (("minmax", "--type", "f64"), "--type=u64"),
    "byte order": (("sum", "--type", "f64"), "--big-endian"),
    "place": (("sum", "--type", "f64", "--skip=0", f"--range=0:{SIZE - 8}"), "--skip=8", f"--range=8:{SIZE - 8}"),
    "pattern": (("grep", "--record=4096", "-pcount_only=true", "-ppattern=a"), "-ppattern=z"),
}


@pytest.mark.parametrize("what", OTHER_QUESTIONS)
def test_a_checkpoint_of_another_question_is_refused(grist, sparse, tmp_path, what):
    """Without this check the answer would mix two questions."""
    (kernel, *asked), *changed = OTHER_QUESTIONS[what]
    names = {flag.split("=")[0] for flag in changed}
    kept = [flag for flag in asked if flag.split("=")[0] not in names]
    if "--type=u64" in changed:
        kept = []
    checkpoint = tmp_path / "checkpoint"
    stopped(grist, kernel, sparse, "--checkpoint", checkpoint, *asked)
    done = grist("run", kernel, sparse, "--checkpoint", checkpoint, *kept, *changed)
    message = one_message(done.stderr)
    assert done.returncode == 2 and done.stdout == b"", done.stdout
    assert str(checkpoint) in message and f"of another request, of '{kernel}'" in message, message


def test_rows_in_json_are_whole_after_going_on(grist, sparse, tmp_path):
    how = ["lookup", sparse, "--type", "f64", "--json", "--param", "where=!= 0"]
    want = json.loads(grist.ok("run", *how))["result"]
    checkpoint = tmp_path / "checkpoint"
    begun = stopped(grist, *how, "--checkpoint", checkpoint)
    rest = grist.ok("run", *how, "--checkpoint", checkpoint)
    try:
        whole = json.loads(begun + rest)
    except ValueError:
        whole = json.loads(rest)
    assert whole["result"] == want


@pytest.mark.parametrize("kernel", [("sum",), ("lookup", "--param", "where=== 1.5")], ids=lambda kernel: kernel[0])
@pytest.mark.parametrize("change", ["cut", "emptied", "written", "removed"])
def test_a_file_that_changes_while_it_is_read(grist, sparse, kernel, change):
    name, *params = kernel
    how = [name, sparse, "--type", "f64", *params]
    right = grist.ok("run", *how)
    refused = False
    for _ in range(10):
        process = start(grist, *how)
        if change == "cut":
            os.truncate(sparse, 4096)
        elif change == "emptied":
            sparse.open("wb").close()
        elif change == "written":
            with sparse.open("r+b") as file:
                file.seek(SIZE // 2 + 16)
                file.write(np.array([2.0]).tobytes())
        else:
            sparse.unlink()
        code, out, message = end(process)
        if code == 0:
            # The run had read everything before the change, or only the name of the file was removed.
            assert out == right
        else:
            assert code == 1 and str(sparse) in one_message(message)
            refused = True
            break
        fill(sparse)
    assert refused == (change != "removed")
