"""Does the scale change the result? Figure 11 of Son 2010 up to four nodes, at scales a factor of four apart."""

import copy

import experiment
import pairs

SCALES, QUICK_SCALES = (1, 1 / 2, 1 / 4), (1 / 2, 1 / 4)
EXPERIMENT = "son2010_fig11"

# Nodes up to which it is done: more do not fit at scale 1.
MOST = 4

# How far times may be apart for the result not to depend on the scale: the longest by so much of the shortest.
NEAR = 0.1


def run(options, say=print):
    """Medians by scale: {scale: {(series, nodes): seconds}}."""
    found = {}
    for scale in QUICK_SCALES if options.quick else SCALES:
        options = copy.copy(options)
        options.scale, options.most = scale, MOST
        table, busy = experiment.table(experiment.run(EXPERIMENT, options, say)["rows"])
        found[scale] = {(series, x): of[0] for series, points in table.items() for x, of in points.items()}
        say(f"# this machine was busy to {busy:.0%} at most")
    return found


def spread(found):
    """By how much of the shortest time the longest is longer, for each point."""
    each = {point: [times[point] for times in found.values()] for point in next(iter(found.values()))}
    return {point: max(times) / min(times) - 1 for point, times in each.items()}


def report(found, path):
    rows = [(scale, *point, f"{seconds:.6f}") for scale, times in found.items() for point, seconds in times.items()]
    pairs.write_csv(path, ["scale", "series", "x", "seconds"], rows)
    apart = spread(found)
    worst = max(apart, key=apart.get)
    most = apart[worst]
    scales = ", ".join(f"{scale:g}" for scale in found)
    verdict = "the result does not depend on the scale" if most <= NEAR else "the result DEPENDS on the scale"
    yield f"{verdict}: at scales {scales} times are at most {most:.1%} apart ({worst[0]}, {worst[1]} nodes)"
    for ratio in sorted({x for _, x in apart}):
        parts = ", ".join(f"{times['AS SUM', ratio] / times['TS SUM', ratio]:.3f}" for times in found.values())
        yield f"AS / TS for SUM with {ratio} nodes: {parts}"
