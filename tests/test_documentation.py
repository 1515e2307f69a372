"""The site of the documentation: it builds without a warning, it has every public name, and all its links lead to a page."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from conftest import ROOT
from python_package import gm
from sphinx.util.inventory import InventoryFile

TIMEOUT = 180  # seconds; a bound on a hang, not a measure of speed


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", folder / "trees"]
    done = subprocess.run(
        [*build, ROOT / "docs", folder / "html"],
        capture_output=True, text=True, timeout=TIMEOUT, env={**os.environ, "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Page(HTMLParser):
    """The links of a page, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.pictures_without_words = set(), set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        for name in ("href", "src"):
            if given.get(name):
                self.links.add(given[name])
        if tag == "img" and "alt" not in given:
            self.pictures_without_words.add(given.get("src"))


def test_no_link_leads_nowhere(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert {path.relative_to(site).as_posix() for path in pages} >= {
        "index.html", "api.html", "nodes.html", "kernels.html", "protocol.html", "correctness.html", "figures.html",
        "architecture.html", "contributing.html", "python/index.html", "notebooks/sst_climatology.html",
    }  # fmt: skip
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert parts.scheme in ("http", "https", "data"), link
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                wrong.append((path.name, link))
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append((path.name, link))
    assert not wrong


def test_every_public_name_is_documented(site):
    with (site / "objects.inv").open("rb") as file:
        found = InventoryFile.load(file, "", os.path.join)
    names = {name for kind, entries in found.items() if kind.startswith("py:") for name in entries}
    assert not [name for name in gm.__all__ if f"gristmill.{name}" not in names]
    for method in ("Array.mean", "Array.storage_chunks", "Arrays.left_out", "Trace.bytes_in", "FileInfo.stripe_unit", "Cluster.path"):
        assert f"gristmill.{method}" in names


def test_pages_need_nothing_from_elsewhere(site):
    # Pages need no network: scripts, styles and pictures are part of the site.
    for path in site.rglob("*.html"):
        text = path.read_text()
        for start in ('<script src="http', '<link rel="stylesheet" type="text/css" href="http', '<img src="http'):
            assert start not in text, path.name


def test_the_page_of_limits_has_the_constants_of_the_code():
    made = subprocess.run([ROOT / "scripts/limits_page"], capture_output=True, text=True, check=True)
    assert made.stdout == (ROOT / "docs/limits.md").read_text(), "run scripts/limits_page > docs/limits.md"
