"""A short run of the random faults. ``python tests/random_faults`` makes longer runs."""

from random_faults import trial

SECONDS = 45


def test_nothing_is_lost_or_wrong_while_nodes_and_clients_die(clusters, tmp_path):
    report = trial.run(clusters, tmp_path, "short", SECONDS)
    print(*report.lines(), sep="\n")
    assert not report.wrong, "\n".join(report.lines())
    assert report.faults.total() > 10 and report.answers["right"] > 20
