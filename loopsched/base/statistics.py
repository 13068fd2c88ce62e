"""How far predictions are from measurements."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float | None:
    """Find a percentile, between neighbours in proportion; None of nothing.

    Parameters
    ----------
    values : sequence of float
    share : float
        From 0 to 1: 0.5 is the median.

    Examples
    --------
    >>> percentile([4.0, 1.0, 2.0], 0.5), percentile([0.0, 10.0], 0.9)
    (2.0, 9.0)
    """
    if not values:
        return None
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def ranks(values: Sequence[float]) -> list[float]:
    """Rank values from 1, equal ones at their mean rank.

    Examples
    --------
    >>> ranks([30.0, 10.0, 30.0, 20.0])
    [3.5, 1.0, 3.5, 2.0]
    """
    ordered = sorted(values)
    return [(bisect_left(ordered, one) + bisect_right(ordered, one) + 1) / 2 for one in values]


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Compute Spearman's rank correlation; None where one side is constant.

    Examples
    --------
    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 1000.0, 20.0])
    0.5
    """
    if len(left) < 2:
        return None
    first, second = ranks(left), ranks(right)
    mean = (len(left) + 1) / 2
    together = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    spread = math.sqrt(sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second))
    return together / spread if spread else None
