"""Does the scale change the result? Figure 11 of Son 2010 up to four nodes, at scales a factor of four apart."""

import copy

import numpy as np

import experiment
import pairs

SCALES, QUICK_SCALES = (1, 1 / 2, 1 / 4), (1 / 2, 1 / 4)
EXPERIMENT = "son2010_fig11"

# Nodes up to which it is done: more do not fit at scale 1.
MOST = 4

# How far a time may be from the median over the scales for the result not to depend on them.
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
    """How far each point lies from its median over the scales: {point: {scale: part of the median}}."""
    points = list(next(iter(found.values())))
    return {
        point: {
            scale: times[point] / np.median([each[point] for each in found.values()]) - 1
            for scale, times in found.items()
        }
        for point in points
    }


def report(found, path):
    rows = [(scale, *point, f"{seconds:.6f}") for scale, times in found.items() for point, seconds in times.items()]
    pairs.write_csv(path, ["scale", "series", "x", "seconds"], rows)
    apart = spread(found)
    worst = max(apart, key=lambda point: max(map(abs, apart[point].values())))
    most = max(map(abs, apart[worst].values()))
    scales = ", ".join(f"{scale:g}" for scale in found)
    verdict = "the result does not depend on the scale" if most <= NEAR else "the result DEPENDS on the scale"
    yield f"{verdict}: at scales {scales} a point is at most {most:.1%} from its median ({worst[0]}, {worst[1]} nodes)"
    for ratio in sorted({x for _, x in apart}):
        parts = ", ".join(f"{times['AS SUM', ratio] / times['TS SUM', ratio]:.3f}" for times in found.values())
        yield f"AS / TS for SUM with {ratio} nodes: {parts}"
