"""The limits of the predictions of a poll, for the targets whose predictions may exceed them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recommender.kinds.predictive.current_forecast import with_current
from recommender.kinds.predictive.models.load_at_origin import LEVEL_SECONDS, growth_limits
from recommender.kinds.predictive.upper_bound import forecast_limit
from recommender.running.loads.predictions.blending import ForecastLimit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.learning import SeriesVerdict
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings
    from recommender.running.loads.histories.load_histories import TargetHistory
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.predictions.blending import ModelForecast


@dataclass(frozen=True, slots=True)
class KnownLoads:
    """The loads of a poll, and their history."""

    history: TargetHistory | None
    now: float
    """When the loads were observed."""
    loads: Mapping[Target, float]
    """The observed loads, which the history need not have yet."""


def limits_of(
    settings: PredictiveSettings,
    task: ForecastTask,
    past: KnownLoads,
    said: Mapping[str, Mapping[Target, ModelForecast]],
    chosen: Mapping[Target, SeriesVerdict],
) -> dict[Target, ForecastLimit]:
    """Return the limits of those targets whose predictions may exceed them.

    `said` are the forecasts by model and target, and `chosen` what acts for each target.
    """
    # The history is searched only for forecasts far above the current load, which is part of it.
    growths = {target: settings.growth_limit(verdict.model) for target, verdict in chosen.items()}
    ratios = {target: min(task.max_over_history, growth or math.inf) for target, growth in growths.items()}
    high = {
        target
        for target, verdict in chosen.items()
        if _may_be_high(verdict, past.loads[target], ratios[target], task.headroom_ratio)
    }
    for values in said.values():
        high |= {target for target, each in values.items() if each.upper > ratios[target] * past.loads[target]}
    if past.history is None:
        return {
            target: ForecastLimit(math.inf, past.loads[target], _largest_allowed(growths[target], past.loads[target]))
            for target in high
        }
    if not high:
        return {}
    targets = sorted(high, key=str)
    present = np.array([past.loads[target] for target in targets])
    largest = np.fmax(past.history.largest(targets, past.now), present)
    limits = forecast_limit(largest, present, task)
    levels = _levels(past.history, targets, present, past.now, task)
    return {
        target: ForecastLimit(float(limit), float(most), _largest_allowed(growths[target], level))
        for target, most, limit, level in zip(targets, largest, limits, levels.tolist(), strict=True)
    }


def _largest_allowed(growth: float | None, level: float) -> float:
    return math.inf if growth is None else growth * level


def _may_be_high(verdict: SeriesVerdict, load: float, ratio: float, missing_ratio: float) -> bool:
    """Return whether a blend may exceed this multiple of the load although none of its forecasts does.

    `missing_ratio` is the room of a model without a forecast.
    """
    return bool(load) and (
        1 + max(verdict.blend.headroom_ratio, missing_ratio) > ratio
        or any(part.scale > 1 for part in verdict.blend.parts)
    )


def _levels(
    history: TargetHistory, targets: Sequence[Target], present: FloatArray, now: float, task: ForecastTask
) -> FloatArray:
    """Return the current loads, by which `maxGrowth` is measured: the last sample, or the mean of the last minutes."""
    past = with_current(history.history(targets, now, LEVEL_SECONDS), present)
    found = growth_limits(past, np.array([past.steps - 1], dtype=np.int64), 1.0, task.lead_seconds)
    assert found is not None, "a growth is given"
    return found[:, 0]
