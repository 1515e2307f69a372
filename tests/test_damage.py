"""Damaged and missing targets, full disks and missing permissions: never a wrong answer, and never a partial file."""

import json
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from conftest import TIMEOUT, one_message, sane
from identity import OTHER, other  # noqa: F401

ROOT_USER = os.geteuid() == 0
VALUES = np.arange(5000.0)
HOW = ("--type", "f64")


@pytest.fixture
def layout(striped):
    return striped(VALUES.tobytes(), "1000B", 3)


def right_or_refused(grist, layout, target):
    """Asserts the right answer or an error that names the target. Returns whether it was an error."""
    done = grist("run", "sum", layout, *HOW, "--json")
    if done.returncode == 0:
        assert b'"sum":12497500.0,"count":5000' in done.stdout
        return False
    assert done.returncode == 1 and done.stdout == b""
    assert str(target) in one_message(done.stderr)
    return True


def objects(target):
    return [path for path in target.glob("objects/**/*") if path.is_file()]


@pytest.mark.parametrize("size", [0, 1, 15, 100, 512, 4095, 4096, 4097, 8192])
def test_metadata_cut_short(grist, layout, size):
    target = layout.parent / "target1"
    meta = target / "meta.sqlite"
    for log in target.glob("meta.sqlite-*"):
        log.unlink()
    os.truncate(meta, min(size, meta.stat().st_size - 1))
    assert right_or_refused(grist, layout, target)


def test_metadata_overwritten(grist, layout):
    target = layout.parent / "target0"
    meta = target / "meta.sqlite"
    good = meta.read_bytes()
    for log in target.glob("meta.sqlite-*"):
        log.unlink()
    for content in (b"not a database" * 1000, bytes(len(good)), good[:100] + os.urandom(len(good) - 100)):
        meta.write_bytes(content)
        assert right_or_refused(grist, layout, target)
    meta.unlink()
    assert right_or_refused(grist, layout, target)
    meta.write_bytes(good)
    assert not right_or_refused(grist, layout, target)


def test_metadata_with_bits_flipped(grist, layout):
    target = layout.parent / "target2"
    meta = target / "meta.sqlite"
    good = meta.read_bytes()
    rng = np.random.default_rng(40)
    used = [at for at, byte in enumerate(good) if byte]
    failures = 0
    for at in [*range(0, 100, 7), *rng.choice(used, 60).tolist()]:
        bad = bytearray(good)
        bad[at] ^= 1 << int(rng.integers(8))
        meta.write_bytes(bad)
        failures += right_or_refused(grist, layout, target)
    assert failures
    meta.write_bytes(good)
    assert not right_or_refused(grist, layout, target)


