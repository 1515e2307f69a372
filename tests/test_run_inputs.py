"""`gristmill run OP FILE --var NAME --with b=OTHER --expr 'x * b'`: expressions over several variables of a file."""

import netCDF4
import numpy as np
import pytest
import zarr

from conftest import one_message
from test_run_variables import array

SHAPE = (24, 10, 14)
DIMS = ("time", "lat", "lon")

# How each variable is stored. Their chunks differ, except in contiguous variables.
KINDS = {
    "f4": {"datatype": "f4", "chunksizes": (5, 4, 14), "zlib": True},
    "f8": {"datatype": "f8", "chunksizes": (1, 10, 14), "shuffle": True, "zlib": True},
    "i2": {"datatype": "i2", "chunksizes": (24, 3, 2), "fill_value": -9},
    "u1": {"datatype": "u1", "contiguous": True},
    "rows": {"datatype": "f8", "contiguous": True, "endian": "big"},
}

QUESTIONS = {
    "a product": ("sum", ("x * b", {"x": "f4", "b": "f8"}, "--axes", "time")),
    "packed": ("mean", ("x * b - b", {"x": "i2", "b": "f4"}, "--axes", "lat,lon")),
    "contiguous": ("var", ("x + b", {"x": "u1", "b": "rows"})),
    "one of each": ("max", ("where(m > 100, a * b, c)", {"x": "f8", "a": "f4", "b": "i2", "c": "rows", "m": "u1"})),
    "a part": ("mean", ("x - b", {"x": "f8", "b": "f4"}, "--isel", "time=3:20:4", "--isel", "lat=2", "--axes", "lon")),
    "medians": ("median", ("x * b", {"x": "f8", "b": "i2"}, "--axes", "time")),
}


def fields():
    rng = np.random.default_rng(4)
    f4 = rng.normal(280, 5, SHAPE).astype("f4")
    f4[rng.random(SHAPE) < 0.1] = np.nan
    i2 = rng.integers(-500, 500, SHAPE)
    return {
        "f4": f4,
        "f8": rng.normal(0, 1, SHAPE),
        "i2": np.where(rng.random(SHAPE) < 0.2, -9, i2).astype("i2"),
        "u1": rng.integers(0, 256, SHAPE).astype("u1"),
        "rows": rng.normal(3, 1, SHAPE),
    }


def decoded(name, values):
    return np.where(values == -9, np.nan, values * 0.5) if name == "i2" else values


def netcdf(path):
    with netCDF4.Dataset(path, "w") as file:
        for name, length in zip(DIMS, SHAPE):
            file.createDimension(name, length)
        for name, values in fields().items():
            variable = file.createVariable(name, dimensions=DIMS, **KINDS[name])
            variable.set_auto_maskandscale(False)
            variable[:] = values
            if name == "i2":
                variable.scale_factor = 0.5
        turned = file.createVariable("turned", "f4", ("time", "lon", "lat"))
        turned[:] = 1
    return path


def args(question):
    op, (expr, inputs, *rest) = QUESTIONS[question]
    others = [arg for name, variable in inputs.items() if name != "x" for arg in ("--with", f"{name}={variable}")]
    return op, ("--var", inputs["x"], *others, "--expr", expr, *rest)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return netcdf(tmp_path_factory.mktemp("inputs") / "fields.nc")


def test_numpy_computes_the_same(grist, path):
    v = {name: decoded(name, values) for name, values in fields().items()}

    def ask(question):
        op, given = args(question)
        return array(grist.answer(op, path, *given)["result"][op])

    close = {"rtol": 1e-12}
    np.testing.assert_allclose(ask("a product"), np.nansum(v["f4"] * v["f8"], 0), **close)
    product = v["i2"] * v["f4"] - v["f4"]
    np.testing.assert_allclose(ask("packed"), np.nanmean(product, (1, 2)), **close)
    np.testing.assert_allclose(ask("contiguous"), np.var(v["u1"] + v["rows"]), **close)
    largest = np.where(v["u1"] > 100, v["f4"] * v["i2"], v["rows"])
    np.testing.assert_array_equal(ask("one of each"), np.nanmax(largest))
    part = (v["f8"] - v["f4"])[3:20:4, 2]
    np.testing.assert_allclose(ask("a part"), np.nanmean(part, 1), **close)
    medians = np.nanmedian(v["f8"] * v["i2"], 0)
    np.testing.assert_allclose(ask("medians"), medians, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("nodes", [1, 3, 4])
def test_nodes_give_the_same_bits(grist, clusters, path, tmp_path, nodes):
    from cluster import Up

    there = clusters(Up, nodes=nodes)
    there.put("/fields.nc", path.read_bytes(), "--stripe", "4KiB")
    group = zarr.open_group(tmp_path / "fields.zarr", mode="w", zarr_format=2)
    for name, values in fields().items():
        # In version 2 the fill value of a chunk means missing.
        how = {"fill_value": -9 if name == "i2" else None}
        chunks = KINDS[name].get("chunksizes", SHAPE)
        made = group.create_array(name, shape=SHAPE, dtype=values.dtype, chunks=chunks, **how)
        made[:] = values
        scaled = {"scale_factor": 0.5, "_FillValue": -9} if name == "i2" else {}
        made.attrs.update({"_ARRAY_DIMENSIONS": DIMS} | scaled)
    grist.ok("put", tmp_path / "fields.zarr", there.url("/fields.zarr"))
    asked = [(there.url("/fields.nc"), place) for place in ("storage", "client")]
    if nodes == 3:
        asked += [(there.url("/fields.zarr"), place) for place in ("storage", "client")]
    for question in QUESTIONS:
        op, given = args(question)
        here = grist.answer(op, path, *given)["result"]
        assert grist.answer(op, tmp_path / "fields.zarr", *given)["result"] == here, question
        for url, place in asked:
            assert grist.answer(op, url, *given, "--place", place)["result"] == here, (question, url, place)


def test_what_does_not_fit_is_refused(grist, path):
    def refused(*args):
        done = grist("run", "mean", path, "--var", "f4", *args)
        assert done.returncode == 2
        return one_message(done.stderr)

    said = refused("--with", "b=turned", "--expr", "x * b")
    assert "time: 24, lat: 10, lon: 14" in said and "time: 24, lon: 14, lat: 10" in said
    assert "nowhere" in refused("--with", "b=nowhere", "--expr", "x * b")
    assert "'c' is not known here; there is x, b" in refused("--with", "b=f8", "--expr", "x * c")
    assert "two inputs of the expression are called x" in refused("--with", "x=f8", "--expr", "x * x")
    assert "not a name in an expression" in refused("--with", "2b=f8", "--expr", "x * 2")
    assert "--expr" in refused("--with", "b=f8")
