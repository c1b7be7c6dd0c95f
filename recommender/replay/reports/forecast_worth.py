"""The benefit of a forecast of pod counts: how much less pods wait, and how much more nodes cost. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.replay.policies import CONFIGURED, FORECASTS
from recommender.replay.reports.verdict import (
    LEAST_DAYS,
    MOST_UNKNOWN_RATIO,
    drawn_days,
    format_percent,
    interval_of,
    shares_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.replay.policy_outcome import PolicyOutcome


@dataclass(frozen=True, slots=True)
class ForecastWorth:
    """How a policy with a forecast compares with the same policy without it.

    Ratios are relative to the policy without the forecast; intervals are 90% intervals.
    """

    waits_less_ratio: float
    waits_less: tuple[float, float]
    costs_more_ratio: float
    costs_more: tuple[float, float]
    cost_per_pod_hour: float | None
    """The cost of saving one pod an hour of waiting; None if pods do not wait less."""

    def __str__(self) -> str:
        """Return the comparison in one sentence."""
        less, more = format_percent(self.waits_less_ratio), format_percent(self.costs_more_ratio)
        waits, costs = (" to ".join(map(format_percent, each)) for each in (self.waits_less, self.costs_more))
        sentence = (
            f"With the forecast of pod counts, pods wait {less} less (90% interval {waits}), "
            f"and nodes cost {more} more ({costs})"
        )
        if self.cost_per_pod_hour is None:
            return f"{sentence}."
        return f"{sentence}: an hour less of waiting for one pod costs {self.cost_per_pod_hour:,.2f}."


def forecast_worth(
    outcomes: Sequence[PolicyOutcome], known_days: FloatArray, unknown_ratio: float
) -> ForecastWorth | None:
    """Return what the forecast is worth; None if there is no forecast, prices are missing, or too little is known."""
    by_name = {one.name: one for one in outcomes}
    other = next((one for one in outcomes if one.name.startswith(f"{FORECASTS}: ")), None)
    if other is None or known_days.sum() < LEAST_DAYS or unknown_ratio > MOST_UNKNOWN_RATIO:
        return None
    current = by_name[CONFIGURED]
    without, having = (other, current) if other.name.endswith(": none") else (current, other)
    if without.cost is None or having.cost is None:
        return None
    draws, days = drawn_days(known_days), np.flatnonzero(known_days)
    waited, cost = without.pending_minutes[days].sum(), without.cost[days].sum()
    saved = (without.pending_minutes - having.pending_minutes)[days].sum()
    more = (having.cost - without.cost)[days].sum()
    return ForecastWorth(
        _ratio(saved, waited),
        interval_of(shares_of(without.pending_minutes - having.pending_minutes, without.pending_minutes, draws)),
        _ratio(more, cost),
        interval_of(shares_of(having.cost - without.cost, without.cost, draws)),
        float(more / (saved / 60)) if saved > 0 else None,
    )


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else 0.0
