"""Random programs over random data sets, compared with xarray. The seed is fixed, so the programs are the same each time.

``python tests/differential --programs 100000`` runs those of a new seed.
"""

import shutil
import tempfile
from pathlib import Path

import pytest

from conftest import binary

gm = pytest.importorskip("gristmill", reason="the package is not installed: pip install .")

from differential import known, runner, ways  # noqa: E402

SEED = "continuous"
PROGRAMS = 2000
#: The programs wait for the disk most of the time. In memory they run three times as fast.
MEMORY, LEAST_MEMORY = Path("/dev/shm"), 1 << 30


@pytest.fixture
def in_memory(monkeypatch):
    """Temporary files lie in memory, if there is room."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= LEAST_MEMORY:
        monkeypatch.setenv("TMPDIR", str(MEMORY))
        monkeypatch.setattr(tempfile, "tempdir", None)


def test_random_programs_answer_as_those_of_xarray(monkeypatch, in_memory):
    monkeypatch.setenv("GRISTMILL_BIN", str(binary()))
    with gm.up(nodes=2) as nodes:
        summary = runner.run(runner.Plan(SEED, PROGRAMS, cluster=nodes.url))
    assert summary.programs == PROGRAMS
    assert summary.ways["plain"] == PROGRAMS
    assert summary.ways["blocks"] == summary.ways["pieces"] == PROGRAMS / 2
    assert sum(summary.ways[way] for way in ways.ON_NODES) == PROGRAMS
    # Each text says how to repeat the difference, and ends with a small script.
    if summary.unexplained:
        pytest.fail("\n\n".join([f"{len(summary.unexplained)} programs differ", *summary.unexplained]), pytrace=False)


def test_each_known_difference_has_a_reason():
    assert all(one.name and one.reason for one in known.KNOWN)
