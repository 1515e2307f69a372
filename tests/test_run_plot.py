"""`gristmill run OP FILE --var NAME --plot OUT.png`: the contents of pictures, and the printed rows of answers."""

import netCDF4
import numpy as np
import pytest
from PIL import Image

WIDTH, HEIGHT = 1000, 620
MISSING = (200, 200, 200)
LATS, LONS = np.array([-60.0, -20.0, 20.0, 60.0]), np.arange(8) * 45.0


def made(path, data, lats=LATS, lons=LONS):
    """A file with a map of these values at each of 3 times."""
    with netCDF4.Dataset(path, "w") as file:
        for name, values, units in (("time", np.arange(3.0), "days since 2001-01-01"), ("lat", lats, "degrees_north"),
                                    ("lon", lons, "degrees_east")):
            file.createDimension(name, len(values))
            one = file.createVariable(name, "f8", (name,))
            one[:], one.units = values, units
        x = file.createVariable("x", "f8", ("time", "lat", "lon"))
        x[:] = np.broadcast_to(data, (3, *data.shape))
        x.units, x.long_name = "K", "something warm"
    return path


def drawn(grist, folder, path, *args, op="mean"):
    done = grist("run", op, path, "--var", "x", *args, "--plot", "out.png", cwd=folder)
    assert done.returncode == 0 and done.stdout == b"", done.stderr
    with Image.open(folder / "out.png") as image:
        assert image.format == "PNG" and image.size == (WIDTH, HEIGHT) and image.mode == "RGB"
        return np.asarray(image).astype(int)


def coloured(image):
    """Pixels that are coloured: not background, not text, not missing."""
    spread = image.max(axis=2) - image.min(axis=2)
    return spread > 25


def light(pixel):
    return float(np.dot(pixel, (0.2126, 0.7152, 0.0722)))


