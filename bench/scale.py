"""How sums on storage nodes scale with the number of nodes and with the number of simultaneous clients."""

import matplotlib.pyplot as plt
import numpy as np

import data
import pairs
from cluster import GRISTMILL, Nodes
from probe import Probe

NODES, QUICK_NODES = [1, 2, 4, 8, 16], [1, 4]
CLIENTS, QUICK_CLIENTS = [1, 2, 4, 8, 16, 32, 64], [1, 8]
# The number of nodes for the measurement with many clients.
ASKED = 4
LARGE, QUICK_LARGE = 64 * data.MIB, 4 * data.MIB
SMALL = 4096

# The number of requests of all clients in a round, and the minimum for each client.
LARGE_REQUESTS, SMALL_REQUESTS, LEAST = 64, 1024, 2
ROUNDS, QUICK_ROUNDS = 7, 2


def over_nodes(options, probe, size):
    """{nodes: (seconds, seconds of only reading)}, from the same rounds."""
    plain = data.make(options.data, "normal", size)
    pairs.warm(plain)
    truth = probe.run("sum", plain, type="f64")["result"]
    found = {}
    for count in QUICK_NODES if options.quick else NODES:
        with Nodes(options.gristmill, options.data, count) as nodes:
            nodes.put(probe, plain, "/normal.f64")

            def ask(nodes=nodes, count=count):
                answer = nodes.ask(probe, "sum", "/normal.f64")
                pairs.require(answer["result"] == truth, f"{count} nodes: {answer} instead of {truth}")
                return answer["seconds"]

            def floor(nodes=nodes):
                return nodes.floor(probe, "/normal.f64", size, options.lanes)

            times = pairs.rounds({"sum": ask, "floor": floor}, options.rounds)
        found[count] = (times["sum"], times["floor"])
        ratio = pairs.ratio(times, "sum", "floor")
        print(
            f"{count} nodes: {size / np.median(times['sum']) / 1e9:.2f} GB/s, {ratio.median:.2f} "
            f"[{ratio.low:.2f}, {ratio.high:.2f}] x the time to read",
            flush=True,
        )
    return found


