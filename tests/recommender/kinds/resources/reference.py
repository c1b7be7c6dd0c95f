"""The decaying histogram, computed sample by sample: slow, and easy to check."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RATIO = 1.05
DAY = 86_400.0


def end_of_bucket(value: float, first: float) -> float:
    """Return the end of the bucket that holds a value."""
    end, width = first, first
    while value >= end:
        width *= RATIO
        end += width
    return end


def percentile(samples: Iterable[tuple[float, float]], share: float, first: float) -> float:
    """Return the percentile of samples, which are pairs of value and age in seconds."""
    weighted = sorted((end_of_bucket(value, first), 2.0 ** (-age / DAY)) for value, age in samples)
    total = math.fsum(weight for _, weight in weighted)
    covered = 0.0
    for end, weight in weighted:
        covered += weight
        if covered >= share * total * (1 - 1e-9):
            return end
    raise AssertionError(weighted)


def bounds(samples: Sequence[tuple[float, float]], first: float, confidence: float) -> tuple[float, float, float]:
    """Return lower bound, target and upper bound."""
    lower, target, upper = (1.15 * percentile(samples, share, first) for share in (0.5, 0.9, 0.95))
    return lower * (1 + 0.001 / confidence) ** -2, target, upper * (1 + 1 / confidence)
