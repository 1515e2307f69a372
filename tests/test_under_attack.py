"""A short run of all attacks at once. ``python tests/under_attack`` makes longer runs and measures how long others wait."""

import pytest

pytest.importorskip("h2", reason="h2 is not installed")
pytest.importorskip("h5py", reason="h5py is not installed")

# Import this while tests are collected. Later the conftest of another folder has that name.
from under_attack import trial  # noqa: E402
from under_attack.attacks import ATTACKS  # noqa: E402

SECONDS = 20


@pytest.mark.alone
def test_others_are_answered_while_everything_is_attacked(clusters, tmp_path):
    report = trial.run(clusters, tmp_path, SECONDS, list(ATTACKS))
    print(*report.lines(), sep="\n")
    assert not report.wrong, "\n".join(report.lines())
    assert all(report.attacked.values()), report.attacked
