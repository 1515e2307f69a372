"""Runs the examples of the Python guide in order, page by page, and compares their output with the pages."""

import doctest
import importlib.util
import re
import warnings

import numpy as np
import pytest
import xarray as xr
from conftest import ROOT
from python_package import gm

PAGES = sorted((ROOT / "docs" / "python").glob("*.md"))
BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOW = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NOTES = "A gristmill grinds the grain where it is kept.\nNothing here.\nTwo mills.\n"


def examples(page) -> doctest.DocTest:
    """The examples of a page, with their line numbers."""
    text = page.read_text()
    found = []
    for block in BLOCK.finditer(text):
        begins = text.count("\n", 0, block.start(1))
        for example in doctest.DocTestParser().get_examples(block[1], page.name):
            example.lineno += begins
            found.append(example)
    return doctest.DocTest(found, {"gm": gm, "np": np, "xr": xr}, page.name, str(page), 0, text)


@pytest.fixture(scope="module")
def ocean(tmp_path_factory):
    """The file that the guide uses."""
    spec = importlib.util.spec_from_file_location("ocean", ROOT / "docs" / "notebooks" / "ocean.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made.write(tmp_path_factory.mktemp("guide") / "ocean.nc")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_the_guide_give_what_they_say(page, ocean, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ocean.nc").symlink_to(ocean)
    (tmp_path / "notes.txt").write_text(NOTES)
    test = examples(page)
    assert test.examples
    said = []
    with warnings.catch_warnings(), gm.set_options(place="storage"):
        warnings.simplefilter("ignore", RuntimeWarning)
        done = doctest.DocTestRunner(optionflags=HOW).run(test, out=said.append)
    assert done.failed == 0, "".join(said)


def test_every_page_is_in_the_guide():
    listed = (ROOT / "docs" / "python" / "index.md").read_text().split("```{toctree}")[1].split()
    assert {page.stem for page in PAGES} - {"index"} == set(listed) - {"```"}
