"""Hosts made of network namespaces. Each has one port to a switch, and each port can be slowed down.

The switch is a bridge in its own namespace, so the network of this machine does not change. Hosts have addresses in 127.77.0.0/16.
The option `route_localnet` lets the kernel carry them over an interface. So nodes communicate without TLS, as on one machine.
Encryption costs more than the kernels at the speeds of the lab, and the papers' systems had none.
"""

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path

# Names of namespaces and control groups begin with this prefix and the process that made them.
PREFIX = "gristmill-lab"
NETWORK = "127.77"

# The folder of namespaces that `ip netns` made, by name.
NAMED = Path("/run/netns")

# How much a port may send at once after a pause, in seconds of its rate and in bytes; and how long packets may wait.
BURST_SECONDS, LEAST_BURST = 0.002, 128 << 10
WAIT = "50ms"


class LabError(Exception):
    """This machine cannot be a lab, or a step failed. The text says why."""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise LabError(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def owner(name):
    """The process that made the thing with this name. None if the name is not one of a lab."""
    number = name.removeprefix(f"{PREFIX}-").split("-")[0]
    return int(number) if name.startswith(f"{PREFIX}-") and number.isdigit() else None


def namespaces():
    return [line.split()[0] for line in run("ip", "netns", "list").splitlines() if line.split()]


def remove_namespace(name):
    """Ends all processes in a namespace and removes it, with its interfaces."""
    for process in run("ip", "netns", "pids", name).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process), 9)
    run("ip", "netns", "delete", name)


def over(name, everything=False, of=None):
    """Whether the thing with this name is to be removed. It must belong to a lab: to that of the process `of`, to one whose
    process has ended, or to any lab with `everything`."""
    process = owner(name)
    if process is None or of is not None:
        return process is not None and process == of
    return everything or not Path(f"/proc/{process}").exists()


def sweep(everything=False, of=None):
    """Removes the namespaces of labs whose process has ended, of all labs, or of one. Returns their names."""
    gone = [name for name in namespaces() if over(name, everything, of)]
    for name in gone:
        remove_namespace(name)
    return gone


# The headers of Ethernet, IP, and TCP with timestamps.
PACKET_HEAD = 14 + 20 + 32


class Port:
    """A host's namespace and its port to the switch."""

    def __init__(self, switch, name, number):
        self.name = name
        self.switch = switch
        self.namespace = f"{PREFIX}-{os.getpid()}-{name}"
        self.address = f"{NETWORK}.{number // 250}.{number % 250 + 1}"

    def connect(self):
        run("ip", "netns", "add", self.namespace)
        settings = [f"net.ipv4.conf.{which}.route_localnet=1" for which in ("all", "default")]
        settings.append("net.ipv6.conf.all.disable_ipv6=1")
        run("ip", "netns", "exec", self.namespace, "sysctl", "-qw", *settings)
        peer = ("peer", "name", self.name, "netns", self.switch)
        run("ip", "-n", self.namespace, "link", "add", "eth0", "type", "veth", *peer)
        run("ip", "-n", self.namespace, "link", "set", "lo", "up")
        # By default all of 127.0.0.0/8 is local. Here only this one address is.
        run("ip", "-n", self.namespace, "address", "flush", "dev", "lo")
        run("ip", "-n", self.namespace, "address", "add", "127.0.0.1/32", "dev", "lo")
        run("ip", "-n", self.namespace, "address", "add", f"{self.address}/16", "dev", "eth0")
        run("ip", "-n", self.namespace, "link", "set", "eth0", "up")
        run("ip", "-n", self.switch, "link", "set", self.name, "master", "switch", "up")

    def shape(self, rate):
        """Limits both directions to `rate` bytes a second. None: no limit."""
        for namespace, device in ((self.namespace, "eth0"), (self.switch, self.name)):
            if rate is None:
                with contextlib.suppress(LabError):
                    run("tc", "-n", namespace, "qdisc", "delete", "dev", device, "root")
                continue
            burst = int(max(LEAST_BURST, rate * BURST_SECONDS))
            bucket = ("rate", f"{int(8 * rate)}bit", "burst", burst, "latency", WAIT)
            run("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", *bucket)

    def carried(self):
        """The bytes over TCP that the host received and sent, without packet headers. The number of packets depends on how long a
        request takes, because some of them only acknowledge."""
        [found] = json.loads(run("ip", "-n", self.namespace, "-s", "-j", "link", "show", "eth0"))
        counts = (found["stats64"][way] for way in ("rx", "tx"))
        return tuple(way["bytes"] - PACKET_HEAD * way["packets"] for way in counts)


class Network:
    """A switch and the hosts on it; use with `with`."""

    def __init__(self):
        self.switch = f"{PREFIX}-{os.getpid()}-switch"
        self.ports = []

    def __enter__(self):
        sweep()
        try:
            run("ip", "netns", "add", self.switch)
            run("ip", "-n", self.switch, "link", "add", "switch", "type", "bridge")
            run("ip", "-n", self.switch, "link", "set", "switch", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        known = set(namespaces())
        for name in [port.namespace for port in self.ports] + [self.switch]:
            if name in known:
                with contextlib.suppress(LabError):
                    remove_namespace(name)

    def add(self, name):
        port = Port(self.switch, name, len(self.ports))
        self.ports.append(port)
        port.connect()
        return port


def missing():
    """Why no network can be made here, or None."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    for tool in ("ip", "tc", "sysctl"):
        if not shutil.which(tool):
            return f"there is no {tool} (Debian: iproute2, procps)"
    try:
        with Network() as network:
            port = network.add("probe")
            port.shape(1e8)
            port.carried()
    except (LabError, OSError) as error:
        return str(error)
    return None