def test_writing_commands_on_a_damaged_store(grist, layout, tmp_path):
    target = layout.parent / "target1"
    (target / "meta.sqlite").write_bytes(b"not a database" * 1000)
    source = tmp_path / "source"
    source.write_bytes(b"abc")
    other = tmp_path / "other.grist"
    message = grist.refuses(1, "put", source, other, "--on", target)
    assert str(target) in message and not other.exists()
    assert str(target) in grist.refuses(1, "get", layout, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("damage", ["object missing", "object cut", "object grown", "target missing", "target a file", "target empty"])
def test_missing_and_changed_objects(grist, layout, tmp_path, damage):
    target = layout.parent / "target1"
    (held,) = objects(target)
    if damage == "object missing":
        held.unlink()
    elif damage == "object cut":
        os.truncate(held, held.stat().st_size // 2)
    elif damage == "object grown":
        with held.open("ab") as file:
            file.write(b"more")
    else:
        shutil.rmtree(target)
        if damage == "target a file":
            target.write_text("file")
        elif damage == "target empty":
            target.mkdir()
    before = sorted(layout.parent.rglob("*"))
    failed = right_or_refused(grist, layout, target)
    assert failed or damage == "object grown"
    copied = grist("get", layout, tmp_path / "copy")
    assert copied.returncode == int(failed)
    assert (tmp_path / "copy").exists() != failed
    assert not [path for path in tmp_path.iterdir() if "partial" in path.name]
    # A read creates no files and repairs nothing silently.
    after = [path for path in sorted(layout.parent.rglob("*")) if "meta.sqlite-" not in path.name]
    assert after == [path for path in before if "meta.sqlite-" not in path.name]


def test_rm_of_what_is_partly_gone_can_be_finished(grist, layout):
    (held,) = objects(layout.parent / "target1")
    held.unlink()
    done = grist("rm", layout)
    assert done.returncode in (0, 1)
    assert not layout.exists()
    assert not objects(layout.parent / "target0")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is not there")
@pytest.mark.parametrize(
    "command",
    ["run sum FILE --type f64", "run sum FILE --type f64 --json", "run lookup FILE --type f64 -pwhere=>-1",
     "run lookup FILE --type f64 -pwhere=>-1 --json", "kernels", "kernels sum", "completions bash", "stat FILE", "get FILE -"],
)
def test_answers_that_cannot_be_written(grist, layout, command):
    with open("/dev/full", "wb") as full:
        done = grist(*(str(layout) if word == "FILE" else word for word in command.split()), stdout=full)
    assert done.returncode == 1
    assert "space" in one_message(done.stderr)


def on_a_small_disk(grist, folder, script):
    """Runs shell commands with 1 MiB of disk mounted at `folder`, which other processes cannot see."""
    if not ROOT_USER or not shutil.which("unshare"):
        pytest.skip("a small disk needs root and unshare")
    folder.mkdir()
    mounted = f'mount -t tmpfs -o size=1m tmpfs "{folder}" || exit 77\n{script}'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounted], capture_output=True, timeout=TIMEOUT,
        env={**grist.env, "G": str(grist.path)}, cwd=grist.cwd,
    )
    if done.returncode == 77:
        pytest.skip(f"no disk could be mounted: {done.stderr.decode()}")
    return done


