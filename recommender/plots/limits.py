"""Determines where the axis of a chart ends, so that one outlier does not flatten the rest. Pure, and without numpy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

_USUAL_RATIO: Final = 0.99
"""The share of the values that count as usual."""
_FEW: Final = 200
_MOST_OF_FEW_RATIO: Final = 0.95
_FAR_RATIO: Final = 10.0
_ROOM_RATIO: Final = 2.0
"""An axis that cuts off outliers ends at this many times the usual largest value."""


def usual_top(values: Iterable[float], least: float = 1.0, outlier_ratio: float = _ROOM_RATIO) -> float:
    """Return the end of an axis from 0: the largest value, or twice the usual one if the largest is an outlier.

    An outlier is more than `outlier_ratio` times the usual largest value. Values that are not finite do not count;
    `least` is returned if the axis would end below it.
    """
    known = sorted(value for value in values if math.isfinite(value))
    if not known:
        return least
    # Percentiles are interpolated as in numpy.
    rank = _USUAL_RATIO * (len(known) - 1)
    below, above = known[math.floor(rank)], known[math.ceil(rank)]
    usual, largest = below + (above - below) * (rank % 1), known[-1]
    if largest > outlier_ratio * usual > 0:
        return max(least, _ROOM_RATIO * usual)
    # One percent of few values is less than one of them.
    return max(least, top_of_few(known, _MOST_OF_FEW_RATIO) if len(known) < _FEW else largest)


def top_of_few(values: Iterable[float], usual_ratio: float = 0.5) -> float:
    """Return the largest of a few values that is not an outlier; 0 if there are no values.

    An outlier is more than ten times as large as the `usual_ratio` quantile of the values, by default their median.
    """
    known = sorted(value for value in values if math.isfinite(value))
    if not known:
        return 0.0
    usual = known[math.floor(usual_ratio * (len(known) - 1))]
    return max(value for value in known if value <= _FAR_RATIO * usual) if usual > 0 else known[-1]


def cut_off_text(value: float) -> str:
    """Return the mark of a value above the end of the axis: `▲ 1,370`."""
    return f"▲ {value:,.0f}" if abs(value) >= 1 else f"▲ {value:.3g}"
