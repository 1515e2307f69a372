"""Descriptions of machines: the hosts, the speed of one of their cores, and the rate of a link."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

MACHINES = Path(__file__).parent / "machines"

# The possible roles of a host. A data node has cores and no data.
ROLES = ("storage", "data", "client")

# The maximum number of hosts of one role. Their names are short, and no machine here can carry more.
MAX_HOSTS = 256


@dataclass(frozen=True)
class Hosts:
    """The hosts of one role. `cores`: how many cores of the described machine one process on them may use. `active`: how many of
    these active requests may use, if that is less."""

    hosts: int
    cores: float
    lanes: int = 1
    active: float | None = None

    @property
    def folding(self):
        """The number of cores that a fold can use."""
        return min(self.lanes, self.active or self.cores)


@dataclass(frozen=True)
class Machine:
    """`rate`: bytes a second of `kernel` on one core. `link`: bytes a second of each host's port, in each direction. `apart`:
    whether storage hosts have their own processor of this machine. If all hosts share a processor, they push each other's data out
    of its caches."""

    name: str
    title: str
    kernel: str
    rate: float
    link: float
    roles: dict
    apart: bool = False

    def with_hosts(self, **counts):
        """The same machine with other numbers of hosts."""
        roles = {name: replace(of, hosts=counts.get(name, of.hosts)) for name, of in self.roles.items()}
        return replace(self, roles=roles)


def load(name):
    """Loads a machine by its name or by the path of its description."""
    path = Path(name) if str(name).endswith(".toml") else MACHINES / f"{name}.toml"
    try:
        found = tomllib.loads(path.read_text())
    except FileNotFoundError:
        known = ", ".join(sorted(each.stem for each in MACHINES.glob("*.toml")))
        raise SystemExit(f"there is no machine {path}; there are {known}") from None
    except tomllib.TOMLDecodeError as error:
        raise SystemExit(f"{path}: {error}") from None
    return parsed(path.stem, found, path)


def parsed(name, found, path):
    def wrong(why):
        raise SystemExit(f"{path}: {why}")

    def positive(table, key, where):
        value = table.pop(key, None)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            wrong(f"{key} of {where} must be a number above 0, not {value!r}")
        return value

    found = dict(found)
    roles = {role: found.pop(role) for role in ROLES if role in found}
    title, kernel = found.pop("title", name), found.pop("kernel", None)
    if not isinstance(kernel, str):
        wrong("kernel must name the kernel whose rate is given")
    rate, link = positive(found, "rate", "the machine"), positive(found, "link", "the machine")
    apart = found.pop("apart", False)
    if not isinstance(apart, bool):
        wrong(f"apart must be true or false, not {apart!r}")
    hosts = {}
    for role, table in roles.items():
        if not isinstance(table, dict):
            wrong(f"[{role}] must be a table")
        table = dict(table)
        count = positive(table, "hosts", role)
        lanes = table.pop("lanes", 1)
        for what, number in (("hosts", count), ("lanes", lanes)):
            if not isinstance(number, int) or not 1 <= number <= MAX_HOSTS:
                wrong(f"{what} of {role} must be 1 to {MAX_HOSTS}, not {number!r}")
        cores = positive(table, "cores", role)
        active = positive(table, "active", role) if "active" in table else None
        if active and not active <= cores:
            wrong(f"active of {role} must be at most its cores, {cores}, not {active!r}")
        hosts[role] = Hosts(count, cores, lanes, active)
        if table:
            wrong(f"{', '.join(table)} of {role} mean nothing; a role has hosts, cores, active and lanes")
    if found:
        wrong(f"{', '.join(found)} mean nothing; a machine has title, kernel, rate, link, apart, {', '.join(ROLES)}")
    if not {"storage", "client"} <= hosts.keys():
        wrong("a machine needs [storage] and [client]")
    return Machine(name, title, kernel, float(rate), float(link), hosts, apart)