def test_put_onto_a_full_disk(grist, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(os.urandom(4 << 20))
    script = """
    "$G" put source file.grist --on small/a,roomy --stripe 64KiB; code=$?
    find small -path '*objects/*' -type f -size +0 1>&2
    exit $code"""
    done = on_a_small_disk(grist, tmp_path / "small", script)
    sane(done.returncode, done.stderr)
    assert done.returncode == 1 and done.stdout == b""
    assert "small/a" in one_message(done.stderr) and b"space" in done.stderr
    assert not (tmp_path / "file.grist").exists()
    assert not objects(tmp_path / "roomy")


def test_put_that_replaces_keeps_the_old_file_when_the_disk_is_full(grist, tmp_path):
    (tmp_path / "old").write_bytes(b"old bytes")
    (tmp_path / "source").write_bytes(os.urandom(4 << 20))
    script = """
    "$G" put old file.grist --on small/a,roomy --stripe 3B >&2 || exit 1
    "$G" put source file.grist --on small/a,roomy --stripe 64KiB && exit 2
    "$G" get file.grist -"""
    done = on_a_small_disk(grist, tmp_path / "small", script)
    assert (done.returncode, done.stdout) == (0, b"old bytes"), done.stderr


def test_layout_file_and_copies_on_a_full_disk(grist, tmp_path):
    (tmp_path / "source").write_bytes(os.urandom(2 << 20))
    script = """
    dd if=/dev/zero of=small/fill bs=64k 2>/dev/null
    "$G" put source small/file.grist --on a,b; put=$?
    rm small/fill
    "$G" get source small/copy; get=$?
    ls -A small
    exit $((put * 10 + get))"""
    done = on_a_small_disk(grist, tmp_path / "small", script)
    assert done.returncode == 11 and done.stdout == b"", (done.stdout, done.stderr)
    put, get = done.stderr.decode().splitlines()
    assert "small" in put and "space" in put
    assert "small/copy" in get and "space" in get
    assert not objects(tmp_path / "a") + objects(tmp_path / "b")


@pytest.fixture
def nobody(grist):
    """Runs the program as a user without rights, in a folder that this user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="gristmill-test-"))
    folder.chmod(0o755)
    prefix = []
    program = grist.path
    if ROOT_USER:
        if not shutil.which("setpriv"):
            pytest.skip("running as another user needs setpriv")
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        program = shutil.copy(grist.path, folder / "gristmill")
        os.chmod(program, 0o755)

    def run(*args):
        done = subprocess.run(
            [*prefix, program, *map(str, args)], cwd=folder, env=grist.env, capture_output=True, timeout=TIMEOUT
        )
        sane(done.returncode, done.stderr)
        return done

    run.folder = folder
    yield run
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)


def refused(done, *needles):
    assert done.returncode == 1 and done.stdout == b"", (done.returncode, done.stderr)
    message = one_message(done.stderr)
    for needle in ("ermission", *needles):
        assert needle in message, message


def test_no_permission(grist, nobody):
    folder = nobody.folder
    (folder / "values").write_bytes(VALUES.tobytes())
    secret = folder / "secret"
    secret.write_bytes(VALUES.tobytes())
    secret.chmod(0)
    closed = folder / "closed"
    closed.mkdir()
    shutil.copy(folder / "values", closed / "values")
    closed.chmod(stat.S_IRUSR if ROOT_USER else 0)
    assert nobody("run", "sum", "values", *HOW).returncode == 0
    refused(nobody("run", "sum", "secret", *HOW), "secret", "read")
    refused(nobody("run", "sum", "closed/values", *HOW), "closed/values")
    refused(nobody("get", "secret", "/dev/null/x"), "secret")
    folder.chmod(0o555)
    refused(nobody("get", "values", "copy"), "copy")
    refused(nobody("put", "values", "file.grist", "--on", "store"), "store")
    assert not (folder / "copy").exists() and not (folder / "file.grist").exists()


def test_no_permission_on_a_target(grist, nobody):
    folder = nobody.folder
    (folder / "values").write_bytes(VALUES.tobytes())
    stores = [folder / "one", folder / "two"]
    layout = grist.put(folder / "values", folder / "file.grist", stores, "1000B")
    for path in (*folder.rglob("*"),):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "gristmill").chmod(0o755) if ROOT_USER else None
    done = nobody("run", "sum", layout, *HOW)
    # A user may read where they may not write.
    assert (done.returncode, done.stdout[:17]) == (0, b"sum    12497500.0"), done.stderr
    stores[1].chmod(0)
    refused(nobody("run", "sum", layout, *HOW), "two")
    stores[1].chmod(0o755)
    (held,) = objects(stores[0])
    held.chmod(0)
    refused(nobody("run", "sum", layout, *HOW), "one")


@pytest.mark.skipif(not ROOT_USER, reason="only root can act as a user who may not read a folder")
def test_a_layout_file_that_is_in_place_keeps_its_objects(other):
    """The folder of the layout file cannot be opened, so it cannot be synced. The put fails after the layout file has its name."""
    folder = Path(tempfile.mkdtemp(prefix="gm"))
    try:
        (folder / "source").write_bytes(VALUES.tobytes())
        (folder / "closed").mkdir()
        for path in (folder, folder / "source", folder / "closed"):
            os.chown(path, OTHER, OTHER)
        (folder / "closed").chmod(0o300)
        layout, targets = folder / "closed" / "a.grist", f"{folder}/t0,{folder}/t1"
        for _ in range(2):
            done = other("put", folder / "source", layout, "--on", targets)
            assert done.returncode == 1 and str(folder / "closed") in one_message(done.stderr)
            assert json.loads(other("run", "sum", layout, *HOW, "--json").stdout)["result"]["sum"] == VALUES.sum()
    finally:
        shutil.rmtree(folder)
