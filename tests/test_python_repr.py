"""How notebooks and terminals show arrays and files: correctly, and without a read or a request."""

import json
from html.parser import HTMLParser

import h5py
import numpy as np
import pytest
import xarray as xr
from conftest import Gristmill
from python_arrays import PLACES, gm, places, theirs  # noqa: F401

EVIL = '<script>alert("1")<script><img src=x onerror="alert(2)">'


class Page(HTMLParser):
    """The tags and the text of a page of HTML."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts, self.open = set(), [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


def pictures(shown):
    """Both ways in which an object is shown: its text and its HTML."""
    page = Page(shown._repr_html_())
    assert not page.open
    assert page.tags <= {"div", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "svg", "rect", "details", "summary"}
    return str(shown), page.text


@pytest.mark.parametrize("place", PLACES)
def test_no_picture_reads_anything(places, place):
    arrays = gm.open_arrays(places[place])
    eager, lazy = gm.open_dataset(places[place]), gm.open_dataset(places[place], chunks={})
    engine = xr.open_dataset(places[place], engine="gristmill")
    with gm.trace() as trace, gm.set_options(fallback="error"):
        expression = np.where(arrays["tos"] > 280, arrays["tos"] - 273.15, np.nan)[2:]
        for shown in (arrays["tos"], expression, arrays):
            pictures(shown)
            repr(shown)
        for dataset in (eager, lazy, engine, eager.tos - 273.15):
            repr(dataset)
            Page(dataset._repr_html_())
    assert trace.requests == trace.reads == 0 and not trace.fallbacks


@pytest.mark.parametrize("place", PLACES)
def test_what_is_said_of_an_array(places, theirs, place):
    arrays = gm.open_arrays(places[place])
    for text in pictures(arrays["packed"]):
        for said in ("(time: 36, lat: 12, lon: 16)", "float64", "54.00 KiB", "24 x (10, 5, 8) of 800 B", "packed of "):
            assert said in text
        assert ("zstd" if place == "zarr" else "shuffle, deflate") in text
    for text in pictures(arrays):
        for name in theirs.variables:
            assert name in text


def test_bytes_of_nodes_are_those_that_the_command_tells(places, tmp_path):
    url = places["cluster"]
    again = places.cluster.path("again.nc")
    gm.put(places["netcdf"], again, stripe="4KiB")
    for place in (url, again):
        said = json.loads(Gristmill(tmp_path).ok("stat", place, "--var", "tos", "--json"))["variables"][0]["targets"]
        text, page = pictures(gm.open_arrays(place)["tos"])
        assert len(said) > 1 or place == url
        for one in said:
            size = f"{one['bytes'] / 1024:.2f} KiB"
            assert f"{one['node']} " in text and size in text
            assert one["node"] in page and size in page
        lines = [line for line in text.splitlines() if "█" in line]
        assert [line.split()[-4] for line in lines] == [one["node"] for one in said]
        inline = gm.open_arrays(place)["tos"]._repr_inline_(80)
        nodes = f"{len(said)} node{'' if len(said) == 1 else 's'}"
        assert inline == f"gristmill.Array on {nodes}, chunks (10, 5, 8)"
        assert f"gristmill.Array on {nodes}" in repr(gm.open_dataset(place))
        assert f"gristmill.Array on {nodes}" in gm.open_dataset(place)._repr_html_()


def test_chunks_of_a_zarr_folder_on_nodes(places):
    cluster = places["cluster"] and places.cluster
    Gristmill(places.folder).ok("put", places["zarr"], cluster.path("fields.zarr"))
    array = gm.open_arrays(cluster.path("fields.zarr"))["tos"]
    text, _ = pictures(array)
    there = sum(path.stat().st_size for path in (places["zarr"] / "tos" / "c").rglob("*") if path.is_file())
    assert "files        24" in text and f"stored       {there / 1024:.2f} KiB" in text
    bars = [line for line in text.splitlines() if "█" in line]
    assert 1 <= len(bars) <= 3
    held = sum(float(line.split()[-3]) for line in bars)
    assert held == pytest.approx(there / 1024, abs=0.02)
    assert array._repr_inline_(80) == f"gristmill.Array on {cluster.url.split('/')[2]}, chunks (10, 5, 8)"


def test_expressions_are_said_shortly(places):
    arrays = gm.open_arrays(places["netcdf"])
    tos, a = arrays["tos"], arrays["a"]
    said = lambda array: str(array).splitlines()[0].removeprefix("gristmill.Array ")  # noqa: E731
    assert said(tos) == "tos"
    assert said(tos[2:9, :, 3]) == "tos[2:9, :, 3]"
    assert said(tos[::2] - 273.15) == "tos[0:36:2, :, :] - 273.15"
    assert said(np.where(np.isnan(tos), 0, -tos)) == "where(isnan(tos), 0, -tos)"
    assert said((tos > 280) & ~(a < 1)) == "(tos > 280) & ~(a < 1)"
    assert said(a * np.ones((36, 12, 16))) == "a * <array (36, 12, 16)>"
    assert said(tos.astype("f8")) == "float64(tos)"
    both = str(a * arrays["b"])
    assert "made of      a of " in both and "made of      b of " in both
    assert (a + 1)._repr_inline_(90) == "gristmill.Array a + 1 in fields.nc, chunks (10, 5, 8)"
    assert len(a._repr_inline_(20)) == 20


def test_large_trees_are_cut(places):
    tree = gm.open_arrays(places["netcdf"])["a"]
    for _ in range(60):
        # Written out as a tree it has 2^60 parts.
        tree = tree * tree
    text, _ = pictures(tree)
    assert len(text) < 2000 and "…" in text.splitlines()[0] and "made of" not in text


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    path = tmp_path_factory.mktemp("evil") / "<b>evil<b>.h5"
    with h5py.File(path, "w") as file:
        file[EVIL] = np.arange(6.0)
        file[EVIL].attrs["units"] = EVIL
        file[EVIL].make_scale(EVIL)
        file.attrs[EVIL] = EVIL
        file.attrs["long"] = "x" * 100_000
        file.attrs["numbers"] = np.arange(5_000)
    return path


def test_names_and_attributes_from_outside_are_text(evil):
    with gm.up(nodes=2, lanes=1) as nodes:
        url = nodes.path(f"{EVIL.replace('/', '')}.h5")
        gm.put(evil, url, stripe="1KiB")
        for place in (evil, url):
            arrays = gm.open_arrays(place)
            for shown in (arrays, arrays[EVIL], arrays[EVIL] - 1):
                text, page = pictures(shown)
                assert EVIL in text and EVIL in page
                assert len(page) < 20_000
            assert not {"script", "img", "b"} & Page(gm.open_dataset(place)._repr_html_()).tags
            with gm.open(place) as file:
                assert Page(file._repr_html_()).tags == Page(arrays._repr_html_()).tags


def test_a_file_of_bytes_is_no_page(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(b"not an array")
    with gm.open(path) as file:
        assert file._repr_html_() is None


def test_pictures_of_a_file_whose_nodes_are_gone(places):
    nodes = gm.up(nodes=2, lanes=1)
    gm.put(places["netcdf"], nodes.path("fields.nc"), stripe="4KiB")
    Gristmill(places.folder).ok("put", places["zarr"], nodes.path("fields.zarr"))
    opened = [gm.open_arrays(nodes.path(name)) for name in ("fields.nc", "fields.zarr")]
    nodes.stop()
    for arrays in opened:
        for shown in (arrays, arrays["tos"]):
            assert "tos" in pictures(shown)[0]
