"""Shared parts of the tests of monitoring: requests that stay unfinished, and what the nodes report."""

import json
import urllib.error
import urllib.request

import numpy as np
from cluster import Nodes
from raw import flight, opened, parts

# The nodes get so little processor time that a fold stops after its first block until it is cancelled.
CRAWL = ("--active-share", "0.000001")
FEW = np.random.default_rng(5).normal(size=100_000)  # less than what may be moved, and more than a block
MANY = np.random.default_rng(6).normal(size=400_000)  # enough to be moved


class Asking:
    """A fold on one node, requested by a process with a name of its choice. It goes on until `let_go`."""

    def __init__(self, nodes, path, count, name=None, kernel="sum"):
        found = opened(nodes, path)
        [target] = parts(found)[1]
        fold = {
            "gristmill": 1, "grant": found["grant"], "kernel": kernel, "params": [], "input": {"type": "f64"},
            "max_record": 1 << 20, "targets": [0], "round": 0, "select": [0, count],
        }  # fmt: skip
        if name is not None:
            fold["asker"] = {"name": name, "lanes": 2}
        self.client = flight.connect(f"grpc://{target['address']}")
        ticket = flight.Ticket(json.dumps({"fold": fold}).encode())
        self.answer = self.client.do_get(ticket)

    def let_go(self):
        if self.client is not None:
            self.answer.cancel()
            self.client.close()
            self.client = None


class Crawling:
    """Nodes that hardly fold, with files on one of them. All requests are cancelled at the end."""

    def __init__(self, started, nodes=2):
        self.nodes = started(Nodes, nodes=nodes, args=CRAWL)
        self.nodes.put("/few", FEW.tobytes(), "--on", "1")
        self.nodes.put("/many", MANY.tobytes(), "--on", "1")
        self.asked = []

    def ask(self, path="/few", name=None, **how):
        count = {"/few": len(FEW), "/many": len(MANY)}[path]
        self.asked.append(Asking(self.nodes, path, count, name, **how))
        return self.asked[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for request in self.asked:
            request.let_go()


def get(address, path, headers=()):
    """Status, headers and body of a plain GET."""
    request = urllib.request.Request(f"http://{address}{path}", headers=dict(headers))
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def said(nodes, headers=()):
    """Returns the report of the entry node about all nodes."""
    status, _, body = get(nodes.entry, "/cluster", headers)
    assert status == 200, (status, body)
    return json.loads(body)


def requests(nodes, target):
    """The requests that a node lists."""
    return said(nodes)["nodes"][target]["requests"]