def over_clients(options, probe):
    """{(bytes, clients): (requests a second in each round, seconds of every request)}, and the seconds of only reading."""
    large = QUICK_LARGE if options.quick else LARGE
    found, read = {}, {}
    with Nodes(options.gristmill, options.data, ASKED) as nodes:
        for size, requests in ((large, LARGE_REQUESTS), (SMALL, SMALL_REQUESTS)):
            plain = data.make(options.data, "normal", size)
            nodes.put(probe, plain, f"/{size}.f64")
            pairs.warm(plain)
            truth = probe.run("sum", plain, type="f64")["result"]
            read[size] = []
            for clients in QUICK_CLIENTS if options.quick else CLIENTS:
                count = max(LEAST, requests // clients)
                each = []

                def ask(size=size, clients=clients, count=count, truth=truth, each=each):
                    answer = nodes.ask(probe, "sum", f"/{size}.f64", count=count, clients=clients)
                    right = answer["result"] == truth and len(answer["each"]) == count * clients
                    pairs.require(right, f"{clients} clients: {answer['result']} instead of {truth}")
                    each.append(answer["each"])
                    return answer["seconds"]

                def floor(size=size):
                    return nodes.floor(probe, f"/{size}.f64", size, options.lanes)

                times = pairs.rounds({"sum": ask, "floor": floor}, options.rounds)
                speed = count * clients / np.array(times["sum"])
                # The first round does not count.
                one = np.concatenate(each[1:])
                found[size, clients] = (speed, one)
                read[size] += times["floor"]
                print(
                    f"{clients} clients, {data.size_name(size)}: {np.median(speed):,.1f} requests a second; each "
                    f"p50 {np.percentile(one, 50) * 1e3:.2f} ms, p99 {np.percentile(one, 99) * 1e3:.2f} ms",
                    flush=True,
                )
    return found, read


def finish(axes, x, title, xlabel, ylabel):
    axes.set_title(title, fontsize=11)
    axes.set_xticks(range(len(x)), [str(n) for n in x])
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(color="#e3e3e3", lw=0.7)
    axes.spines[["top", "right"]].set_visible(False)


def draw(path, size, nodes, clients, read, foot):
    sizes = list(read)
    figure, panels = plt.subplots(1, 2 + len(sizes), figsize=(17, 4.8), layout="constrained")
    figure.suptitle("Sums on storage nodes: growth with nodes and clients", fontsize=14)
    x = list(nodes)
    for number, (name, color) in enumerate((("sum", pairs.LINES[0]), ("only read", pairs.LINES[1]))):
        each = [size / np.array(nodes[n][number]) / 1e9 for n in x]
        panels[0].plot(range(len(x)), [np.median(e) for e in each], "o-", color=color, label=name)
        panels[0].vlines(range(len(x)), [e.min() for e in each], [e.max() for e in each], color=color, alpha=0.5)
    panels[0].set_ylim(0)
    panels[0].legend(fontsize=9, loc="lower right")
    finish(panels[0], x, f"One client, {data.size_name(size)}", "storage nodes", "GB/s")
    for axes, bytes_, color in zip(panels[1:], sizes, pairs.LINES):
        x = [n for b, n in clients if b == bytes_]
        each = [clients[bytes_, n][0] for n in x]
        axes.plot(range(len(x)), [np.median(e) for e in each], "o-", color=color, label="sum")
        axes.vlines(range(len(x)), [e.min() for e in each], [e.max() for e in each], color=color, alpha=0.5)
        if bytes_ > SMALL:
            axes.axhline(1 / np.median(read[bytes_]), color=pairs.RULE, ls=":", label="only read, one after the other")
        axes.set_ylim(0)
        axes.legend(fontsize=9, loc="lower right")
        finish(axes, x, f"{ASKED} nodes, sums of {data.size_name(bytes_)}", "clients", "requests a second")
    for bytes_, color in zip(sizes, pairs.LINES):
        x = [n for b, n in clients if b == bytes_]
        for percent, style in ((50, "o-"), (99, "o:")):
            times = [np.percentile(clients[bytes_, n][1], percent) * 1e3 for n in x]
            label = f"{data.size_name(bytes_)}, p{percent}"
            panels[-1].plot(range(len(x)), times, style, color=color, ms=4, label=label)
    panels[-1].set_yscale("log")
    panels[-1].legend(fontsize=8)
    finish(panels[-1], x, "Time of one request", "clients", "milliseconds (log scale)")
    figure.supxlabel(foot, fontsize=8.5, color="#555555")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    options = pairs.arguments(
        __doc__,
        min_rounds=ROUNDS,
        quick_rounds=QUICK_ROUNDS,
        size=pairs.SIZE,
        lanes=pairs.LANES,
        probe=pairs.PROBE,
        gristmill=GRISTMILL,
    )
    size = options.size or (16 * data.MIB if options.quick else data.GIB)
    print(f"# Growth on storage nodes, medians of {options.rounds} rounds ({pairs.described(options)})", flush=True)
    with Probe(options.probe) as probe:
        nodes = over_nodes(options, probe, size)
        clients, read = over_clients(options, probe)
    rows = [
        ("sum" if side == 0 else "read", size, n, 1, number, f"{seconds:.9f}", "")
        for n, both in nodes.items()
        for side, each in enumerate(both)
        for number, seconds in enumerate(each)
    ]
    rows += [
        ("sum", bytes_, ASKED, n, number, f"{1 / speed:.9f}", f"{np.percentile(one, 99):.9f}")
        for (bytes_, n), (speeds, one) in clients.items()
        for number, speed in enumerate(speeds)
    ]
    header = ["side", "bytes", "nodes", "clients", "round", "seconds_a_request", "p99_of_a_request"]
    pairs.write_csv(options.results / "scale.csv", header, rows)
    note = "loopback, stripes of 1 MiB; line: median, bar: slowest to fastest round"
    draw(options.results / "scale.png", size, nodes, clients, read, pairs.footer(options, note))


if __name__ == "__main__":
    main()
