"""The hosts of a machine, made of namespaces, shaped ports and control groups; and processes on them."""

import contextlib
import ctypes
import os
import signal
import subprocess

import janitor
import network
import quota

# The maximum time for a process to stop, in seconds.
STOP_SECONDS = 30

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Host:
    """One host: its `role`, its number within the role, and its address. Each process has its own cores, as on nodes with more
    cores than processes."""

    def __init__(self, lab, role, number, port):
        self.lab, self.role, self.number, self.port = lab, role, number, port
        self.name, self.address = f"{role}{number}", port.address

    def prefix(self):
        # `ip netns exec` would mount another /sys, in which a process cannot see the quota of its group.
        return ["nsenter", f"--net={network.NAMED / self.port.namespace}"]

    def enter(self, group):
        """A function for a child before it runs its program. The child enters the group, and gets a signal when the lab ends."""

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
    """The processors of this machine for hosts of a role, if storage hosts have their own processor."""
    all_ = sorted(os.sched_getaffinity(0))
    return set(all_[-1:] if role == "storage" else all_[:-1] or all_)


class Hosts:
    """All hosts of a machine, without limits at first; use with `with`."""

    def __init__(self, machine, data=None):
        """`data` is the directory that contains the directories of labs. They are removed with the lab."""
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
        """Limits all present and future processes to `core` seconds of this machine's processor time for a second of each of their
        cores. None: no limit."""
        self.core = core
        for group, cores in self.groups:
            group.limit(None if core is None else cores * core)

    def shape(self, scale):
        """Limits the ports to the rate of the machine times `scale`."""
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
    """Why this machine cannot be a lab, or None."""
    return network.missing() or quota.missing()


def sweep(everything=False, data=None):
    """Removes what labs have left whose process has ended. With `everything` it removes all labs. Returns the names."""
    gone = network.sweep(everything)
    quota.sweep(everything)
    return gone + (janitor.sweep_data(data, everything) if data else [])
