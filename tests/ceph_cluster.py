"""A Ceph of the distribution on this machine, with its gateway to S3 (radosgw) or its file system: plain processes in a folder of
their own.

    python tests/ceph_cluster.py [--store STORE] [--gateway] [--put FILE=PATH] [--object-class FILE ...] -- COMMAND

runs a command beside a file system, or a gateway, and a pool, whose cluster the environment names to it.
"""

import argparse
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from ceph_config import CONFIG, DATA_POOL, FILE_POOL, MOST_OSDS, NODE_POOL, RIGHTS, class_settings, monitor_address
from cluster import until
from web_servers import S3Bucket

KEY, SECRET = "SOMEBODYOFTESTS", "a-secret-of-somebody"
OTHER_KEY, OTHER_SECRET = "ANOTHEROFTESTS", "a-secret-of-another"

#: The gateway cuts objects into stripes of this size. Each is an object in RADOS.
STRIPE = 4 << 20

PROGRAMS = ("ceph", "ceph-authtool", "ceph-mds", "ceph-mon", "ceph-osd", "monmaptool", "rados", "radosgw", "radosgw-admin")
OSDS = 2
#: The Python that has the modules of Ceph.
SYSTEM_PYTHON = "/usr/bin/python3"
WRITER = Path(__file__).parent / "cephfs_writer.py"
STARTING = 120  # seconds; a bound on a hang, not a measure of speed
ENDING = 30
ANSWERING = 10  # of monitors that have a quorum; a question that takes longer is asked again
TRIES = 5  # of ports

