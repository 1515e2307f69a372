"""The Gaussian filter compared with SciPy."""

import math

import numpy as np
import pytest

ndimage = pytest.importorskip("scipy.ndimage")

MODES = ("reflect", "mirror", "nearest", "wrap", "constant")


def image(dtype, shape, seed=3):
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    return rng.normal(100, 40, shape).astype(dtype)


def blurred(grist, values, *args, dtype, **params):
    shape = ",".join(map(str, values.shape))
    grist.ask("gaussian", "image", "--type", dtype, "--output", "out", *args, shape=shape, **params)
    return np.fromfile(grist.cwd / "out", values.dtype).reshape(values.shape)


def expected(values, sigma, **how):
    sigma = (*np.broadcast_to(sigma, 2), *[0] * (values.ndim - 2))
    return ndimage.gaussian_filter(values.astype("f8"), sigma, **how)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(40, 31), (7, 300), (300, 7), (33, 20, 3), (1, 9), (9, 1), (3, 3)])
@pytest.mark.parametrize("dtype", ["f64", "f32", "u16", "u8"])
def test_agrees_with_scipy(grist, tmp_path, mode, shape, dtype):
    values = image(np.dtype(dtype.replace("64", "8").replace("32", "4").replace("16", "2").replace("u8", "u1")), shape)
    values.tofile(tmp_path / "image")
    ours = blurred(grist, values, dtype=dtype, sigma=2, mode=mode, cval=7)
    theirs = expected(values, 2, mode=mode, cval=7)
    if dtype == "f64":
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-11)
    elif dtype == "f32":
        np.testing.assert_allclose(ours, theirs, rtol=6e-8)
    else:
        np.testing.assert_array_equal(ours, np.round(theirs).astype(values.dtype))


@pytest.mark.parametrize("sigma, truncate", [("0.5", 4), ("1,3", 4), ("12", 4), ("2", 2.5)])
def test_widths_as_scipy_has_them(grist, tmp_path, sigma, truncate):
    values = image(np.dtype("f8"), (50, 41))
    values.tofile(tmp_path / "image")
    ours = blurred(grist, values, dtype="f64", sigma=sigma, truncate=truncate)
    theirs = expected(values, [float(each) for each in sigma.split(",")], truncate=truncate)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_the_mask_of_three_by_three(grist, tmp_path):
    values = image(np.dtype("u1"), (40, 30))
    values.tofile(tmp_path / "image")
    mask = np.outer([1, 2, 1], [1, 2, 1]) / 16
    theirs = np.round(ndimage.convolve(values.astype("f8"), mask, mode="reflect"))
    np.testing.assert_array_equal(blurred(grist, values, dtype="u8", mask="3x3"), theirs.astype("u1"))


@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_halves_go_to_the_even_number(grist, tmp_path, dtype):
    y, x = np.indices((60, 70))
    most = np.iinfo(dtype).max
    mask = np.outer([1, 2, 1], [1, 2, 1]) / 16
    # All sums are multiples of 1/16, so many of them are halves, and neither side has a rounding error.
    for values in ((x + y) % 2, (x + y) % 2 * most, 8 * (x == 35) + y % 3, x * 3 % 5 * (y % 7), most - (x * y) % 9):
        values = values.astype(dtype)
        values.tofile(tmp_path / "image")
        exact = ndimage.convolve(values.astype("f8"), mask, mode="reflect")
        ours = blurred(grist, values, dtype="u8" if dtype == "u1" else "u16", mask="3x3")
        np.testing.assert_array_equal(ours, np.round(exact).astype(dtype))


@pytest.mark.parametrize("mode", ["reflect", "wrap"])
@pytest.mark.parametrize("dtype, kind", [("u8", "u1"), ("u16", "u2"), ("f32", "f4"), ("f64", "f8")])
def test_a_summary_says_of_the_image_what_it_has(grist, tmp_path, dtype, kind, mode):
    values = image(np.dtype(kind), (33, 20, 3))
    values.tofile(tmp_path / "image")
    made = blurred(grist, values, dtype=dtype, sigma=2, mode=mode).ravel()
    told = grist.ask("gaussian", "image", "--type", dtype, shape="33,20,3", sigma=2, mode=mode, result="summary")
    exact = math.fsum(map(float, made))
    assert (told["sum"], told["count"]) == (exact, made.size)
    assert (told["min"], told["min_index"]) == (made.min(), made.argmin())
    assert (told["max"], told["max_index"]) == (made.max(), made.argmax())


def test_the_bits_do_not_depend_on_the_targets(grist, tmp_path):
    values = image(np.dtype("f8"), (101, 37))
    values.tofile(tmp_path / "image")
    plain = blurred(grist, values, dtype="f64", mode="wrap")
    for targets in (1, 3, 4, 7):
        on = ",".join(f"t{targets}.{n}" for n in range(targets))
        grist.ok("put", "image", f"striped{targets}.grist", "--on", on, "--stripe", "500")
        params = dict(shape="101,37", mode="wrap")
        grist.ask("gaussian", f"striped{targets}.grist", "--type", "f64", "--output", "out", **params)
        assert (tmp_path / "out").read_bytes() == plain.tobytes()


def test_values_that_are_not_finite_spread_as_they_do_in_scipy(grist, tmp_path):
    values = image(np.dtype("f8"), (40, 40))
    values[20, 20], values[5, 30] = np.nan, np.inf
    values.tofile(tmp_path / "image")
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(blurred(grist, values, dtype="f64"), expected(values, 2), rtol=1e-12)


def test_without_output_the_image_comes_back(grist, tmp_path):
    values = image(np.dtype("u1"), (20, 30))
    values.tofile(tmp_path / "image")
    done = grist("run", "gaussian", "image", "--type", "u8", "--param", "shape=20,30")
    assert done.returncode == 0 and done.stdout == np.round(expected(values, 2)).astype("u1").tobytes()
    assert b"shape" in done.stderr


@pytest.mark.parametrize(
    "params, code, words",
    [
        (dict(shape="21,30"), 1, ["21 rows", "20"]),
        (dict(shape="20,31"), 2, ["left over"]),
        (dict(shape="0,30"), 2, ["shape", "at least 1"]),
        (dict(shape="20"), 2, ["shape"]),
        (dict(), 2, ["shape", "1080,1920,3"]),
        (dict(shape="20,30", sigma="0"), 2, ["sigma", "above 0"]),
        (dict(shape="20,30", sigma="1e9"), 2, ["sigma", "4096"]),
        (dict(shape="20,30", mode="mirrors"), 2, ["mode", "mirror"]),
    ],
)
def test_bad_input_is_told(grist, tmp_path, params, code, words):
    image(np.dtype("u1"), (20, 30)).tofile(tmp_path / "image")
    given = [arg for name, value in params.items() for arg in ("--param", f"{name}={value}")]
    said = grist.refuses(code, "run", "gaussian", "image", "--type", "u8", "--output", "out", *given)
    for word in words:
        assert word in said, said
    assert not (tmp_path / "out").exists()


def test_other_types_are_refused(grist, tmp_path):
    (tmp_path / "image").write_bytes(bytes(80))
    said = grist.refuses(2, "run", "gaussian", "image", "--type", "i64", "--param", "shape=2,5")
    assert "u8, u16, f32 and f64" in said
