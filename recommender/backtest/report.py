"""The results of a backtest as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.backtest.shortage_by_budget import BudgetPoint
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
    from recommender.kinds.predictive.history import LoadHistory
    from recommender.kinds.predictive.simulation.connections import ConnectionMeasures
    from recommender.kinds.predictive.simulation.frontier import Comparison, FrontierPoint
    from recommender.kinds.predictive.simulation.measures import Measures
    from recommender.kinds.predictive.simulation.serving import Fleet, FleetSettings


class Actuator(StrEnum):
    """The actuator that turns a desired size into the size of the fleet."""

    SCALE = "scale"
    """The recommender itself, through the scale subresource."""
    HPA = "hpa"
    """A HorizontalPodAutoscaler that reads the desired size as an External metric."""


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """The recorded load as it was replayed. Times are Unix seconds."""

    source: str
    start: float
    end: float
    step_seconds: float
    samples: int
    judged_steps: int
    warm_up_seconds: float
    season_seconds: float
    """How long one cycle of the load takes, by the configuration."""


@dataclass(frozen=True, slots=True)
class FitCounts:
    """The numbers of successful and failed fits of a model."""

    done: int = 0
    failed: int = 0
    """The number of fits that exceeded their budget or ended with an error, so that the last good parameters stayed in
    use."""
    last_failure: str = ""


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """One policy: its cost and its shortage."""

    name: str
    measures: Measures
    comparison: Comparison
    fleet: Fleet = field(repr=False)
    predicted: FloatArray | None = field(default=None, repr=False)
    """The load for which the policy provided capacity one lead after each step; None without forecasts."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    fits: FitCounts = field(default_factory=FitCounts)
    connections: ConnectionMeasures | None = None
    """The results for long-lived connections; None if the trace holds the load itself."""


@dataclass(frozen=True, slots=True)
class Regret:
    """Auto compared with the best single model in hindsight."""

    best: str
    """The best model, or `headroom` if no model was better."""
    best_shortage: float
    """The best model's shortage divided by that of plain headroom: the mean of how often and by how much."""
    regret: float
    """Auto's figure minus the best model's; below 0, the mixture was better than each of its parts."""


@dataclass(frozen=True, slots=True)
class BacktestVerdict:
    """The recommended policy, with the figures of `model:auto`."""

    best: str
    """The policy that won in hindsight, for information."""
    use: str
    """The policy that auto used most: `headroom`, or that of a model."""
    comparison: Comparison
    cost_above_load_ratio: float | None = None
    """Auto's replica-hours above those that the load itself fills, as a share of the latter; None without any load."""
    regret: Regret | None = None
    """The regret of auto; None with an HPA or limits on scaling down, as models are then not compared at equal cost."""


@dataclass(frozen=True, slots=True)
class BacktestReport:
    """Everything that a backtest found."""

    actuator: Actuator
    trace: TraceFacts
    fleet_settings: FleetSettings
    policies: tuple[PolicyResult, ...]
    frontier: tuple[FrontierPoint, ...]
    verdict: BacktestVerdict
    budgets: tuple[BudgetPoint, ...]
    """Auto with each of several budgets; empty through an HPA, because simulating one for every budget takes too
    long."""
    rival: Fleet = field(repr=False)
    """The fleet of plain headroom that costs as much as `model:auto`."""
    history: LoadHistory = field(repr=False)
    judged: BoolArray = field(repr=False)
    notes: tuple[str, ...] = ()
    """Notes for the reader besides the figures, such as models that did not take part."""

    @property
    def load(self) -> FloatArray:
        """Return the load of each step; NaN where it is unknown."""
        return np.asarray(self.history.values[0])

    def policy(self, name: str) -> PolicyResult:
        """Return the policy of this name; raises StopIteration if there is none."""
        return next(each for each in self.policies if each.name == name)
