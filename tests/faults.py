"""Shared parts of the tests of failures: requests in the background, errors that name a node, and checks of what is left behind."""

import json
import signal
import subprocess

import numpy as np
from cluster import until
from conftest import binary, one_message, sane

MIB = 1 << 20
BOUND = 30  # seconds within which a request to a node that does not answer must end


def noise(count, seed=1) -> bytes:
    return np.random.default_rng(seed).bytes(count)


def numbers(count, seed=1) -> bytes:
    return np.random.default_rng(seed).normal(size=count).tobytes()


def fails(cluster, *args, names=(), **how) -> str:
    """Runs a command that fails because a node is missing. The error must contain these names."""
    done = cluster.grist(*args, timeout=BOUND, **how)
    assert done.returncode == 1, (args, done.returncode, done.stdout[:200], done.stderr)
    text = one_message(done.stderr)
    for name in names:
        assert name in text, text
    return text


def source(cluster, content, name="source"):
    path = cluster.folder / name
    path.write_bytes(content)
    return path


def visible(cluster, path="/"):
    listed = json.loads(cluster.grist.ok("ls", cluster.url(path), "--json"))["entries"]
    return {entry["name"] for entry in listed}


def identity(cluster, path):
    return "file-" + json.loads(cluster.grist.ok("stat", cluster.url(path), "--json"))["id"]


def only_objects_of(cluster, *paths):
    """Waits until the nodes hold only the objects of these files."""
    wanted = {identity(cluster, path) for path in paths}
    until(lambda: {path.name for path in cluster.objects()} == wanted, "what was not finished is cleared away", 90)


def queued(address) -> bool:
    """Whether a connection of this address has bytes that the process has not read yet."""
    port = f"{int(address.rpartition(':')[2]):04X}"
    with open("/proc/net/tcp") as table:
        for line in list(table)[1:]:
            words = line.split()
            if words[1].endswith(f":{port}") and words[3] == "01" and int(words[4].split(":")[1], 16) > 0:
                return True
    return False


class Background:
    """A client's command that runs in the background."""

    def __init__(self, started, cluster, *args, stdin=subprocess.DEVNULL, env=None):
        self.child = subprocess.Popen(
            [binary(), *map(str, args)], cwd=cluster.folder, env={**cluster.grist.env, **(env or {})}, stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.processes.append(self)

    def signal(self, number):
        if self.child.poll() is None:
            self.child.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.child.communicate()

    def wait(self):
        out, err = self.child.communicate(timeout=BOUND)
        sane(self.child.returncode, err)
        return self.child.returncode, out, err.decode()


def loses_a_node(started, cluster, lost, begun, *args):
    """Kills a node once the work has `begun`. The command must fail and name the node. Then the node is started again."""
    request = Background(started, cluster, *args)
    try:
        until(begun, "the nodes are at work")
        address = cluster.listen[lost]
        cluster.kill(lost)
        out, err = request.child.communicate(timeout=60)
        assert request.child.returncode == 1 and out == b""
        assert address.encode() in err, err
    finally:
        request.kill()
    cluster.start(lost)
    until(cluster.works, "the nodes work again")


class SlowPut:
    """A put from a pipe. It stays unfinished until `finish` is called."""

    def __init__(self, started, cluster, path, *args):
        self.put = Background(
            started, cluster, "put", "-", cluster.url(path), "--stripe", "64KiB", *args, stdin=subprocess.PIPE
        )
        before = {path.name for path in cluster.objects()}
        stdin = self.put.child.stdin
        stdin.write(noise(6 * MIB))
        stdin.flush()

        def written():
            new = [path for path in cluster.objects() if path.name not in before]
            return len(new) == cluster.count and all(path.stat().st_size > 0 for path in new)

        until(written, "objects are being written on every node")

    def finish(self):
        """Writes the rest, or stops if nobody reads any more."""
        try:
            self.put.child.stdin.write(noise(6 * MIB, 2))
            self.put.child.stdin.close()
        except BrokenPipeError:
            pass
        self.put.child.stdin = None
        return self.put.wait()
