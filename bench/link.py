"""A sum through a link of 1 Gbit/s: folded on the nodes, and folded at the client over plain reads.

Nodes and client are in two network namespaces with a pair of virtual interfaces between them, both slowed down (tbf). They use TLS
and tokens, as between machines. A plain TCP copy in the same rounds shows the speed of the link. The program needs root, ip and
tc. It says so and does nothing if they are missing.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

import data
import pairs
from cluster import GRISTMILL, Nodes, environment
from probe import Probe

NODES = 4
RATE = 1e9
GOAL = 20

# How far the rate of a plain copy may differ from that of the link. Packet headers take 5 %, and the link begins with a full
# bucket.
LEAST, MOST = 0.85, 1.05

# Names of namespaces begin with this prefix and the process that made them.
PREFIX = "gristmill-link"
STORAGE, CLIENT = "198.18.0.1", "198.18.0.2"
ENTRY_PORT, COPY_PORT = 7440, 7441


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def sweep():
    """Removes the namespaces of programs that have ended, with their interfaces."""
    for line in run("ip", "netns", "list").splitlines():
        name = line.split()[0] if line.split() else ""
        owner = name.removeprefix(f"{PREFIX}-").split("-")[0]
        if name.startswith(f"{PREFIX}-") and owner.isdigit() and not Path(f"/proc/{owner}").exists():
            for process in run("ip", "netns", "pids", name).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), 9)
            run("ip", "netns", "delete", name)


@contextlib.contextmanager
def link():
    """Makes a link. Yields the command prefixes that run a program at the storage end and at the client's end."""
    names = [f"{PREFIX}-{os.getpid()}-{end}" for end in ("storage", "client")]
    made = []
    try:
        for name in names:
            run("ip", "netns", "add", name)
            made.append(name)
        one, other = names
        run("ip", "-n", one, "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", other)
        for name, address in zip(names, (STORAGE, CLIENT)):
            run("ip", "-n", name, "address", "add", f"{address}/30", "dev", "veth0")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", "veth0", "up")
            shape = ("rate", f"{RATE / 1e6:g}mbit", "burst", "256kb", "latency", "50ms")
            run("tc", "-n", name, "qdisc", "add", "dev", "veth0", "root", "tbf", *shape)
        yield [["ip", "netns", "exec", name] for name in names]
    finally:
        for name in made:
            with contextlib.suppress(OSError):
                run("ip", "netns", "delete", name)


def missing():
    """Why no link can be made here, or None."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            return f"there is no {tool} (Debian: iproute2)"
    try:
        sweep()
        with link():
            return None
    except OSError as error:
        return str(error)


def main():
    options = pairs.arguments(
        __doc__.split("\n")[0],
        size=pairs.SIZE,
        probe=pairs.PROBE,
        gristmill=GRISTMILL,
        min_rounds=7,
        quick_rounds=2,
    )
    if why := missing():
        print(f"# link: skipped; {why}")
        return
    size = options.size or (16 * data.MIB if options.quick else 512 * data.MIB)
    source = data.make(options.data, "normal", size)
    pairs.warm(source)
    with contextlib.ExitStack() as stack:
        at_storage, at_client = stack.enter_context(link())
        certs = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.data, prefix="certs-")))
        command = [str(options.gristmill), "cert", "--dir", str(certs), STORAGE]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment())
        token, tokens = secrets.token_hex(32), certs / "tokens"
        tokens.touch(0o600)
        tokens.write_text(f"bench {token}\n")
        secure = ["--cert", certs / "cert.pem", "--tls-key", certs / "key.pem"]
        secure += ["--ca", certs / "ca.pem", "--tokens", tokens]
        nodes = stack.enter_context(
            Nodes(
                options.gristmill,
                options.data,
                NODES,
                listen=f"{STORAGE}:{ENTRY_PORT}",
                prefix=at_storage,
                options=secure,
                ca=certs / "ca.pem",
                token=token,
            )
        )
        here = stack.enter_context(Probe(options.probe, at_client))
        there = stack.enter_context(Probe(options.probe, at_storage))
        # The file is put from the storage end, so that the link does not slow it down.
        nodes.put(there, source, "/normal.f64")
        truth = there.run("sum", source, type="f64")["result"]

        def side(place):
            def run():
                answer = nodes.ask(here, "sum", "/normal.f64", place=place)
                pairs.require(answer["result"] == truth, f"{place}: {answer} instead of {truth}")
                return answer["seconds"]

            return run

        def copy():
            address = f"{STORAGE}:{COPY_PORT}"
            there.send("feed", listen=address, source=source)
            answer = here.ask("drain", **{"from": address})
            there.receive()
            pairs.require(answer["bytes_read"] == size, f"{answer} instead of {size} bytes")
            return answer["seconds"]

        ours, theirs, plain = "folded on the nodes", "folded at the client", "plain TCP copy"
        times = pairs.rounds({ours: side("storage"), theirs: side("client"), plain: copy}, options.rounds)
    middle = sorted(times[plain])[options.rounds // 2]
    share = 8 * size / middle / RATE
    if not LEAST <= share <= MOST:
        raise SystemExit(f"the link is no link of {RATE:g} bit/s: a plain copy has {share:.2f} of that")
    print(f"# a plain TCP copy has {share:.2f} of {RATE / 1e9:g} Gbit/s")
    ratios = [pairs.ratio(times, ours, theirs, 1 / GOAL), pairs.ratio(times, theirs, plain)]
    title = f"Sum of {data.size_name(size)} of f64 over a link of {RATE / 1e9:g} Gbit/s"
    note = f"two network namespaces, TLS and tokens, {NODES} nodes; the goal is {GOAL} times as fast"
    pairs.report("link", title, options, times, dict.fromkeys(times, size), ratios, note)


if __name__ == "__main__":
    main()
