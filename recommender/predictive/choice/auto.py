"""The policy `auto`: each model is judged by its own record, and acts only while it beats plain headroom.

At each decision only the past is known: forecasts that were made then, and the load that followed. Backtests replay a
whole trace; in production the trailing days are replayed, and the last step is what acts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recommender.predictive.choice.court import Court
from recommender.predictive.choice.hysteresis import ChoiceOptions, ModelStanding, next_standing
from recommender.predictive.choice.ledger import Scales
from recommender.predictive.choice.records import AutoRun, ModelChoice
from recommender.predictive.choice.yardstick import Yardstick
from recommender.predictive.settings import ModelName
from recommender.predictive.targets import targets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.predictive.arrays import FloatArray
    from recommender.predictive.forecast import Forecasts, ForecastTask
    from recommender.predictive.history import LoadHistory
    from recommender.predictive.simulation.serving import FleetSettings

NOT_JUDGED = frozenset({ModelName.AUTO, ModelName.HEADROOM, ModelName.REACTIVE})
"""What is no model, or the yardstick itself."""
DEFAULT_OPTIONS = ChoiceOptions()


def run_auto(
    history: LoadHistory,
    forecasts: Mapping[str, Forecasts],
    task: ForecastTask,
    fleet: FleetSettings,
    options: ChoiceOptions = DEFAULT_OPTIONS,
) -> AutoRun:
    """Return capacity, model in use and decisions for every step of one series.

    `forecasts` holds, by name of the model, the rolling forecasts of the same steps, shape (1, steps), NaN where the
    model took no part. `fleet` is what shortage and cost are simulated with.
    """
    load = history.values[0]
    judged = {name: found.upper[0] for name, found in forecasts.items() if name not in NOT_JUDGED}
    capacities = {name: capacity_of(load, upper, task.headroom_ratio) for name, upper in judged.items()}
    every = max(1, round(options.decide_seconds / history.step_seconds))
    court = _court(_scales(history, task, fleet, every), judged, capacities, options)
    decisions: list[ModelChoice] = []
    standing = ModelStanding(ModelName.HEADROOM, task.headroom_ratio)
    capacity, in_use = np.full(len(load), np.nan), np.empty(len(load), dtype=object)
    for number, step in enumerate(range(0, len(load), every)):
        records = court.records(number)
        excess = court.recent_excess_days(records, standing.model, number)
        standing, reason = next_standing(
            standing, records, excess, step, history.step_seconds, task.headroom_ratio, options
        )
        end = min(step + every, len(load))
        chosen = capacities.get(standing.model)
        capacity[step:end] = load[step:end] * (1 + standing.headroom_ratio) if chosen is None else chosen[step:end]
        in_use[step:end] = standing.model
        if not decisions or decisions[-1].model != standing.model or end == len(load):
            decisions.append(ModelChoice(step, standing.model, standing.headroom_ratio, reason, records))
    return AutoRun(capacity, tuple(in_use), tuple(decisions))


def capacity_of(load: FloatArray, upper: FloatArray, headroom_ratio: float) -> FloatArray:
    """Return what a model asks for: the larger of load and forecast, plain headroom where it has no forecast."""
    return np.where(np.isnan(upper), load * (1 + headroom_ratio), np.fmax(load, upper))


def _scales(history: LoadHistory, task: ForecastTask, fleet: FleetSettings, every: int) -> Scales:
    step = history.step_seconds
    known_after = task.lead_steps(step) + task.window_steps(step) - 1
    return Scales(history.values[0], targets(history, task)[0], known_after, task.quantile, fleet, every)


def _court(
    scales: Scales, uppers: Mapping[str, FloatArray], capacities: Mapping[str, FloatArray], options: ChoiceOptions
) -> Court:
    """Return the court of the models that have any forecast."""
    begins = {}
    for name, upper in uppers.items():
        known = np.flatnonzero(~np.isnan(upper))
        if len(known):
            begins[name] = -(-(int(known[0]) + scales.fleet.lag_steps) // scales.every)
    ledgers = {name: scales.ledger(capacities[name]) for name in begins}
    return Court(scales, Yardstick.of(scales), ledgers, begins, options)
