"""How many bytes an active request moves: the same SUM over more and more data on four nodes, in bytes that leave any host.

The answer has the same size for every file. So all bytes of a request are its answer and the protocol, and a file four times as
long must need the same number within 1 %. Packet headers do not count, because the number of packets depends on time. (A node that
works says so once a second, which takes a few bytes. Numbers in requests may have more digits, so the lengths of the compared
files have the same number of digits.)
"""

import schemes
import workload
from experiment import Situation

MACHINE, SCALE, QUICK_SCALE, REPEATS = "son2010", 1 / 2, 1 / 2, 5
TITLE = "The lab: bytes that an active SUM moves between hosts"
X, Y = "MB", "bytes that left any host, without heads of packets"
VALUE = "network_bytes"
LOG = "x"
NODES = 4
NEAR = 0.01


def sizes(quick):
    return (1, 16) if quick else (1, 256, 1024)


def machine(described, quick):
    return described.with_hosts(storage=NODES, client=1)


def situations(bench, quick):
    for size in sizes(quick):
        file = bench.file(workload.doubles, size << 20, NODES, unit=None)
        run = lambda file=file: schemes.active(bench.storage, file, workload.SUM, bench.clients[0])
        yield Situation("AS", size, run, bench.truth(file, workload.SUM))


def paper():
    return {}


PAPER = ""


def findings(table):
    moved = {size: of[1] for size, of in table["AS"].items()}
    shortest, *longer = sorted(moved)
    least, most = min(longer), max(longer)
    apart = moved[most] / moved[least] - 1
    verdict = "within" if abs(apart) <= NEAR else "NOT within"
    yield (
        f"{moved[most]:,.0f} bytes for {most} MB and {moved[least]:,.0f} for {least} MB, without the heads of packets: "
        f"{apart:+.1%}, {verdict} {NEAR:.0%}; {moved[shortest]:,.0f} for {shortest} MB, whose numbers have fewer digits"
    )
