"""One load with one start-up time: auto, every model and every rival, with the replica-hours of auto."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.forecast_goals import MOST_REGRET
from benchmarks.regret_parts import ReplayedLoad, regret_parts
from benchmarks.rival_forecasts import rival_capacities
from recommender.backtest.backtest import fleet_settings, warm_up_steps
from recommender.backtest.options import BacktestOptions
from recommender.backtest.report import PolicyResult, Regret
from recommender.backtest.verdict import measured_at_cost, regret_of, shortage_of
from recommender.kinds.predictive.choice.auto import choice_limits, run_auto
from recommender.kinds.predictive.choice.blend import room_of
from recommender.kinds.predictive.models.table import MODELS
from recommender.kinds.predictive.rolling_forecasts import RollingOptions, rolling_forecasts
from recommender.kinds.predictive.simulation.bill import above_load_ratio
from recommender.kinds.predictive.simulation.frontier import compare, frontier
from recommender.kinds.predictive.simulation.measures import JudgedLoad, measure
from recommender.kinds.predictive.simulation.serving import desired_replicas, needed_replicas, simulate
from recommender.kinds.predictive.tasks import down_window_seconds, task_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.kept_forecasts import KeptForecasts, SharedFits
    from benchmarks.regret_parts import RegretParts
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
    from recommender.kinds.predictive.history import LoadHistory
    from recommender.kinds.predictive.simulation.frontier import Comparison


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of one replay; arrays have the shape (steps,)."""

    startup_seconds: float
    history: LoadHistory
    judged: BoolArray
    auto: Comparison
    above_load_ratio: float | None
    regret: Regret
    regret_parts: RegretParts | None
    """What a regret that misses its goal consists of; None for a smaller one."""
    rivals: Mapping[str, float]
    """The shortage of each rival at the replica-hours of auto, divided by that of plain headroom."""
    in_use: tuple[str, ...]
    needed: FloatArray
    serving: FloatArray
    rival_serving: FloatArray
    """The serving replicas of plain headroom that costs as much as auto."""


def replayed(
    history: LoadHistory,
    startup_seconds: float,
    models: Sequence[str],
    fits: SharedFits,
    kept: KeptForecasts | None = None,
) -> Replayed:
    """Return the result of a replay with the defaults of a backtest. Models are fitted in this process."""
    options = BacktestOptions(startup_seconds=startup_seconds)
    load, fleet = history.values[0], fleet_settings(history, options)
    judged = JudgedLoad(load, np.arange(history.steps) >= warm_up_steps(history, options), fleet)
    task = task_for(startup_seconds, history.step_seconds, options.settings, down_window_seconds(options.settings))
    forecasts = {
        model.name: rolling_forecasts(model, history, task, RollingOptions(), fits.run)
        if kept is None
        else kept.of(model, history, task, fits)
        for model in MODELS
        if model.name in models
    }
    run = run_auto(history, forecasts, task, fleet)
    acting = simulate(desired_replicas(run.capacity, fleet.load_per_replica), fleet)
    measures = measure(judged, acting)
    hours = measures.replica_hours
    points = frontier(judged, hours)
    comparison = compare(measures, points)
    rooms = {name: room_of(load, found.upper[0], task.headroom_ratio) for name, found in forecasts.items()}
    regret = regret_of(
        PolicyResult("auto", measures, comparison, acting), rooms, choice_limits(history, task)[0], judged, points
    )
    is_missed = regret.regret > MOST_REGRET
    plain = desired_replicas(load * (1 + comparison.cost_as_headroom_ratio), fleet.load_per_replica)
    return Replayed(
        startup_seconds=startup_seconds,
        history=history,
        judged=judged.steps,
        auto=comparison,
        above_load_ratio=above_load_ratio(judged, hours),
        regret=regret,
        regret_parts=regret_parts(ReplayedLoad(history, forecasts, task, judged), comparison, hours, regret)
        if is_missed
        else None,
        rivals={
            name: shortage_of(compare(measured_at_cost(judged, capacity - load, hours), points))
            for name, capacity in rival_capacities(history, task).items()
        },
        in_use=run.in_use,
        needed=needed_replicas(load, fleet.load_per_replica),
        serving=acting.serving,
        rival_serving=simulate(plain, fleet).serving,
    )
