"""The hosts of a machine, out of namespaces, shaped ports and control groups; and processes on them."""

import contextlib
import ctypes
import os
import signal
import subprocess

import janitor
import network
import quota

# How long a process that is told to stop may take, in seconds.
STOP_SECONDS = 30

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Host:
    """One host: `role`, its number among those, its address. Each process has cores of its own, as on nodes with more
    cores than processes."""

    def __init__(self, lab, role, number, port):
        self.lab, self.role, self.number, self.port = lab, role, number, port
        self.name, self.address = f"{role}{number}", port.address

    def prefix(self):
        # Not `ip netns exec`: that gives a /sys of its own, in which a process cannot see the quota of its group.
        return ["nsenter", f"--net={network.NAMED / self.port.namespace}"]

    def enter(self, group):
        """What a child does before it runs its program: into its group, and to be told when the lab ends."""

        def entering():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            group.enter()
            if self.lab.machine.apart:
                os.sched_setaffinity(0, processors(self.role))

        return entering

    def start(self, group, *command, **settings):
        """Starts a process on the host."""
        words = [*self.prefix(), *(str(word) for word in command)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GRISTMILL_")}
        return subprocess.Popen(words, env=clean, preexec_fn=self.enter(group), **settings)

    def group(self, what, cores):
        """A new control group for a process that may take so many cores of the machine described."""
        return self.lab.group(f"{self.name}-{what}", cores)


def processors(role):
    """Those of this machine that hosts of a role have, where storage hosts have one to themselves."""
    all_ = sorted(os.sched_getaffinity(0))
    return set(all_[-1:] if role == "storage" else all_[:-1] or all_)


class Hosts:
    """All hosts of a machine, neither shaped nor limited yet; use with `with`."""

    def __init__(self, machine, data=None):
        """`data`: the directory in which the lab's own are, to be removed with it."""
        self.machine, self.data = machine, data
        self.by_role = {}
        self.groups = []
        self.core = None
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        quota.sweep()
        with contextlib.ExitStack() as stack:
            stack.callback(janitor.dismiss, janitor.start(os.getpid(), self.data))
            net = stack.enter_context(network.Network())
            for role, spec in self.machine.roles.items():
                hosts = self.by_role.setdefault(role, [])
                for number in range(spec.hosts):
                    hosts.append(Host(self, role, number, net.add(f"{role}{number}")))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def all(self):
        return [host for hosts in self.by_role.values() for host in hosts]

    def group(self, name, cores):
        group = quota.Group(name)
        self.stack.callback(group.remove)
        group.make()
        group.limit(None if self.core is None else cores * self.core)
        self.groups.append((group, cores))
        return group

    def limit(self, core):
        """All processes, those to come too, may take `core` seconds of this machine's processor time for a second of
        each of their cores; None: all they can."""
        self.core = core
        for group, cores in self.groups:
            group.limit(None if core is None else cores * core)

    def shape(self, scale):
        """Ports as the machine has them, times `scale`."""
        for host in self.all():
            host.port.shape(self.machine.link * scale)


def stop(process):
    """Ends one process."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def missing():
    """Why this machine cannot be a lab, or nothing."""
    return network.missing() or quota.missing()


def sweep(everything=False, data=None):
    """Removes what labs left whose process is no more; of all labs if told so. Gives the names of what it was."""
    gone = network.sweep(everything)
    quota.sweep(everything)
    return gone + (janitor.sweep_data(data, everything) if data else [])
