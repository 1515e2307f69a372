"""The notebook of the documentation: it runs to its end, nodes do all its reductions, and its numbers are those of xarray."""

import json
import shutil

import nbformat
from conftest import ROOT
from nbclient import NotebookClient
from python_package import gm  # noqa: F401

FOLDER = ROOT / "docs" / "notebooks"
TIMEOUT = 120  # seconds for a cell; a bound on a hang, not a measure of speed
#: The maximum size of the committed notebook, whose pictures must be small.
MOST = 500 << 10

BEFORE = "import gristmill as gm; _all = gm.trace(); _ = _all.__enter__()"
AFTER = """
import json
with xr.open_dataset(source) as file:
    plain = file.tos.astype("f8")
    _close = lambda a, b: bool(np.allclose(a, b, rtol=1e-6, equal_nan=True))
    _found = {
        "mean": _close(mean, plain.mean("time")),
        "climatology": _close(climatology, plain.groupby("time.month").mean()),
        "series": _close(series, plain.weighted(np.cos(np.deg2rad(file.lat))).mean(["lat", "lon"])),
        "missing": bool(mean.isnull().any()) and not bool(series.isnull().any()),
    }
print(json.dumps({"right": _found, "fallbacks": _all.fallbacks, "requests": _all.requests, "source": source}))
"""


def ran(folder, monkeypatch, source=None):
    """The notebook with its output, and the result of the last cell."""
    for name in ("sst_climatology.ipynb", "ocean.py"):
        shutil.copy(FOLDER / name, folder)
    if source is None:
        monkeypatch.delenv("GRISTMILL_SST", raising=False)
    else:
        monkeypatch.setenv("GRISTMILL_SST", str(source))
    book = nbformat.read(folder / "sst_climatology.ipynb", 4)
    book.cells.insert(0, nbformat.v4.new_code_cell(BEFORE))
    book.cells.append(nbformat.v4.new_code_cell(AFTER))
    NotebookClient(book, timeout=TIMEOUT, resources={"metadata": {"path": str(folder)}}).execute()
    return book, json.loads(book.cells[-1].outputs[0].text)


def outputs(book):
    return [output for cell in book.cells for output in cell.get("outputs", [])]


def test_it_runs_and_is_right(tmp_path, monkeypatch):
    book, found = ran(tmp_path, monkeypatch)
    assert all(found["right"].values()), found
    assert not found["fallbacks"] and found["requests"] >= 3
    assert sum("image/png" in output.get("data", {}) for output in outputs(book)) == 3
    # No cell writes to standard error.
    assert not [output.text for output in outputs(book) if output.get("name") == "stderr"]


def test_it_runs_with_a_file_of_a_climate_model(real_data, tmp_path, monkeypatch):
    _, found = ran(tmp_path, monkeypatch, real_data / "tos_O1_2001-2002.nc")
    assert found["source"].endswith("tos_O1_2001-2002.nc")
    assert all(found["right"].values()), found
    assert not found["fallbacks"]


def test_what_is_committed_was_run():
    path = FOLDER / "sst_climatology.ipynb"
    book = nbformat.read(path, 4)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    shown = outputs(book)
    assert sum("image/png" in output.get("data", {}) for output in shown) == 3
    assert sum("text/html" in output.get("data", {}) for output in shown) >= 2
    assert not [output for output in shown if output.output_type == "error"]
    assert path.stat().st_size < MOST
    for word in (str(ROOT), "/root/", "/home/"):
        assert word not in path.read_text(), word
