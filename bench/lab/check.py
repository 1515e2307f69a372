"""Does the scale change the result? Runs figure 11 of Son 2010 up to four nodes, at several scales.

All scales run in turns in every round, on the same hosts. So other changes of this machine affect all of them alike.
"""

import time

import dilation
import experiment
import machine
import pairs
from hosts import Hosts
from storage import Storage

SCALES, QUICK_SCALES = (1, 1 / 2, 1 / 4), (1 / 2, 1 / 4)
EXPERIMENT = "son2010_fig11"

# The maximum number of nodes. More do not fit at scale 1.
MOST = 4

# The shares of AS in the time of TS may differ by this much between scales. Up to that, the result does not depend on the scale.
NEAR = 0.05


def run(options, say=print):
    """Measures at each scale and returns medians: {scale: {(series, nodes): seconds}}."""
    module = experiment.load(EXPERIMENT)
    scales = QUICK_SCALES if options.quick else SCALES
    seconds = dilation.QUICK_SECONDS if options.quick else dilation.SECONDS
    repeats = options.repeats or (1 if options.quick else module.REPEATS)
    described = module.machine(machine.load(module.MACHINE), options.quick, most=MOST)
    with Hosts(described, options.data) as hosts:
        with Storage(hosts, options.gristmill, options.probe, options.data) as storage:
            benches = {scale: experiment.Bench(storage, options, scale) for scale in scales}
            situations = {scale: list(module.situations(bench, options.quick)) for scale, bench in benches.items()}
            folds = {scale: experiment.calibrating(bench, seconds) for scale, bench in benches.items()}
            cores = experiment.calibrated(storage, folds, options)
            for scale, (core, reached) in cores.items():
                say(f"# scale {scale:g}: cores {core:.3g} of ours each, which come to {reached:.2f} of their rate")
            rows = {scale: [] for scale in scales}
            for repeat in range(-1, repeats):
                for scale in scales:
                    hosts.shape(scale)
                    hosts.limit(cores[scale][0])
                    rows[scale] += experiment.one_round(situations[scale], repeat, storage)
                say(f"# round {repeat + 1} of {repeats}, {time.strftime('%H:%M:%S')}")
    found = {}
    for scale in scales:
        table, busy = experiment.table(rows[scale])
        found[scale] = {(series, x): of[0] for series, points in table.items() for x, of in points.items()}
        say(f"# scale {scale:g}: this machine was busy to {busy:.0%} at most")
    return found


def shares(found):
    """The time of AS over that of TS, for each kernel and number of nodes, at each scale."""
    points = [(name.removeprefix("AS "), nodes) for name, nodes in next(iter(found.values())) if name.startswith("AS ")]
    share = lambda times, kernel, nodes: times[f"AS {kernel}", nodes] / times[f"TS {kernel}", nodes]
    return {(kernel, n): [share(times, kernel, n) for times in found.values()] for kernel, n in sorted(points)}


def spread(found):
    """How much longer the longest time is than the shortest one, for each point."""
    each = {point: [times[point] for times in found.values()] for point in next(iter(found.values()))}
    return {point: max(times) / min(times) - 1 for point, times in each.items()}


def report(found, path):
    rows = [(scale, *point, f"{seconds:.6f}") for scale, times in found.items() for point, seconds in times.items()]
    pairs.write_csv(path, ["scale", "series", "x", "seconds"], rows)
    by_point = shares(found)
    worst = max(by_point, key=lambda point: max(by_point[point]) - min(by_point[point]))
    most = max(by_point[worst]) - min(by_point[worst])
    scales = ", ".join(f"{scale:g}" for scale in found)
    verdict = "the result does not depend on the scale" if most <= NEAR else "the result DEPENDS on the scale"
    yield (
        f"{verdict}: what AS takes of the time of TS is at scales {scales} at most {most:.1%} of that time apart "
        f"({worst[0]}, {worst[1]} nodes; up to {NEAR:.0%} counts as the same)"
    )
    for (kernel, nodes), each in by_point.items():
        yield f"AS / TS for {kernel} with {nodes} nodes: {', '.join(f'{share:.3f}' for share in each)}"
    apart = spread(found)
    worst = max(apart, key=apart.get)
    yield (
        f"the times themselves are up to {apart[worst]:.0%} apart ({worst[0]}, {worst[1]} nodes): Linux looks some hundred "
        "times a second whether a process has used up its part, so at a smaller scale hosts run and wait in coarser steps"
    )
