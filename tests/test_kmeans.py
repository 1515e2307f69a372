"""k-means compared with scikit-learn, from the same centres."""

import numpy as np
import pytest

cluster = pytest.importorskip("sklearn.cluster")

N, DIMS, K = 5000, 10, 20


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(7)
    centres = rng.uniform(-50, 50, (K, DIMS))
    return centres[rng.integers(K, size=N)] + rng.normal(0, 12, (N, DIMS)) + 1000


def ask(grist, path, *args, dtype="f64", **params):
    return grist.ask("kmeans", path, "--type", dtype, *args, dims=DIMS, k=K, **params)


@pytest.mark.parametrize("iterations", [1, 2, 5, 300])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_agrees_with_scikit_learn_after_every_iteration(grist, tmp_path, points, iterations, dtype):
    values = points.astype({"f64": "<f8", "f32": "<f4"}[dtype])
    values.tofile(tmp_path / "points")
    start = values[:K].astype("f8")
    theirs = cluster.KMeans(
        K, init=start, n_init=1, max_iter=iterations, tol=1e-4, algorithm="lloyd"
    ).fit(values.astype("f8"))
    ours = ask(grist, "points", dtype=dtype, init="first", max_iter=iterations)
    np.testing.assert_allclose(ours["centers"], theirs.cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(ours["counts"], np.bincount(theirs.labels_, minlength=K))
    np.testing.assert_allclose(ours["inertia"], theirs.inertia_, rtol=1e-9)
    assert ours["iterations"] == theirs.n_iter_


def test_the_bits_do_not_depend_on_the_targets(grist, tmp_path, points):
    points.tofile(tmp_path / "points")
    plain = grist.answer("kmeans", "points", "--type", "f64", dims=DIMS, k=K, init="kmeans++", seed=3)["result"]
    for targets in (1, 3, 4, 7):
        on = ",".join(f"t{targets}.{n}" for n in range(targets))
        grist.ok("put", "points", f"striped{targets}.grist", "--on", on, "--stripe", "1000")
        params = dict(dims=DIMS, k=K, init="kmeans++", seed=3)
        assert grist.answer("kmeans", f"striped{targets}.grist", "--type", "f64", **params)["result"] == plain


def test_labels_are_those_of_the_nearest_centre(grist, tmp_path, points):
    points.tofile(tmp_path / "points")
    ours = ask(grist, "points", "--output", "labels", init="random", labels="true", max_iter=3)
    labels = np.fromfile(tmp_path / "labels", "<i4")
    apart = ((points[:, None, :] - np.array(ours["centers"])) ** 2).sum(2)
    np.testing.assert_array_equal(labels, apart.argmin(1))
    np.testing.assert_array_equal(ours["counts"], np.bincount(labels, minlength=K))
    np.testing.assert_allclose(ours["inertia"], apart.min(1).sum(), rtol=1e-10)


def test_centres_from_a_file(grist, tmp_path, points):
    points.tofile(tmp_path / "points")
    points[100 : 100 + K].tofile(tmp_path / "start")
    theirs = cluster.KMeans(K, init=points[100 : 100 + K], n_init=1, max_iter=4, tol=0).fit(points)
    ours = ask(grist, "points", init="start", max_iter=4, tol=0)
    np.testing.assert_allclose(ours["centers"], theirs.cluster_centers_, rtol=1e-9)


def test_kmeans_plus_plus_draws_as_it_should(grist, tmp_path):
    """There are two distant groups. Both get a centre, whatever the seed is."""
    rng = np.random.default_rng(1)
    groups = np.concatenate([rng.normal(0, 1, (300, DIMS)), rng.normal(1e4, 1, (3, DIMS))])
    groups.tofile(tmp_path / "groups")
    for seed in range(5):
        result = grist.ask("kmeans", "groups", "--type", "f64", dims=DIMS, k=2, seed=seed, max_iter=1)
        assert sorted(result["counts"]) == [3, 300]


def test_delta_ends_when_few_points_change(grist, tmp_path, points):
    points.tofile(tmp_path / "points")
    full = ask(grist, "points", init="first", tol=0)["iterations"]
    early = ask(grist, "points", init="first", tol=0, delta=0.05)["iterations"]
    assert 1 < early < full
    assert ask(grist, "points", init="first", tol=0, delta=0)["iterations"] <= full


def test_an_empty_cluster_keeps_its_centre(grist, tmp_path):
    np.zeros((5, 2)).tofile(tmp_path / "zeros")
    np.array([[0.0, 0], [9, 9]]).tofile(tmp_path / "start")
    result = grist.ask("kmeans", "zeros", "--type", "f64", dims=2, k=2, init="start")
    assert result == {"centers": [[0, 0], [9, 9]], "counts": [5, 0], "inertia": 0, "iterations": 1}


@pytest.mark.parametrize(
    "params, code, words",
    [
        (dict(dims=2, k=20), 1, ["k=20", "there are 5"]),
        (dict(dims=3, k=2), 2, ["record"]),
        (dict(dims=2, k=0), 2, ["from 1 to"]),
        (dict(dims=2, k=2, tol=-1), 2, ["tol"]),
        (dict(dims=2, k=2, init="nowhere"), 1, ["nowhere"]),
        (dict(k=2), 2, ["dims"]),
    ],
)
def test_bad_input_is_told(grist, tmp_path, params, code, words):
    np.zeros((5, 2)).tofile(tmp_path / "zeros")
    given = [arg for name, value in params.items() for arg in ("--param", f"{name}={value}")]
    said = grist.refuses(code, "run", "kmeans", "zeros", "--type", "f64", *given)
    for word in words:
        assert word in said, said


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_point_that_is_not_finite_is_named(grist, tmp_path, value):
    points = np.ones((50, 4))
    points[33, 2] = value
    points.tofile(tmp_path / "points")
    given = ["--param", "dims=4", "--param", "k=2"]
    said = grist.refuses(1, "run", "kmeans", "points", "--type", "f64", *given)
    assert "coordinate 2 of point 33" in said, said
