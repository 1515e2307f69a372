"""Stores numbers on four storage nodes. Each node folds its own stripes, and only the answer comes back.

It prints:

    800000 bytes in stripes of 65536 bytes on 4 nodes
    mean 9.986228283871373, count 100000
    it is the exact mean, rounded once: True
    ... bytes came here, ... did not
    node 0: ... bytes
    node 1: ... bytes
    node 2: ... bytes
    node 3: ... bytes
"""

import statistics

import numpy as np

import gristmill as gm

values = np.random.default_rng(1).normal(10, 3, size=100_000)

# Four nodes on this machine, to try things. On a real cluster leave this out, and write grist://HOST:PORT/values.f64.
with gm.up(nodes=4) as nodes:
    url = nodes.path("values.f64")
    # With record=8 no number is cut in two by the end of a stripe.
    info = gm.put(values, url, stripe="64KiB", record=8)
    print(f"{info.length} bytes in stripes of {info.stripe_unit} bytes on {len(info.targets)} nodes")

    # Without place="storage", Gristmill decides where to compute by the bytes and by the load of the nodes.
    answer = gm.run("mean", url, type="f64", place="storage")
    print(f"mean {answer.mean}, count {answer.count}")
    print("it is the exact mean, rounded once:", answer.mean == statistics.mean(values.tolist()))

    report = answer.report
    print(f"{report['bytes_to_client']} bytes came here, {report['bytes_not_moved']} did not")
    for number, place in enumerate(report["places"]):
        print(f"node {number}: {place['bytes']} bytes")