def field(image):
    """The pixels of the map without its edge. It is the first stretch of columns that are coloured or grey."""
    inside = coloured(image) | (image == MISSING).all(axis=2)
    columns = np.flatnonzero(inside.sum(axis=0) > 100)
    end = np.flatnonzero(np.diff(columns) > 5)
    left, right = columns[0], columns[end[0]] if len(end) else columns[-1]
    rows = np.flatnonzero(inside[:, (left + right) // 2])
    return image[rows[0] : rows[-1] + 1, left : right + 1]


def cells(image, rows, columns):
    """The pixel at the centre of each cell."""
    high, wide, _ = image.shape
    at = lambda n, size: ((np.arange(n) + 0.5) / n * size).astype(int)
    return image[np.ix_(at(rows, high), at(columns, wide))]


def test_maps_have_north_above_and_what_is_missing_in_grey(grist, tmp_path):
    data = np.arange(32.0).reshape(4, 8)
    data[1, 2] = np.nan
    up = drawn(grist, tmp_path, made(tmp_path / "up.nc", data), "--axes", "time")
    down = drawn(grist, tmp_path, made(tmp_path / "down.nc", data[::-1], LATS[::-1]), "--axes", "time")
    np.testing.assert_array_equal(up, down)
    seen = cells(field(up), 4, 8)[::-1]  # in the order of the data: south first
    assert tuple(seen[1, 2]) == MISSING
    lights = [light(pixel) for pixel in seen.reshape(-1, 3)[~np.isnan(data).ravel()]]
    assert lights == sorted(lights) and lights[-1] > 6 * lights[0]
    high, wide, _ = field(up).shape
    # The cells of latitude end at 80 degrees. A degree is as wide as it is high.
    assert wide / high == pytest.approx(360 / 160, rel=0.02)


def test_the_bar_has_the_colours_of_the_map_from_below_to_above(grist, tmp_path):
    image = drawn(grist, tmp_path, made(tmp_path / "x.nc", np.arange(32.0).reshape(4, 8)), "--axes", "time")
    inside = field(image)
    columns = np.flatnonzero(coloured(image).sum(axis=0) > 100)
    bar = image[:, columns[-3]]
    bar = bar[coloured(image)[:, columns[-3]]]
    lights = np.array([light(pixel) for pixel in bar])
    assert (np.diff(lights) <= 1).all()
    # The edge of the bar hides the last colours.
    assert np.abs(bar[0] - inside[5, -5]).max() <= 4 and np.abs(bar[-1] - inside[-5, 5]).max() <= 4


def test_the_same_answer_is_the_same_picture(grist, tmp_path):
    path = made(tmp_path / "x.nc", np.random.default_rng(1).normal(size=(4, 8)))
    pictures = []
    for lanes in (1, 2):
        drawn(grist, tmp_path, path, "--axes", "time", "--lanes", lanes)
        pictures.append((tmp_path / "out.png").read_bytes())
    assert pictures[0] == pictures[1]


def test_lines_go_up_where_numbers_do_and_break_where_they_are_missing(grist, tmp_path):
    data = np.tile(np.arange(8.0), (4, 1))
    whole = coloured(drawn(grist, tmp_path, made(tmp_path / "x.nc", data), "--axes", "time,lat"))
    columns = np.flatnonzero(whole.any(axis=0))
    heights = [np.flatnonzero(whole[:, x]).mean() for x in columns]
    assert heights[0] > 450 and heights[-1] < 150
    np.testing.assert_allclose(heights, np.linspace(heights[0], heights[-1], len(heights)), atol=3)
    assert (np.diff(columns) == 1).all()
    data[:, 3:5] = np.nan
    broken = coloured(drawn(grist, tmp_path, made(tmp_path / "y.nc", data), "--axes", "time,lat"))
    gap = np.diff(np.flatnonzero(broken.any(axis=0))).max()
    assert gap > 2.5 * len(columns) / 7


def test_histograms_are_bars_from_zero(grist, tmp_path):
    data = np.repeat([0.5, 1.5, 2.5], [4, 8, 20]).reshape(4, 8)
    image = coloured(drawn(grist, tmp_path, made(tmp_path / "x.nc", data), "--param", "edges=0,1,3,5", op="histogram"))
    columns = np.flatnonzero(image.sum(axis=0) > 20)
    bars = np.split(columns, np.flatnonzero(np.diff(columns) > 1) + 1)
    # Each bar is as wide as its bin and as high as its count, and all stand on one line. The last bin is empty.
    assert len(bars) == 2
    high = [image[:, bar[len(bar) // 2]].sum() for bar in bars]
    foot = [np.flatnonzero(image[:, bar[len(bar) // 2]]).max() for bar in bars]
    assert foot[0] == foot[1] and len(bars[1]) / len(bars[0]) == pytest.approx(2, rel=0.05)
    assert high[1] / high[0] == pytest.approx(28 / 4, rel=0.05)


def test_answers_that_are_odd_are_drawn(grist, tmp_path):
    nothing = made(tmp_path / "nan.nc", np.full((4, 8), np.nan))
    assert (cells(field(drawn(grist, tmp_path, nothing, "--axes", "time")), 3, 3) == MISSING).all()
    drawn(grist, tmp_path, nothing, "--axes", "time,lat")
    same = made(tmp_path / "same.nc", np.full((4, 8), 5.0))
    inside = cells(field(drawn(grist, tmp_path, same, "--axes", "time")), 4, 8)
    assert len(np.unique(inside.reshape(-1, 3), axis=0)) == 1
    unordered = made(tmp_path / "odd.nc", np.eye(4, 8), LATS[[2, 0, 3, 1]])
    drawn(grist, tmp_path, unordered, "--axes", "time")
    drawn(grist, tmp_path, same, "--axes", "lat", "--groupby", "time.season", "--select", "lon=0:90")
    drawn(grist, tmp_path, same, "--axes", "lat", "--isel", "time=0:1")
    huge = made(tmp_path / "huge.nc", np.linspace(-1e300, 1e300, 32).reshape(4, 8))
    drawn(grist, tmp_path, huge, "--axes", "time")
    drawn(grist, tmp_path, same, "--axes", "time,lat", "--param", "q=0.1,0.5", op="quantile")
    drawn(grist, tmp_path, same, "--param", "edges=0,3,7,9", op="histogram")


@pytest.mark.parametrize(
    "op, args, word",
    [
        ("mean", [], "one number"),
        ("count", ["--groupby", "time.month"], "one or two"),
        ("mean", ["--coarsen", "lat=2"], "--axes"),
        ("moments", ["--axes", "time"], "several arrays"),
        ("mean", ["--axes", "time", "--isel", "lon=5:5"], "nothing of lon"),
    ],
)
def test_what_cannot_be_drawn_is_said(grist, tmp_path, op, args, word):
    path = made(tmp_path / "x.nc", np.arange(32.0).reshape(4, 8))
    with netCDF4.Dataset(path, "a") as file:
        file["time"][:] = [0, 40, 80]
    assert word in grist.refuses(2, "run", op, path, "--var", "x", *args, "--plot", tmp_path / "no.png")
    assert not (tmp_path / "no.png").exists()


def test_a_picture_is_a_png_of_a_variable(grist, tmp_path):
    path = made(tmp_path / "x.nc", np.arange(32.0).reshape(4, 8))
    assert ".png" in grist.refuses(2, "run", "mean", path, "--var", "x", "--axes", "time", "--plot", "x.jpg")
    assert "--var" in grist.refuses(2, "run", "mean", path, "--plot", "x.png", "--type", "f64")


def test_texts_have_a_line_for_each_row(grist, tmp_path):
    data = np.arange(32.0).reshape(4, 8)
    path = made(tmp_path / "x.nc", data)
    text = grist.ok("run", "mean", path, "--var", "x", "--axes", "time").decode().splitlines()
    assert text[0].strip() == "mean"
    np.testing.assert_array_equal(np.array([line.split() for line in text[1:5]], float), data)
    text = grist.ok("run", "mean", path, "--var", "x", "--coarsen", "time=3").decode().splitlines()
    np.testing.assert_array_equal(np.array([line.split() for line in text[1:5]], float), data)
    text = grist.ok("run", "count", path, "--var", "x", "--coarsen", "lat=2").decode().split("dimensions")[0]
    assert [len(block.strip().splitlines()) for block in text.partition("count")[2].split("\n\n")] == [2, 2, 2]
    assert len(grist.ok("run", "mean", path, "--var", "x", "--axes", "time,lat").decode().splitlines()) == 2


def test_what_a_file_does_not_hold_is_said_before_it_is_computed(grist, tmp_path):
    path = made(tmp_path / "x.nc", np.arange(32.0).reshape(4, 8))
    whole = path.read_bytes()
    with netCDF4.Dataset(path) as file:
        raw = file["x"][0].tobytes()
    path.write_bytes(whole[: len(whole) - len(raw)])  # a chunk cannot be read
    for args, word in (("mean --axes time --isel lon=5:5 --output o.nc", "lon"), ("moments --axes time --output o.npy", "several arrays")):
        op, *rest = args.split()
        assert word in grist.refuses(2, "run", op, path, "--var", "x", *rest)