def missing():
    """The programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def started(kind, tmp_path_factory):
    """Starts a cluster of a kind for a fixture, and ends it. Without the programs the tests are skipped."""
    absent = missing()
    if absent:
        pytest.skip(f"Ceph is not installed ({', '.join(absent)}): scripts/ceph installs it")
    ceph = kind(tmp_path_factory.mktemp("ceph"))
    yield ceph
    ceph.end()


def named_by_environment(ceph, grist, monkeypatch):
    """The cluster, which the environment names to the command and to Python."""
    grist.env.update(ceph.env)
    for name, value in ceph.env.items():
        monkeypatch.setenv(name, value)
    return ceph


def numbers():
    """Numbers of very different size: more than two stripes of nodes, and six of the gateway."""
    random = np.random.default_rng(5)
    return random.normal(size=2_600_001) * 10.0 ** random.integers(-9, 9, 2_600_001)


class Cluster:
    """Monitors, and daemons that keep their objects in memory, or with BlueStore in files.

    `object_class` has shared libraries, or one of them: `libcls_NAME.so`. The daemons load them beside the classes of the system.
    """

    #: The names of the monitors.
    MONITORS = ("a",)

    def __init__(self, folder: Path, store="memstore", osds=OSDS, copies=1, object_class=None):
        self.folder = folder
        self.config = folder / "ceph.conf"
        self.settings = {"folder": folder, "fsid": uuid.uuid4(), "gateway": 0, "store": store, "copies": copies}
        # Each daemon has an address of its own, as on a host of its own.
        addresses = [f"[osd.{number}]\npublic addr = 127.0.0.{number + 2}" for number in range(MOST_OSDS)]
        self.settings["addresses"] = "\n".join(addresses)
        libraries = [object_class] if isinstance(object_class, (str, Path)) else object_class
        self.settings["classes"] = class_settings(folder / "classes", libraries)
        self.children, self.osds, self.monitors = [], {}, {}
        try:
            self._make_keys()
            self._on_free_ports(self._start_monitors, 2 * len(self.MONITORS))
            for number in range(osds):
                self.add_osd(number)
            self._start_more()
        except BaseException:
            self.end()
            raise

    def _start_more(self):
        """Starts what else the cluster has."""

    def _make_keys(self):
        for name, rights in RIGHTS.items():
            caps = [word for service, right in rights.items() for word in ("--cap", service, right)]
            create = () if (self.folder / "keyring").exists() else ("--create-keyring",)
            self._tool("ceph-authtool", "keyring", *create, "--gen-key", "-n", name, *caps)

    def _start_monitors(self, *ports):
        for child in filter(None, self.monitors.values()):
            self._end(child)
        addresses = [monitor_address("127.0.0.1", *pair) for pair in zip(ports[::2], ports[1::2], strict=True)]
        self._configure(monitors=",".join(addresses))
        named = [word for pair in zip(self.MONITORS, addresses, strict=True) for word in ("--addv", *pair)]
        self._tool("monmaptool", "--create", "--clobber", "--fsid", self.settings["fsid"], *named, "monmap")
        for name in self.MONITORS:
            shutil.rmtree(self.folder / f"mon.{name}", ignore_errors=True)
            self._tool("ceph-mon", "-c", self.config, "-i", name, "--mkfs", "--monmap", "monmap", "--keyring", "keyring")
        return self.start_monitors(*self.MONITORS)

    def start_monitors(self, *names):
        """Starts monitors and waits until there is a quorum. Returns whether all stay."""
        for name in names:
            self.monitors[name] = self._child("ceph-mon", "-i", name)
        running = lambda: all(child and child.poll() is None for child in self.monitors.values())
        until(lambda: not running() or self.has_quorum(), "a quorum of the monitors", STARTING)
        return running()

    def has_quorum(self):
        """Whether the monitors answer. Without a quorum they take a question and do not answer it."""
        try:
            return self._run(*self._ceph, "quorum_status", patience=ANSWERING).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def add_osd(self, number):
        """Makes a storage daemon and starts it."""
        name = uuid.uuid4()
        (self.folder / f"osd.{number}").mkdir()
        assert self._tool(*self._ceph, "osd", "new", name).split() == [str(number)]
        self._tool("ceph-osd", "-c", self.config, "-i", number, "--mkfs", "--osd-uuid", name)
        self.start_osd(number)

    def start_osd(self, number):
        self.osds[number] = self._child("ceph-osd", "-i", number)
        assert self.osds[number], self.said()

    def kill(self, child):
        """Ends a process at once."""
        child.kill()
        child.wait(ENDING)

    def _configure(self, **ports):
        self.settings.update(ports)
        self.config.write_text(CONFIG.format(**self.settings))

    def _on_free_ports(self, start, count):
        """Calls a function with free ports until what it starts stays. Another process may take a port meanwhile."""
        for _ in range(TRIES):
            with ExitStack() as probes:
                sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
                for probe in sockets:
                    probe.bind(("127.0.0.1", 0))
                ports = [probe.getsockname()[1] for probe in sockets]
            if start(*ports):
                return
        raise AssertionError(f"Ceph does not start: {self.said()}")

    @property
    def _ceph(self):
        return ("ceph", "-c", self.config, "--connect-timeout", "10")

    def ceph(self, *words) -> str:
        """The output of a command of the administrator."""
        return self._tool(*self._ceph, *words)

    def make_node_pool(self):
        """Makes the pool for the objects of storage nodes."""
        # What is placed while daemons join lies elsewhere afterwards.
        all_up = lambda: json.loads(self.ceph("osd", "stat", "--format", "json"))["num_up_osds"] == len(self.osds)
        until(all_up, "all daemons are up", STARTING)
        self.ceph("osd", "pool", "create", NODE_POOL)

    def make_coded_pool(self, name):
        """Makes a pool of which any two of three pieces of each object are enough."""
        self.ceph("osd", "erasure-code-profile", "set", "two", "k=2", "m=1", "crush-failure-domain=osd")
        self.ceph("osd", "pool", "create", name, "8", "8", "erasure", "two")
        self.ceph("osd", "pool", "set", name, "allow_ec_overwrites", "true")
        self.ceph("osd", "pool", "set", name, "min_size", "2")

    def fill(self, ratio):
        """Has daemons be full when they use this part of their disks."""
        for name in ("set-nearfull-ratio", "set-backfillfull-ratio", "set-full-ratio"):
            self.ceph("osd", name, str(ratio))

    def is_full(self):
        pools = json.loads(self.ceph("osd", "dump", "--format", "json"))["pools"]
        return any("full" in pool["flags_names"].split(",") for pool in pools)

    @property
    def _environment(self):
        # Some of the programs are scripts of the system's Python.
        return {name: value for name, value in os.environ.items() if not name.startswith(("CEPH_", "PYTHON"))}

    def _run(self, *words, patience=STARTING):
        words = list(map(str, words))
        return subprocess.run(words, cwd=self.folder, env=self._environment, capture_output=True, timeout=patience)

    def _tool(self, *words) -> str:
        """The output of a program that ends by itself."""
        done = self._run(*words)
        assert done.returncode == 0, (words, done.stderr.decode(errors="replace"), self.said())
        return done.stdout.decode()

    def _child(self, program, *words, ready=lambda: True):
        """A process that stays, once it is ready; `None` if it ended instead."""
        with open(self.folder / f"{program}.err", "ab") as err:
            child = subprocess.Popen(
                [program, "-c", self.config, "-f", *map(str, words)],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=err,
                stderr=err,
            )
        self.children.append(child)
        until(lambda: child.poll() is not None or ready(), f"{program} is ready", STARTING)
        return child if child.poll() is None else None

    def said(self) -> dict:
        """The ends of what the processes printed."""
        return {path.name: path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.err")}

    def _end(self, child):
        if child.poll() is not None:
            return
        child.send_signal(signal.SIGCONT)
        child.terminate()
        try:
            child.wait(ENDING)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(ENDING)

    def end(self):
        for child in reversed(self.children):
            self._end(child)


class Ceph(Cluster, S3Bucket):
    """A cluster with a gateway, with two users and a bucket of the first of them."""

    def _start_more(self):
        self._on_free_ports(self._start_gateway, 1)
        self._make_users()
        self.connect(self.endpoint, KEY, SECRET)

    def _start_gateway(self, port):
        self._configure(gateway=port)
        self.endpoint = f"http://127.0.0.1:{port}"
        self.gateway = self._child("radosgw", "-n", "client.rgw", ready=self._answers)
        return self.gateway

    def _make_users(self):
        for key, secret in ((KEY, SECRET), (OTHER_KEY, OTHER_SECRET)):
            who = ("--uid", key.lower(), "--display-name", key, "--access-key", key, "--secret", secret)
            self._tool("radosgw-admin", "-c", self.config, "-n", "client.rgw", "user", "create", *who)

    def _answers(self):
        try:
            urllib.request.urlopen(self.endpoint, timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def stripes(self) -> set:
        """The names of the objects in RADOS that hold the content of the objects of buckets."""
        return set(self._tool("rados", "-c", self.config, "-p", DATA_POOL, "ls").splitlines())

    def stop_gateway(self):
        self._end(self.gateway)

    def start_gateway(self):
        """Starts the gateway again, with the same address."""
        self.gateway = self._child("radosgw", "-n", "client.rgw", ready=self._answers)
        assert self.gateway, self.said()

    def put_in_parts(self, key, *parts):
        """Uploads an object as parts. All but the last have at least 5 MiB."""
        upload = self.client.create_multipart_upload(Bucket=self.bucket, Key=key)["UploadId"]
        names = {"Bucket": self.bucket, "Key": key, "UploadId": upload}
        done = []
        for number, part in enumerate(parts, 1):
            tag = self.client.upload_part(**names, PartNumber=number, Body=part)["ETag"]
            done.append({"PartNumber": number, "ETag": tag})
        self.client.complete_multipart_upload(**names, MultipartUpload={"Parts": done})
        return self.url(key)

    def put_file(self, source, key):
        """Uploads a file of this machine."""
        self.client.upload_file(str(source), self.bucket, key)

    def tag(self, key) -> str:
        return self.client.head_object(Bucket=self.bucket, Key=key)["ETag"]


class Rados(Cluster):
    """A cluster with a pool for the objects of storage nodes."""

    def _start_more(self):
        self.make_node_pool()
        self.env = {"CEPH_CONF": str(self.config), "CEPH_ARGS": "--id node"}

    def names(self, name) -> list:
        """The names of the objects of a store."""
        return sorted(self.rados(name, "ls").splitlines())

    def rados(self, name, *words) -> str:
        """The output of the command `rados` in a namespace of the pool."""
        return self._tool("rados", "-c", self.config, "-p", NODE_POOL, "-N", name, *words)


class CephFs(Cluster):
    """A cluster with a file system. `put` and others write to it as another client."""

    def _start_more(self):
        for pool in ("cephfs_metadata", FILE_POOL):
            self._tool(*self._ceph, "osd", "pool", "create", pool)
        self._tool(*self._ceph, "fs", "new", "cephfs", "cephfs_metadata", FILE_POOL)
        (self.folder / "mds").mkdir()
        self.start_server()
        self.env = {"CEPH_CONF": str(self.config), "CEPH_ARGS": "--id reader"}
        self.writer = subprocess.Popen(
            [SYSTEM_PYTHON, WRITER, self.config],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.children.append(self.writer)

    def start_server(self):
        """Starts the server of names and waits until it serves."""

        def is_active():
            return "up:active" in self._run(*self._ceph, "mds", "stat").stdout.decode()

        self.server = self._child("ceph-mds", "-i", "a", ready=is_active)
        assert self.server, self.said()

    def stop_server(self):
        self._end(self.server)

    @contextmanager
    def mounted(self, folder):
        """The file system at a folder, mounted by `ceph-fuse`."""
        if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or shutil.which("ceph-fuse") is None:
            pytest.skip("nothing can be mounted: this needs root, /dev/fuse and ceph-fuse")
        folder.mkdir()
        mount = self._child("ceph-fuse", "-n", "client.admin", folder, ready=lambda: os.path.ismount(folder))
        assert mount, self.said()
        try:
            yield folder
        finally:
            self._end(mount)

    def evict(self, name):
        """Shuts out all clients of a user of Ceph."""
        socket = ("ceph", "--admin-daemon", self.folder / "mds.sock")
        for client in json.loads(self._tool(*socket, "client", "ls")):
            if client["client_metadata"].get("entity_id") == name:
                self._tool(*socket, "client", "evict", f"id={client['id']}")

    def _call(self, do, **values):
        self.writer.stdin.write(json.dumps({"do": do, **values}) + "\n")
        self.writer.stdin.flush()
        answer = json.loads(self.writer.stdout.readline() or '{"error": "the writer ended"}')
        assert answer == {}, (do, values.get("path"), answer)

    def put(self, key, content, **how):
        self._call("put", path=f"/{key}", content=base64.b64encode(content).decode(), **how)

    def link(self, target, key):
        """Makes a symbolic link."""
        self._call("link", target=target, path=f"/{key}")

    def put_file(self, source, key):
        """Copies a file, one piece after the other."""
        with open(source, "rb") as file:
            for offset in range(0, source.stat().st_size, STRIPE):
                self.put(key, file.read(STRIPE), offset=offset, cut=False)

    def put_folder(self, folder, key):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{key}/{path.relative_to(folder)}", path.read_bytes())

    def replace(self, key, content):
        """Replaces a file as programs do that write a new one first."""
        self.put(f"{key}.new", content)
        self._call("rename", path=f"/{key}.new", to=f"/{key}")

    def remove(self, key):
        self._call("remove", path=f"/{key}")

    def own(self, key, uid, gid, mode):
        self._call("own", path=f"/{key}", uid=uid, gid=gid, mode=mode)

    def allow(self, key, *entries):
        self._call("allow", path=f"/{key}", entries=entries)

    def snapshot(self, key, name):
        self._call("snapshot", path=f"/{key}", name=name)

    def objects(self) -> set:
        """The names of the objects in RADOS that hold the content of files."""
        return set(self.names(FILE_POOL))

    def names(self, pool) -> list:
        """The names of the objects of a pool."""
        return sorted(self._tool("rados", "-c", self.config, "-p", pool, "ls").splitlines())

    def placed(self, stored, pool=FILE_POOL) -> dict:
        """Where an object is (`acting`) and where it will be (`up`)."""
        return json.loads(self.ceph("osd", "map", pool, stored, "--format", "json"))

    def daemon_of(self, stored) -> int:
        """The number of the daemon from which an object is read."""
        return self.placed(stored)["acting_primary"]

    def size_of(self, stored) -> int:
        return int(self._tool("rados", "-c", self.config, "-p", FILE_POOL, "stat", stored).split()[-1])

    @staticmethod
    def url(key) -> str:
        return f"cephfs:///{key}"


def main():
    """Runs a command beside a new file system or gateway, and a pool for the objects of storage nodes."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--store", choices=("memstore", "bluestore"), default="memstore", help="where daemons keep objects (default: %(default)s)")
    parser.add_argument("--gateway", action="store_true", help="start a gateway to S3 with a bucket, and no file system")
    parser.add_argument("--put", metavar="FILE=PATH", help="a file of this machine, and its path in the file system or its name in the bucket")
    parser.add_argument(
        "--object-class", action="append", type=Path, metavar="FILE", help="a library libcls_NAME.so that daemons load; may be repeated"
    )
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    source, _, path = (options.put or "").partition("=")
    if options.put and not (path and Path(source).is_file()):
        parser.error(f"--put needs FILE=PATH with a file that exists, not {options.put}")
    for library in options.object_class or ():
        if not (library.match("libcls_*.so") and library.is_file()):
            parser.error(f"--object-class needs a file libcls_NAME.so that exists, not {library}")
    # The daemons end with this program, also if somebody ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))
    with tempfile.TemporaryDirectory() as folder:
        kind = Ceph if options.gateway else CephFs
        ceph = kind(Path(folder), options.store, object_class=options.object_class)
        try:
            ceph.make_node_pool()
            ceph.env |= {"CEPH_CONF": str(ceph.config), "CEPH_ARGS": "--id both"}
            if options.put:
                ceph.put_file(Path(source), path)
            command = subprocess.Popen(options.command, env={**os.environ, **ceph.env})
            try:
                code = command.wait()
            finally:
                ceph._end(command)
        finally:
            ceph.end()
    sys.exit(code)


if __name__ == "__main__":
    main()
