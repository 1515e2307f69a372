"""Sums and products of f64 with their rounding errors, so that differences of large numbers keep their digits.

A *double* is a pair ``high, low`` that stands for its exact sum. ``low`` is at most half a unit in the last place of
``high``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Double = tuple[NDArray[np.float64], NDArray[np.float64]]

#: 2^27 + 1, which splits a f64 into two halves (Dekker 1971).
SPLITTER = 134_217_729.0

#: Products of larger numbers get no rounding error.
LARGEST = 2.0**480


def two_sum(a: Any, b: Any) -> Double:
    """Returns ``a + b`` as a double, exactly (Knuth, The Art of Computer Programming 2, theorem 4.2.2 B)."""
    total = np.asarray(a + b)
    part = total - a
    return total, _finite((a - (total - part)) + (b - part))


def two_product(a: Any, b: Any) -> Double:
    """Returns ``a * b`` as a double, exactly if both are below :data:`LARGEST` and nothing underflows (Dekker 1971)."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    product = np.asarray(a * b)
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, _finite(np.where((np.abs(a) < LARGEST) & (np.abs(b) < LARGEST), rest, 0.0))


def distance(high: Any, low: Any, n: Any, centre: Any) -> NDArray[np.float64]:
    """Returns ``high + low - n * centre``: the sum of ``n`` elements minus ``centre``, if their sum is ``high + low``.

    The error is one rounding plus about 2^-100 of the larger term.
    """
    with np.errstate(all="ignore"):
        product, product_low = two_product(n, centre)
        total, total_low = two_sum(np.asarray(high, np.float64), -product)
        return np.asarray(total + (total_low + (low - product_low)))


def _halves(x: NDArray[np.float64]) -> Double:
    scaled = SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def _finite(low: Any) -> NDArray[np.float64]:
    return np.asarray(np.where(np.isfinite(low), low, 0.0))
