"""Pictures and pages show the measurements, and say how they were made."""

import csv
import json

import pytest

import draw
import experiment
import figures

ABOUT = {"hosts": "4 storage hosts", "scale": 0.5, "repeats": 3, "machine": "a machine"}


def measured(folder, name, rows, **about):
    """Writes the files of a measurement: rows of series, x, round, seconds, bytes."""
    with open(folder / f"{name}.csv", "w", newline="") as out:
        table = csv.writer(out)
        table.writerow(experiment.COLUMNS)
        table.writerows([*row, 0.5] for row in rows)
    (folder / f"{name}.json").write_text(json.dumps(ABOUT | about))
    return experiment.kept(folder, name)


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draws a picture. Returns the figure and its axes."""
    monkeypatch.setattr(draw.plt, "close", lambda _: None)

    def of(result):
        draw.picture(tmp_path / "picture.png", result)
        figure = draw.plt.gcf()
        return figure, figure.axes[0]

    yield of
    monkeypatch.undo()
    draw.plt.close("all")


def test_a_figure_about_bytes_shows_bytes(tmp_path, drawn):
    rows = [("AS", size, turn, 0.25 * size, 8000 + size + turn) for size in (1, 256, 1024) for turn in range(3)]
    _, axes = drawn(measured(tmp_path, "network_bytes", rows))
    [line] = axes.get_lines()
    assert list(line.get_xdata()) == [1, 256, 1024]
    assert list(line.get_ydata()) == [8002, 8257, 9025]
    assert "bytes" in axes.get_ylabel() and "bytes" in axes.get_title()
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_ylim()[0]) == ("log", "linear", 0)


def test_a_figure_about_time_shows_seconds(tmp_path, drawn):
    rows = [(name, n, 0, 8 / n, 10**6) for name in ("TS", "AS") for n in (1, 2, 4, 8)]
    _, axes = drawn(measured(tmp_path, "son2010_fig14", rows))
    assert [list(line.get_ydata()) for line in axes.get_lines()] == [[8, 4, 2, 1]] * 2
    assert axes.get_ylabel() == "seconds"


SPLIT = [
    ("reading", "1\n1 iteration", 0, 0.2, 0),
    ("computing", "1\n1 iteration", 0, 0.68, 0),
    ("reading", "0.1\n4 iterations", 0, 0.2, 0),
    ("computing", "0.1\n4 iterations", 0, 0.8, 0),
]


def test_parts_of_a_time_lie_on_each_other(tmp_path, drawn):
    _, axes = drawn(measured(tmp_path, "son2010_fig13", SPLIT))
    bars = [(bar.get_y(), bar.get_height()) for bar in axes.patches]
    assert bars == [pytest.approx(each) for each in ((0, 0.2), (0, 0.2), (0.2, 0.68), (0.2, 0.8))]
    assert [text.get_text() for text in axes.texts] == ["23% reading", "20% reading"]
    # The paper's text has 0.44 s for a threshold of 1 and nothing for 0.1.
    [marks] = [line for line in axes.get_lines() if "paper" in line.get_label()]
    assert (list(marks.get_xdata()), list(marks.get_ydata())) == ([0], [0.44])


def test_shares_of_a_time_are_one_together(tmp_path, drawn):
    rows = [("reading", "SUM", 0, 1.2, 0), ("computing", "SUM", 0, 0.3, 0)]
    _, axes = drawn(measured(tmp_path, "son2010_fig09", rows))
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([0.8, 0.2])


def test_a_page_compares_the_whole_time_with_the_papers(tmp_path):
    measured(tmp_path, "son2010_fig13", SPLIT)
    assert figures.ratios("son2010_fig13", tmp_path / "son2010_fig13.csv") == "TS 2.00 (2.00 to 2.00)"


def test_shorter_files_are_owned_up_to(tmp_path, drawn):
    rows = [("TS", n, 0, float(n), 0) for n in (1, 2)]
    figure, _ = drawn(measured(tmp_path, "dosas2012_fig04", rows, shorter=4))
    assert "4 times shorter" in figure.get_supxlabel()


def test_what_was_not_measured_is_not_drawn(tmp_path):
    assert experiment.kept(tmp_path, "son2010_fig13") is None
