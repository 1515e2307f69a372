"""Whether decisions were right: the columns of DOSAS's table IV for each situation."""

from dataclasses import dataclass
from statistics import median

import pairs

TS, AS, DOSAS = "TS", "AS", "DOSAS"
TIE = "tie"


@dataclass(frozen=True)
class Verdict:
    """`better`: the faster of TS and AS as measured, or a tie if the 95 % interval of their ratio contains 1. `decided`: where
    most of the bytes were folded. `right`: the decision is the better one, or the mixture was as fast. `lost`: the lost time, as a
    share of the better time. `surely`: the same by the lower end of the 95 % interval of the ratio. A decision for the better side
    runs the same as that side, and their times differ by chance. `over`: the time over that of TS and of AS."""

    better: str
    decided: str
    right: bool
    lost: float
    surely: float
    over: dict


def judge(seconds, shares):
    """`seconds`: {scheme: those of each round}. `shares`: the share that clients folded in each round of DOSAS."""
    ratio = pairs.ratio(seconds, TS, AS)
    middle = {scheme: median(each) for scheme, each in seconds.items()}
    better = TIE if ratio.low <= 1 <= ratio.high else min((TS, AS), key=middle.get)
    decided = TS if median(shares) >= 0.5 else AS
    least = min(middle[TS], middle[AS])
    right = better in (TIE, decided) or middle[DOSAS] <= least
    over = {scheme: middle[DOSAS] / middle[scheme] for scheme in (TS, AS)}
    surely = pairs.ratio(seconds, DOSAS, min((TS, AS), key=middle.get)).low - 1
    return Verdict(better, decided, right, max(0.0, middle[DOSAS] / least - 1), max(0.0, surely), over)


def judged(rows):
    """{x: verdict} of the rows of an experiment (series, x, round, seconds, ..., share of clients)."""
    found = {}
    for series, x, _, seconds, *_, share in rows:
        times, shares = found.setdefault(x, ({}, []))
        times.setdefault(series, []).append(seconds)
        if series == DOSAS:
            shares.append(share)
    return {x: judge(times, shares) for x, (times, shares) in found.items()}


def summary(verdicts):
    """Sentences about all verdicts."""
    told = [each for each in verdicts if each.better != TIE]
    lost = [each.lost for each in verdicts]
    if told:
        share = sum(each.right for each in told) / len(told)
        yield (
            f"{len(told)} situations are no ties, and of these {share:.1%} were decided right (the paper: 95%; goal: at least 98%)"
        )
    yield (
        f"time lost against the better of TS and AS: median {median(lost):.1%}, worst {max(lost):.1%} (goal: at most 2% and "
        f"10%); by the lower ends of the 95% intervals worst {max(each.surely for each in verdicts):.1%}"
    )
