"""The Gaussian filter compared with SciPy and OpenCV: from a file in the page cache to an image in memory.

SciPy and OpenCV have the image in memory already; gristmill reads it from its file.
"""

import numpy as np
from scipy import ndimage

import pairs
from probe import Probe

try:
    import cv2
except ImportError:
    cv2 = None

SIGMA = 2.0
TYPES = {"u8": "u1", "u16": "<u2", "f32": "<f4", "f64": "<f8"}


def image(folder, side, dtype):
    rng = np.random.default_rng(5)
    path = folder / f"image-{side}.{dtype}"
    values = rng.integers(0, 250, (side, side)).astype(TYPES[dtype])
    if not path.exists() or path.stat().st_size != values.nbytes:
        values.tofile(path)
    return path, values


def main():
    options = pairs.arguments(__doc__, lanes=pairs.LANES, probe=pairs.PROBE)
    side = 512 if options.quick else 4096
    options.data.mkdir(parents=True, exist_ok=True)
    sides, sizes, wanted = {}, {}, []
    with Probe(options.probe) as probe:
        for dtype in TYPES:
            path, values = image(options.data, side, dtype)
            pairs.warm(path)

            def ask(path=path, dtype=dtype):
                params = dict(shape=f"{side},{side}", sigma=str(SIGMA))
                return probe.run("gaussian", path, type=dtype, params=params, lanes=options.lanes, rows="collect")

            pairs.require(ask()["result"]["shape"] == [side, side], dtype)
            sides[f"gristmill {dtype}"] = lambda ask=ask: ask()["seconds"]
            sides[f"SciPy {dtype}"] = pairs.timed(lambda values=values: ndimage.gaussian_filter(values, SIGMA))
            wanted.append((f"gristmill {dtype}", f"SciPy {dtype}", 0.25))
            if cv2 is not None:
                # SciPy has 17 taps with truncate=4.
                blur = lambda values=values: cv2.GaussianBlur(values, (17, 17), SIGMA, borderType=cv2.BORDER_REFLECT)
                sides[f"OpenCV {dtype}"] = pairs.timed(blur)
                wanted.append((f"gristmill {dtype}", f"OpenCV {dtype}", 2.0))
            sizes |= {name: values.nbytes for name in sides if name.endswith(dtype)}
        times = pairs.rounds(sides, options.rounds)
    ratios = [pairs.ratio(times, over, base, goal) for over, base, goal in wanted]
    title = f"Gaussian filter, sigma {SIGMA:g}: an image of {side} x {side}, {options.lanes} lanes"
    pairs.report("image", title, options, times, sizes, ratios, "OpenCV on all cores, SciPy on one")


if __name__ == "__main__":
    main()
