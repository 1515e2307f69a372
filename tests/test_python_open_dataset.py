"""Files opened as datasets: keywords, groups, text and times, several files. The results are those of xarray."""

import warnings
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr
from python_package import cluster, gm  # noqa: F401


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A file with groups and with variables that are not plain numbers."""
    path = tmp_path_factory.mktemp("datasets") / "all.nc"
    rng = np.random.default_rng(41)
    with netCDF4.Dataset(path, "w") as made:
        made.title = "made up"
        made.setncattr("units_of_old", b"\xb0C")
        made.createDimension("time", None)
        made.createDimension("station", 4)
        made.createDimension("nv", 2)
        made.createDimension("letters", 5)
        time = made.createVariable("time", "i4", ("time",))
        time.setncatts({"units": "hours since 2001-01-01", "calendar": "noleap", "bounds": "time_bnds"})
        time[:] = np.arange(6) * 6
        bounds = made.createVariable("time_bnds", "f8", ("time", "nv"))
        bounds[:] = np.stack([np.arange(6) * 6.0, np.arange(6) * 6.0 + 6], axis=-1)
        names = made.createVariable("name", str, ("station",))
        names[:] = np.array(["Aachen", "Øresund", "", "north pole"], dtype=object)
        codes = made.createVariable("code", "S1", ("station", "letters"))
        codes[:] = netCDF4.stringtochar(np.array(["ab", "cde", "f", "ghijk"], "S5"))
        latitude = made.createVariable("lat", "f4", ("station",))
        latitude[:] = [50.8, 55.7, 0, 90]
        wind = made.createVariable("wind", "i2", ("time", "station"), fill_value=-999, zlib=True, chunksizes=(2, 3))
        wind.setncatts({"scale_factor": 0.1, "coordinates": "lat name", "cell_measures": "area: area", "units": "m/s"})
        wind[:] = rng.normal(5, 3, (6, 4))
        wind[2, 1] = np.ma.masked
        made.createVariable("area", "f8", ("station",))[:] = [1, 2, 3, 4]
        lasting = made.createVariable("lasting", "f8", ("time",))
        lasting.units = "days"
        lasting[:] = np.arange(6) / 4
        flag = made.createVariable("flag", "i1", ("time",))
        flag.setncattr("dtype", "bool")
        flag[:] = [0, 1, 1, 0, 1, 0]
        deep = made.createGroup("model/run 1")
        deep.about = "a run"
        deep.createDimension("x", 3)
        deep.createVariable("x", "f8", ("x",))[:] = [10, 20, 30]
        deep.createVariable("wind", "f4", ("time", "x"))[:] = rng.normal(size=(6, 3))
        deep.createVariable("label", str, ("x",))[:] = np.array(["a", "b", "c"], dtype=object)
    return path


@pytest.fixture(scope="module", params=["here", "cluster"])
def url(request, file, cluster):  # noqa: F811
    if request.param == "here":
        return file
    gm.put(file, cluster.path("all.nc"), stripe="8KiB")
    return cluster.path("all.nc")


HOW = [
    {},
    {"decode_coords": "all"},
    {"decode_coords": False},
    {"decode_times": False},
    {"decode_timedelta": True},
    {"decode_timedelta": False},
    {"decode_cf": False},
    {"mask_and_scale": False},
    {"mask_and_scale": {"wind": False}},
    {"decode_times": xr.coders.CFDatetimeCoder(use_cftime=False)},
    {"decode_times": xr.coders.CFDatetimeCoder(use_cftime=True)},
    {"concat_characters": False},
    {"drop_variables": "wind"},
    {"drop_variables": ["name", "time_bnds", "nowhere"]},
    {"group": "model/run 1"},
    {"group": "/model/run 1/", "drop_variables": {"wind"}},
]


@pytest.mark.parametrize("how", HOW, ids=range(len(HOW)))
@pytest.mark.parametrize("through", ["xarray", "gristmill"])
def test_files_are_opened_as_xarray_opens_them(url, file, how, through):
    try:
        with xr.open_dataset(file, engine="netcdf4", **how) as wanted:
            wanted.load()
    except (ValueError, OSError) as error:
        with pytest.raises(type(error)):
            xr.open_dataset(url, engine="gristmill", **how)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        if through == "xarray":
            ours = xr.open_dataset(url, engine="gristmill", **how)
        else:
            ours = gm.open_dataset(url, **how)
    with ours:
        assert list(ours.data_vars) == list(wanted.data_vars) and set(ours.coords) == set(wanted.coords)
        # netCDF4-python uses the same replacement characters for text that is not valid UTF-8.
        xr.testing.assert_identical(ours, wanted)
        for name, one in wanted.variables.items():
            assert ours[name].dtype == one.dtype
            kept = {"dtype", "units", "calendar", "scale_factor", "_FillValue", "coordinates"}
            if one.encoding.get("zlib"):
                kept |= {"chunksizes", "zlib", "shuffle", "contiguous", "original_shape"}
            for what in kept & one.encoding.keys() - ({"dtype"} if one.dtype.kind == "O" else set()):
                assert ours[name].encoding[what] == one.encoding[what], (name, what)
        assert ours.encoding["unlimited_dims"] == wanted.encoding["unlimited_dims"]


def test_numbers_of_groups_stay_where_they_are(url):
    with gm.set_options(fallback="error"), gm.trace() as trace:
        one = gm.open_dataset(url, group="model/run 1")
        mean = one.wind.mean("time")
    assert trace.requests == 1 and trace.fallbacks == []
    with xr.open_dataset(url, engine="gristmill", group="model/run 1") as same:
        np.testing.assert_array_equal(mean.values, same.wind.values.astype("f8").mean(0).astype("f4"))
    with pytest.raises(gm.NotFound, match="model/run 1"):
        gm.open_dataset(url, group="modell")


def test_groups_as_a_tree(url, file):
    with xr.open_datatree(url, engine="gristmill") as ours, xr.open_datatree(file, engine="netcdf4") as wanted:
        xr.testing.assert_identical(ours.load(), wanted.load())
    groups = xr.open_groups(url, engine="gristmill")
    assert set(groups) == {"/", "/model", "/model/run 1"}


def test_paths_of_pathlib_and_of_text(file, tmp_path, monkeypatch):
    monkeypatch.chdir(file.parent)
    for name in (file, str(file), file.name, Path(file.name)):
        assert float(gm.open_dataset(name).area.sum()) == 10
    monkeypatch.chdir(tmp_path)
    kept = gm.open_dataset(file)
    assert float(kept.area.sum()) == 10 and kept.encoding["source"] == str(file)


def test_a_closed_dataset_opens_its_file_again_if_it_is_the_same(tmp_path):
    path = tmp_path / "a.nc"
    xr.Dataset({"x": ("t", np.arange(4.0))}).to_netcdf(path)
    with gm.open_dataset(path) as dataset:
        assert float(dataset.x.sum()) == 6
    assert dataset.x.values.tolist() == [0, 1, 2, 3]
    dataset.close()
    xr.Dataset({"x": ("t", np.arange(5.0))}).to_netcdf(path)
    with pytest.raises(gm.Stale):
        dataset.x.max().values  # noqa: B018
    assert float(gm.open_dataset(path).x.sum()) == 10


@pytest.mark.parametrize(
    "how, says",
    [
        ({"storage_options": {"token": "secret-of-bob"}}, "GRISTMILL_TOKEN"),
        ({"engine": "netcdf4"}, "xarray.open_dataset"),
        ({"cache": True}, "cache_bytes"),
        ({"lock": True}, "several threads"),
        ({"backend_kwargs": {"mode": "r"}}, "backend_kwargs"),
    ],
)
def test_keywords_that_mean_nothing_are_refused_with_a_reason(file, how, says):
    with pytest.raises(gm.Usage, match=says) as error:
        gm.open_dataset(file, **how)
    assert "bob" not in str(error.value)
    with pytest.raises(TypeError, match="no keyword 'chunk'"):
        gm.open_dataset(file, chunk={})
    assert gm.open_dataset(file, engine="gristmill", storage_options={}, cache=None).wind.shape == (6, 4)


@pytest.mark.parametrize("version", [2, 3])
def test_missing_values_where_zarr_keeps_them(tmp_path, version):
    """Version 2 has missing values only in the description of the array. Version 3 has those of floats as text."""
    path = tmp_path / "z.zarr"
    time = np.array(["2001-01-01", "NaT", "2001-01-03"], "M8[ns]")
    made = xr.Dataset({name: ("t", [1.0, np.nan, 3.0]) for name in ("i2", "f4", "f8")} | {"when": ("t", time)})
    for name, fill in [("i2", -9), ("f4", 1e20), ("f8", 1e20)]:
        made[name].encoding = {"dtype": name, "_FillValue": fill}
    made["when"].encoding = {"dtype": "i8", "units": "days since 2000-01-01", "_FillValue": -1}
    made.to_zarr(path, zarr_format=version, consolidated=False)
    with xr.open_dataset(path, engine="zarr", consolidated=False) as wanted:
        ours = gm.open_dataset(path)
        xr.testing.assert_identical(ours, wanted.load())
    assert ours.i2.encoding["_FillValue"] == -9 and ours.f4.encoding["_FillValue"] == np.float32(1e20)
    assert [float(ours[name].sum()) for name in ("i2", "f4", "f8")] == [4, 4, 4]


@pytest.mark.parametrize("chunks", [None, {}])
@pytest.mark.parametrize("version", [2, 3])
def test_what_was_opened_is_written_elsewhere(url, tmp_path, chunks, version):
    ours = gm.open_dataset(url, group="model/run 1", chunks=chunks)
    ours.to_zarr(tmp_path / "copy.zarr", zarr_format=version, consolidated=False)
    with xr.open_dataset(tmp_path / "copy.zarr", engine="zarr", consolidated=False) as again:
        xr.testing.assert_equal(again, ours)
    ours.to_netcdf(tmp_path / "copy.nc", engine="netcdf4")
    with xr.open_dataset(tmp_path / "copy.nc", engine="netcdf4") as again:
        xr.testing.assert_equal(again, ours)


def test_files_are_mappings_of_their_arrays(url):
    with gm.open(url) as opened:
        assert set(opened.keys()) >= {"wind", "model/run 1/wind"} and "wind" in opened and "nothing" not in opened
        assert opened.attrs["title"] == "made up"
        wind = opened["wind"]
        assert (wind.shape, wind.dtype, wind.storage_chunks) == ((6, 4), np.dtype("f8"), (2, 3))
        assert {name: array.shape for name, array in opened.items()}["area"] == (4,)
        assert len(opened.values()) == len(opened.keys())
        np.testing.assert_allclose(wind[2:5].mean(axis=0), np.asarray(wind)[2:5].mean(axis=0), rtol=1e-14)


# Several files.


@pytest.fixture(scope="module")
def months(tmp_path_factory, cluster):  # noqa: F811
    """Files that follow each other in time, and a file of another variable."""
    folder = tmp_path_factory.mktemp("several")
    rng = np.random.default_rng(3)
    lat = np.linspace(-60, 60, 5)
    for n in range(3):
        time = np.arange(4) + 4.0 * n
        made = xr.Dataset(
            {"t": (("time", "lat"), rng.normal(280, 5, (4, 5))), "height": ("lat", np.arange(5.0))},
            {"time": ("time", time, {"units": "days since 2000-01-01"}), "lat": lat},
            {"number": n},
        )
        made.to_netcdf(folder / f"t{n}.nc")
        gm.put(folder / f"t{n}.nc", cluster.path(f"several/t{n}.nc"))
    return folder


@pytest.fixture(params=["here", "cluster"])
def several(request, months, cluster):  # noqa: F811
    return str(months) if request.param == "here" else cluster.path("several")


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"parallel": True},
        {"combine": "nested", "concat_dim": "time"},
        {"combine": "nested", "concat_dim": "time", "data_vars": "minimal", "coords": "minimal", "compat": "override"},
        {"combine": "nested", "concat_dim": "run", "join": "outer", "data_vars": "all", "coords": "all", "compat": "equals"},
        {"preprocess": lambda one: one.isel(lat=slice(1, 3))[["t"]], "data_vars": "all"},
        {"combine_attrs": "drop"},
        {"attrs_file": "t2.nc"},
        {"drop_variables": "height"},
    ],
    ids=lambda how: ",".join(how) or "nothing",
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_several_files_as_xarray_combines_them(several, months, how):
    names = [f"t{n}.nc" for n in range(3)]
    theirs, ours = dict(how), dict(how)
    if "attrs_file" in how:
        theirs["attrs_file"], ours["attrs_file"] = f"{months}/t2.nc", f"{several}/t2.nc"
    theirs.pop("parallel", None)
    if how.get("combine") == "nested":
        theirs.setdefault("data_vars", "all")
    with xr.open_mfdataset([months / name for name in names], engine="netcdf4", **theirs) as wanted:
        with gm.open_mfdataset(f"{several}/t?.nc", **ours) as found:
            xr.testing.assert_identical(found, wanted)
            with gm.trace() as trace:
                total = found.t.mean().compute()
            # An outer join moves elements to new labels in memory.
            assert "join" in how or (trace.requests == 1 and trace.fallbacks == [])
            np.testing.assert_allclose(total.values, wanted.t.mean().values, rtol=1e-12)
        with gm.open_mfdataset([f"{several}/{name}" for name in names], **ours) as found:
            xr.testing.assert_identical(found, wanted)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_lists_of_lists_and_mistakes(several, months):
    def names(folder):
        return [[f"{folder}/t0.nc", f"{folder}/t1.nc"], [f"{folder}/t1.nc", f"{folder}/t2.nc"]]

    how = {"combine": "nested", "concat_dim": ["run", "time"], "data_vars": "all", "join": "outer"}
    with xr.open_mfdataset(names(months), engine="netcdf4", **how) as wanted:
        xr.testing.assert_identical(gm.open_mfdataset(names(several), **how), wanted)
        assert wanted.sizes["run"] == 2
    for how, says in [
        ({"combine": "by_coords", "concat_dim": "time"}, "nested"),
        ({"combine": "nested"}, "concat_dim="),
        ({"combine": "other"}, "by_coords"),
        ({"attrs_file": "none.nc"}, "not one of the files"),
        ({"engine": "zarr"}, "xarray.open_mfdataset"),
    ]:
        with pytest.raises(gm.Usage, match=says):
            gm.open_mfdataset(f"{several}/t?.nc", **how)
    for pattern in (f"{several}/x*.nc", []):
        with pytest.raises(gm.NotFound, match="no files"):
            gm.open_mfdataset(pattern)


def test_arrays_for_others_to_write_into(file):
    array = gm.open_arrays(file)["area"]
    made = np.empty_like(array, "i4", shape=(2, 3))
    assert isinstance(made, np.ndarray) and made.dtype == "i4" and made.shape == (2, 3)
    assert np.zeros_like(array, "f4").dtype == np.dtype("f4") and float(np.ones_like(array).sum()) == 4
    assert np.full_like(array, 7, dtype="i2").dtype == np.dtype("i2")
    assert array.view("u1").tobytes() == np.arange(1.0, 5.0).tobytes()
