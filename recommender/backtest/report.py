"""What a backtest found, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.predictive.arrays import BoolArray, FloatArray
    from recommender.predictive.history import LoadHistory
    from recommender.predictive.simulation.connections import ConnectionMeasures
    from recommender.predictive.simulation.frontier import Comparison, FrontierPoint
    from recommender.predictive.simulation.measures import Measures
    from recommender.predictive.simulation.serving import Fleet, FleetSettings


class Actuator(StrEnum):
    """What turns a desired size into the size of the fleet."""

    SCALE = "scale"
    """The recommender itself, through the scale subresource."""
    HPA = "hpa"
    """A HorizontalPodAutoscaler that reads the desired size as an External metric."""


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """The recorded load as it was replayed. Times are seconds since the Unix epoch."""

    source: str
    start: float
    end: float
    step_seconds: float
    samples: int
    judged_steps: int
    warm_up_seconds: float


@dataclass(frozen=True, slots=True)
class FitCounts:
    """What became of a model's fits."""

    done: int = 0
    failed: int = 0
    """Over their budget, or ended by an error: the last good parameters stayed in use."""
    last_failure: str = ""


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """One policy: what it cost, and what was short."""

    name: str
    measures: Measures
    comparison: Comparison
    fleet: Fleet = field(repr=False)
    predicted: FloatArray | None = field(default=None, repr=False)
    """The load that it expected at each step for a lead later; None for a policy that expects nothing."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    fits: FitCounts = field(default_factory=FitCounts)
    connections: ConnectionMeasures | None = None
    """What became of long-lived connections; None: the trace holds the load itself."""


@dataclass(frozen=True, slots=True)
class BacktestVerdict:
    """What to use; the figures are those of `model:auto`."""

    best: str
    """The winner in hindsight, for information."""
    use: str
    """What auto ran most: `headroom`, or the policy of a model."""
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class BacktestReport:
    """Everything that a backtest found."""

    actuator: Actuator
    trace: TraceFacts
    fleet_settings: FleetSettings
    policies: tuple[PolicyResult, ...]
    frontier: tuple[FrontierPoint, ...]
    verdict: BacktestVerdict
    rival: Fleet = field(repr=False)
    """The fleet of plain headroom that costs as much as `model:auto`."""
    history: LoadHistory = field(repr=False)
    judged: BoolArray = field(repr=False)
    notes: tuple[str, ...] = ()
    """What a reader must know beside the figures, such as models that took no part."""

    @property
    def load(self) -> FloatArray:
        """Return the load of each step; NaN where it is unknown."""
        return np.asarray(self.history.values[0])

    def policy(self, name: str) -> PolicyResult:
        """Return the policy of this name; raises StopIteration where there is none."""
        return next(each for each in self.policies if each.name == name)
