"""Compares the shortage of `auto` at several budgets with that of plain headroom at the same cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.choice.auto import run_auto
from recommender.kinds.predictive.simulation.bill import above_load_ratio
from recommender.kinds.predictive.simulation.measures import JudgedLoad, Measures, measure
from recommender.kinds.predictive.simulation.serving import FleetSettings, desired_replicas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.predictive.choice.records import AutoRun
    from recommender.kinds.predictive.forecast import Forecasts, ForecastTask
    from recommender.kinds.predictive.history import LoadHistory
    from recommender.kinds.predictive.simulation.frontier import Act, FrontierPoint

BUDGET_RATIOS: Final = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """Auto with a budget, compared with plain headroom at the same cost."""

    budget_ratio: float
    """The permitted cost: replica-hours above those that the load fills, as a share of the latter."""
    above_load_ratio: float
    """The actual cost, which differs because the budget was kept on past data, and whole replicas cost more."""
    measures: Measures
    headroom_ratio: float
    headroom_tau_under_percent: float
    headroom_theta_under_percent: float


@dataclass(frozen=True, slots=True)
class Choosing:
    """The part of a replay that the choice among models sees. Its times are stretched as the models' times are."""

    history: LoadHistory
    forecasts: Mapping[str, Forecasts]
    task: ForecastTask
    fleet: FleetSettings

    def run(self, budget_ratio: float | None) -> AutoRun:
        """Return auto's run with a budget; None means no budget."""
        return run_auto(self.history, self.forecasts, replace(self.task, budget_ratio=budget_ratio), self.fleet)


def shortage_by_budget(
    choosing: Choosing, judged: JudgedLoad, points: Sequence[FrontierPoint], act: Act
) -> tuple[BudgetPoint, ...]:
    """Return a point for each budget; no points if there is no load. `act` is that of the simulation."""
    # If several ratios cost the same, they are the same fleet, and the smallest ratio names it.
    hours, first = np.unique([point.measures.replica_hours for point in points], return_index=True)
    kept = [points[place] for place in first]
    found: list[BudgetPoint] = []
    for ratio in BUDGET_RATIOS:
        capacity = choosing.run(ratio).capacity
        measures = measure(judged, act(desired_replicas(capacity, judged.fleet.load_per_replica)))
        above = above_load_ratio(judged, measures.replica_hours)
        if above is None:
            break
        headroom = (
            float(np.interp(measures.replica_hours, hours, values))
            for values in (
                [point.headroom_ratio for point in kept],
                [point.measures.tau_under_percent for point in kept],
                [point.measures.theta_under_percent for point in kept],
            )
        )
        found.append(BudgetPoint(ratio, above, measures, *headroom))
    return tuple(found)
