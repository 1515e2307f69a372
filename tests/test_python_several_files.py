"""Several files that continue one another: one request, the bits of one file, and what xarray computes."""

import contextlib
import gc
import os
import pickle
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr
from python_package import cluster, gm  # noqa: F401

DAYS = [365, 366, 365]
LAT, LON = 18, 36


def daily(rng, days, first):
    values = rng.normal(285, 12, (days, LAT, LON)).astype("f4")
    values[rng.random(values.shape) < 0.1] = np.nan
    time = xr.DataArray(np.arange(first, first + days), dims="time", attrs={"units": "days since 2000-01-01"})
    return xr.Dataset(
        {
            "tas": (("time", "lat", "lon"), values),
            "other": (("time", "lat", "lon"), values[::-1] / 100),
            "day": ("time", np.arange(days, dtype="f8")),
        },
        {"time": time, "lat": np.linspace(-85, 85, LAT), "lon": np.arange(LON) * 10.0},
    )


KINDS = {
    "unlimited": {"format": "NETCDF4", "unlimited_dims": ["time"]},
    "contiguous": {"format": "NETCDF4"},
    "classic": {"format": "NETCDF3_64BIT", "unlimited_dims": ["time"]},
    "packed": {
        "unlimited_dims": ["time"],
        "encoding": {"tas": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768, "zlib": True}}
    },
    "chunked": {"encoding": {"tas": {"chunksizes": (1, 6, 36), "zlib": True, "shuffle": True}}},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three years of days, in each kind of file, and all of them in one file."""
    folder = tmp_path_factory.mktemp("years")
    rng = np.random.default_rng(7)
    years = [daily(rng, days, sum(DAYS[:n])) for n, days in enumerate(DAYS)]
    for kind, how in KINDS.items():
        for n, year in enumerate(years):
            year.to_netcdf(folder / f"{kind}-{n}.nc", **how)
        with xr.open_mfdataset([folder / f"{kind}-{n}.nc" for n in range(3)], decode_times=False) as whole:
            whole.drop_encoding().to_netcdf(folder / f"{kind}-whole.nc", encoding={"tas": {"zlib": False}})
    return folder


@pytest.fixture(scope="module", params=["here", "cluster"])
def years(request, made, cluster):  # noqa: F811
    if request.param == "here":
        return str(made)
    gm.put(made, cluster.path("years"))
    return cluster.path("years")


def of(folder, kind):
    return [f"{folder}/{kind}-{n}.nc" for n in range(3)]


REDUCTIONS = {
    "mean": lambda ds: ds.tas.mean(),
    "mean over time": lambda ds: ds.tas.mean("time"),
    "zonal std": lambda ds: ds.tas.std(("time", "lon")),
    "expression": lambda ds: (ds.tas - 273.15).max(("lat", "lon")),
    "across the years": lambda ds: ds.tas.isel(time=slice(300, 800)).sum("time"),
    "stepped": lambda ds: ds.tas.isel(time=slice(10, 1000, 7), lat=slice(3, 9)).min("time"),
    "one year": lambda ds: ds.tas.isel(time=slice(365, 731)).mean("time"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_reduction_over_several_files_is_one_request(years, made, kind):
    with gm.open_mfdataset(of(years, kind)) as ours, xr.open_mfdataset(of(made, kind)) as theirs:
        theirs = theirs.load()
        for name, reduced in REDUCTIONS.items():
            with gm.set_options(fallback="error"), gm.trace() as trace:
                found = reduced(ours).compute()
            assert (trace.requests, trace.reads, trace.fallbacks) == (1, 0, []), name
            wanted = reduced(theirs.astype("f8") if "mean" in name or "std" in name else theirs).compute()
            rtol = 2e-6 if "f4" in (found.dtype, wanted.dtype) else 1e-10
            np.testing.assert_allclose(found.values, wanted.values, rtol=rtol, err_msg=name)


@pytest.mark.parametrize("kind", ["unlimited", "contiguous", "classic", "chunked"])
def test_several_files_give_the_bits_of_one_file(years, made, kind):
    for reduced in (lambda ds: ds.tas.mean(), lambda ds: ds.tas.sum("time"), lambda ds: ds.tas.std("lon")):
        with gm.open_mfdataset(of(years, kind)) as several, gm.open_dataset(f"{made}/{kind}-whole.nc") as one:
            assert reduced(several).values.tobytes() == reduced(one).values.tobytes()


def test_the_order_of_the_names_does_not_matter(years, made):
    names = of(years, "unlimited")
    with gm.open_mfdataset([names[2], names[0], names[1]]) as ours, gm.trace() as trace:
        found = ours.tas.isel(time=slice(360, 740)).mean("time").compute()
    with xr.open_dataset(f"{made}/unlimited-whole.nc") as whole:
        np.testing.assert_allclose(found, whole.tas.isel(time=slice(360, 740)).astype("f8").mean("time"), rtol=1e-6)
    assert (trace.requests, trace.reads) == (1, 0)


def test_the_given_order_counts_for_nested_lists(years, made):
    names = of(years, "contiguous")
    with gm.open_mfdataset(names[::-1], combine="nested", concat_dim="time") as ours, gm.trace() as trace:
        found = ours.tas.isel(time=slice(0, 365)).mean("time").compute()
    with xr.open_dataset(f"{made}/contiguous-2.nc") as last:
        np.testing.assert_allclose(found, last.tas.astype("f8").mean("time"), rtol=1e-6)
    assert (trace.requests, trace.reads) == (1, 0)


def test_preprocessing_keeps_it_one_request(years, made):
    def prepared(part):
        return (part[["tas"]].isel(lat=slice(2, 9)) - 273.15).assign_attrs(title="prepared")

    with gm.open_mfdataset(of(years, "unlimited"), preprocess=prepared) as ours, gm.trace() as trace:
        found = ours.tas.mean("time").compute()
    with xr.open_mfdataset(of(made, "unlimited"), preprocess=prepared) as theirs:
        np.testing.assert_allclose(found, theirs.tas.astype("f8").mean("time"), atol=1e-5)
    assert (trace.requests, trace.reads) == (1, 0)


def test_preprocessing_along_the_dimension_is_right(years, made):
    def prepared(part):
        return part.isel(time=slice(5, 100))

    with gm.open_mfdataset(of(years, "unlimited"), preprocess=prepared) as ours:
        found = ours.tas.mean("time").compute()
        assert ours.sizes["time"] == 285
    with xr.open_mfdataset(of(made, "unlimited"), preprocess=prepared) as theirs:
        np.testing.assert_allclose(found, theirs.tas.astype("f8").mean("time"), rtol=1e-6)


def test_elements_are_those_of_the_files(years, made):
    with gm.open_mfdataset(of(years, "packed")) as ours, xr.open_mfdataset(of(made, "packed")) as theirs:
        xr.testing.assert_identical(ours.compute(), theirs.compute())
        theirs = theirs.load()
        again = pickle.loads(pickle.dumps(ours.tas.mean("time"))).compute()
        np.testing.assert_allclose(again, theirs.tas.mean("time"), rtol=1e-12)


def test_variables_of_several_files_are_read_together(years, made):
    def product(ds):
        return (ds.tas * ds.other - 1).mean("time")

    with gm.open_mfdataset(of(years, "unlimited")) as ours, gm.set_options(fallback="error"), gm.trace() as trace:
        found = product(ours).compute()
    with xr.open_mfdataset(of(made, "unlimited")) as theirs:
        np.testing.assert_allclose(found, product(theirs).compute(), rtol=1e-5)
    assert (trace.requests, trace.reads) == (1, 0)


def write(path, first, values, **how):
    time = ("time", np.arange(first, first + len(values)), {"units": "days since 2000-01-01"})
    made = xr.Dataset({"v": (("time", "x"), values)}, {"time": time, "x": np.arange(values.shape[1])})
    made.to_netcdf(path, **how)


UNLIKE = {
    "scale factors": [{"encoding": {"v": {"dtype": "i2", "scale_factor": scale, "_FillValue": -1}}} for scale in (0.01, 0.02)],
    "types": [{"encoding": {"v": {"dtype": dtype}}} for dtype in ("f4", "f8")],
    "chunks": [{"encoding": {"v": {"chunksizes": (length, 50)}}} for length in (7, 4)],
    "a chunk across the files": [{"encoding": {"v": {"chunksizes": (7, 50)}}}] * 2,
    "compression": [{"encoding": {"v": {"chunksizes": (5, 50), "zlib": zlib}}} for zlib in (True, False)],
}


@pytest.mark.parametrize("what", UNLIKE)
def test_files_with_different_storage_give_the_right_numbers(tmp_path, what):
    rng = np.random.default_rng(3)
    for n, how in enumerate(UNLIKE[what]):
        write(tmp_path / f"{n}.nc", 40 * n, np.round(rng.normal(0, 30, (40, 50)), 2), **how)
    names = [tmp_path / "0.nc", tmp_path / "1.nc"]
    with gm.open_mfdataset(names) as ours, xr.open_mfdataset(names) as theirs:
        for reduced in (lambda ds: ds.v.mean(), lambda ds: ds.v.max("time"), lambda ds: ds.v[35:45].sum("time")):
            np.testing.assert_allclose(reduced(ours).compute(), reduced(theirs.astype("f8")).compute(), rtol=1e-6)


def test_a_unit_of_its_own_in_each_file_is_decoded_by_file(tmp_path):
    """Each file counts its days from its own beginning, so its times are decoded before the files are joined."""
    for n in range(2):
        time = ("time", np.arange(3), {"units": f"days since 200{n}-01-01"})
        xr.Dataset({"v": ("time", np.arange(3.0) + n)}, {"time": time}).to_netcdf(tmp_path / f"{n}.nc")
    names = [tmp_path / "0.nc", tmp_path / "1.nc"]
    with gm.open_mfdataset(names) as ours, xr.open_mfdataset(names) as theirs:
        xr.testing.assert_identical(ours.compute(), theirs.compute())
        assert float(ours.v.sel(time="2001").sum()) == float(theirs.v.sel(time="2001").sum()) == 6.0


def test_other_variables_in_other_files(tmp_path):
    rng = np.random.default_rng(5)
    for name in ("tas", "pr"):
        for n in range(2):
            time = ("time", np.arange(30 * n, 30 * n + 30), {"units": "days since 2000-01-01"})
            data = {name: (("time", "x"), rng.normal(size=(30, 600)))}
            xr.Dataset(data, {"time": time}).to_netcdf(tmp_path / f"{name}{n}.nc")
    names = sorted(tmp_path.glob("*.nc"))
    with gm.open_mfdataset(names) as ours, xr.open_mfdataset(names) as theirs, gm.trace() as trace:
        np.testing.assert_allclose(ours.tas.mean("time"), theirs.tas.mean("time"), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(ours.pr.mean("time"), theirs.pr.mean("time"), rtol=1e-12, atol=1e-15)
    assert trace.requests == 2


def test_missing_chunks_read_as_the_fill_value(tmp_path):
    for n in range(2):
        with netCDF4.Dataset(tmp_path / f"{n}.nc", "w") as made:
            made.createDimension("time", None)
            made.createDimension("x", 2000)
            made.createVariable("time", "f8", ("time",))[:] = np.arange(4) + 4 * n
            v = made.createVariable("v", "f4", ("time", "x"), chunksizes=(2, 1000), fill_value=-9)
            v[3, 1500] = 5 + n
    names = [tmp_path / "0.nc", tmp_path / "1.nc"]
    with gm.open_mfdataset(names) as ours, gm.trace() as trace:
        assert float(ours.v.sum()) == 11 and int(ours.v.count()) == 2
    assert trace.reads == 0


def test_a_file_that_was_replaced_is_an_error(tmp_path):
    rng = np.random.default_rng(1)
    for n in range(2):
        write(tmp_path / f"{n}.nc", 40 * n, rng.normal(size=(40, 50)))
    with gm.open_mfdataset([tmp_path / "0.nc", tmp_path / "1.nc"]) as ours:
        write(tmp_path / "new.nc", 40, rng.normal(size=(40, 50)))
        with open(tmp_path / "1.nc", "r+b") as file:
            file.write((tmp_path / "new.nc").read_bytes())
        with pytest.raises(gm.GristmillError, match="1.nc"):
            ours.v.mean().compute()


def test_a_file_of_a_cluster_that_was_removed_is_an_error(cluster, made):  # noqa: F811
    for n in range(3):
        gm.put(made / f"unlimited-{n}.nc", cluster.path(f"gone/{n}.nc"))
    with gm.open_mfdataset([cluster.path(f"gone/{n}.nc") for n in range(3)]) as ours:
        gm.remove(cluster.path("gone/1.nc"))
        # The objects are removed a moment later. Until then the old bytes are right.
        wanted = float(xr.open_dataset(made / "unlimited-whole.nc").tas.astype("f8").mean())
        try:
            assert float(ours.tas.mean().compute()) == pytest.approx(wanted, rel=1e-6)
        except gm.GristmillError as error:
            assert "gone/" in str(error) or "again" in str(error)


def test_a_variable_in_two_groups_of_files_is_merged_by_xarray(tmp_path):
    def made(name, n, **values):
        time = ("time", np.arange(30 * n, 30 * n + 30), {"units": "days since 2000-01-01"})
        data = {one: (("time", "x"), np.full((30, 40), value)) for one, value in values.items()}
        xr.Dataset(data, {"time": time}).to_netcdf(tmp_path / f"{name}{n}.nc")

    for n in range(2):
        made("both", n, tas=1.0, pr=2.0)
        made("tas", n, tas=np.nan if n else 100.0)
    names = sorted(tmp_path.glob("*.nc"))
    for how in ({"compat": "override", "coords": "minimal"}, {"compat": "no_conflicts"}):
        try:
            with xr.open_mfdataset(names, **how) as theirs:
                wanted = float(theirs.tas.mean()), int(theirs.tas.count())
        except (ValueError, xr.MergeError):
            continue
        with gm.open_mfdataset(names, **how) as ours:
            assert (float(ours.tas.mean()), int(ours.tas.count())) == wanted, how


def test_what_is_merged_without_a_dimension_is_not_joined(tmp_path):
    for n in range(2):
        write(tmp_path / f"{n}.nc", 40 * n, np.full((40, 50), 1.0 + n))
    names = [tmp_path / "0.nc", tmp_path / "1.nc"]
    how = {"combine": "nested", "concat_dim": [None], "compat": "override", "join": "outer"}
    with xr.open_mfdataset(names, **how) as theirs, gm.open_mfdataset(names, **how) as ours:
        assert float(ours.v.sum()) == float(theirs.v.sum())
        assert int(ours.v.count()) == int(theirs.v.count())


def test_the_dimension_may_have_labels(tmp_path):
    import pandas as pd

    for n in range(2):
        write(tmp_path / f"{n}.nc", 0, np.full((40, 50), 1.0 + n))
    names = [tmp_path / "0.nc", tmp_path / "1.nc"]
    labels = pd.Index([10, 20], name="member")
    for dim in ([labels], xr.DataArray([10, 20], dims="member", name="member")):
        how = {"combine": "nested", "concat_dim": dim}
        with gm.open_mfdataset(names, **how) as ours:
            assert ours.v.mean(("time", "x")).values.tolist() == [1.0, 2.0]
            assert ours.sizes["member"] == 2


def test_a_task_for_another_process_sees_that_a_file_grew(tmp_path):
    for n in range(2):
        write(tmp_path / f"{n}.nc", 4 * n, np.full((4, 50), 1.0 + n), unlimited_dims=["time"])
    with gm.open_mfdataset([tmp_path / "0.nc", tmp_path / "1.nc"]) as ours:
        task = pickle.dumps(ours.v.isel(time=slice(4, 8)).mean())
        assert float(pickle.loads(task).compute()) == 2.0
        write(tmp_path / "0.nc.new", 0, np.full((6, 50), 1.0), unlimited_dims=["time"])
        (tmp_path / "0.nc.new").rename(tmp_path / "0.nc")
        with pytest.raises(gm.Stale, match="0.nc"):
            pickle.loads(task).compute()


def test_a_task_for_another_process_sees_that_a_file_was_replaced(tmp_path):
    for n in range(2):
        write(tmp_path / f"{n}.nc", 4 * n, np.full((4, 50), 1.0 + n))
    with gm.open_mfdataset([tmp_path / "0.nc", tmp_path / "1.nc"]) as ours:
        task = pickle.dumps(ours.v.mean())
        write(tmp_path / "new.nc", 0, np.full((4, 50), 7.0))
        os.utime(tmp_path / "new.nc", (1e9, 1e9))
        (tmp_path / "new.nc").rename(tmp_path / "0.nc")
        with pytest.raises(gm.Stale, match="0.nc"):
            pickle.loads(task).compute()


def test_closing_closes_all_files(tmp_path):
    for n in range(3):
        write(tmp_path / f"{n}.nc", 40 * n, np.full((40, 50), 1.0))

    def opened():
        found = 0
        for one in list(Path("/proc/self/fd").iterdir()):
            # The list's own descriptor is closed already.
            with contextlib.suppress(FileNotFoundError):
                found += str(tmp_path) in os.readlink(one)
        return found

    ours = gm.open_mfdataset(sorted(tmp_path.glob("*.nc")))
    assert float(ours.v.mean()) == 1.0 and opened() >= 3
    ours.close()
    gc.collect()
    assert opened() == 0
