"""Decisions are judged from measurements, as in table IV of DOSAS."""

import pytest

from judge import AS, DOSAS, TIE, TS, judge, judged, summary


def seconds(ts, as_, dosas):
    return {TS: ts, AS: as_, DOSAS: dosas}


def test_the_better_one_is_right():
    fast, slow = [1.0, 1.1, 1.05], [2.0, 2.1, 2.2]
    assert judge(seconds(slow, fast, fast), [0, 0, 0]).right
    verdict = judge(seconds(slow, fast, slow), [1, 1, 0.9])
    assert (verdict.better, verdict.decided, verdict.right) == (AS, TS, False)
    assert verdict.lost == pytest.approx(1.0)
    # The three times are 2.0, 1.91 and 2.1 times as long as AS.
    assert verdict.surely == pytest.approx(2.1 / 1.1 - 1)
    assert verdict.over[TS] == pytest.approx(1.0)


def test_a_mixture_that_is_faster_than_both_is_right():
    verdict = judge(seconds([3.0] * 3, [2.0] * 3, [1.5] * 3), [0.6] * 3)
    assert (verdict.better, verdict.decided, verdict.right, verdict.lost) == (AS, TS, True, 0)


def test_what_cannot_be_told_apart_is_a_tie():
    verdict = judge(seconds([1.0, 1.2, 0.9], [1.1, 1.0, 1.1], [1.0, 1.1, 1.0]), [0] * 3)
    assert verdict.better == TIE and verdict.right
    assert verdict.surely == 0


def test_rows_become_verdicts_and_sentences():
    rows = [
        [scheme, n, turn, time * n, 0, 0, share]
        for n in (1, 2)
        for turn in range(3)
        for scheme, time, share in ((TS, 2, 1), (AS, 1, 0), (DOSAS, 1.5, n - 1))
    ]
    verdicts = judged(rows)
    assert [verdict.right for verdict in verdicts.values()] == [True, False]
    told = list(summary(list(verdicts.values())))
    assert "2 situations are no ties, and of these 50.0% were decided right" in told[0]
    assert "median 50.0%, worst 50.0%" in told[1]
    assert "95% intervals worst 50.0%" in told[1]
