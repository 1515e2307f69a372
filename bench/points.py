"""One iteration of k-means compared with scikit-learn and faiss, from the same centres, over points in memory.

The time of an iteration is the difference between a run of 11 and a run of one, divided by ten. So the search for the first
centres and the last assignment do not count. Gristmill reads its points from a file in the page cache in every pass. The others
have them in arrays.
"""

import os

import numpy as np
from sklearn.cluster import KMeans

import data
import pairs
from probe import Probe

try:
    import faiss
except ImportError:
    faiss = None

DIMS, K, SEED = 10, 20, 8
FEW, MANY = 1, 11

# How far the centres of scikit-learn in f32 may be from those in f64. The points of a cluster have a spread of 5.
F32_OFF = 0.02


def points(folder, count, dtype):
    """Writes points around K centres, whose clusters overlap, to a file. Returns both."""
    path = folder / f"points-{count}-{DIMS}.{dtype}"
    rng = np.random.default_rng(SEED)
    centres = rng.uniform(-10, 10, (K, DIMS))
    values = (centres[rng.integers(K, size=count)] + rng.normal(0, 5, (count, DIMS))).astype(dtype.replace("f", "<f").replace("64", "8").replace("32", "4"))
    if not path.exists() or path.stat().st_size != values.nbytes:
        values.tofile(path)
    return path, values


def per_iteration(seconds):
    """The seconds for one iteration. `seconds` takes a number of iterations."""

    def run():
        few, many = seconds(FEW), seconds(MANY)
        return (many - few) / (MANY - FEW)

    return run


def main():
    options = pairs.arguments(__doc__, lanes=pairs.LANES, probe=pairs.PROBE)
    count = 100_000 if options.quick else 2_000_000
    options.data.mkdir(parents=True, exist_ok=True)
    sides, sizes, wanted = {}, {}, []
    with Probe(options.probe) as probe:
        for dtype in ("f64", "f32"):
            path, values = points(options.data, count, dtype)
            pairs.warm(path)

            def ask(iterations, path=path, dtype=dtype):
                params = dict(dims=str(DIMS), k=str(K), init="first", tol="0", max_iter=str(iterations))
                return probe.run("kmeans", path, type=dtype, params=params, lanes=options.lanes)

            def learn(iterations, values=values):
                return KMeans(K, init=values[:K], n_init=1, max_iter=iterations, tol=0, algorithm="lloyd").fit(values)

            # Both are compared with scikit-learn's answer in f64. After some iterations its answer for f32 points in f32 is off by
            # thousandths of a coordinate, and ours is not.
            ours, theirs, exact = ask(MANY)["result"], learn(MANY), learn(MANY, values.astype("f8"))
            agree = np.allclose(ours["centers"], exact.cluster_centers_, rtol=1e-6)
            agree &= np.allclose(theirs.cluster_centers_, exact.cluster_centers_, atol=F32_OFF)
            agree &= ours["iterations"] == theirs.n_iter_ == exact.n_iter_
            pairs.require(agree, f"k-means of {dtype}")
            sides[f"gristmill {dtype}"] = per_iteration(lambda n, ask=ask: ask(n)["seconds"])
            sides[f"scikit-learn {dtype}"] = per_iteration(lambda n, learn=learn: pairs.timed(lambda: learn(n))())
            wanted.append((f"gristmill {dtype}", f"scikit-learn {dtype}", 1.0))
            if dtype == "f32" and faiss is not None:

                def cluster(iterations, values=values):
                    how = dict(niter=iterations, min_points_per_centroid=1, max_points_per_centroid=len(values))
                    kmeans = faiss.Kmeans(DIMS, K, seed=1, **how)
                    kmeans.train(values, init_centroids=values[:K])

                faiss.omp_set_num_threads(len(os.sched_getaffinity(0)))
                sides["faiss f32"] = per_iteration(lambda n: pairs.timed(lambda: cluster(n))())
                wanted.append(("gristmill f32", "faiss f32", 1.5))
        sizes = {name: count * DIMS * (8 if "f64" in name else 4) for name in sides}
        times = pairs.rounds(sides, options.rounds)
    ratios = [pairs.ratio(times, over, base, goal) for over, base, goal in wanted]
    title = f"One iteration of k-means: {count:,} points of {DIMS} coordinates, {K} centres, {options.lanes} lanes"
    pairs.report("points", title, options, times, sizes, ratios, "all cores on all sides")


if __name__ == "__main__":
    main()
