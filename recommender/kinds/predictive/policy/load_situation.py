"""The inputs of a size, besides its settings and the memory of earlier sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.decisions.loads.delays import ControlDelays
    from recommender.decisions.loads.inputs import PodConnections
    from recommender.decisions.loads.prediction import ForecastBound


@dataclass(frozen=True, slots=True)
class LoadForecast:
    """The forecast for the moment at which capacity that is requested now serves."""

    median: float
    upper: float
    """The load that is exceeded with a probability of 1 - `quantile` only."""
    model: str
    """As the configuration spells it, such as `holt-winters`."""
    level: float = 0.0
    """The mean load of the last minutes. Growth is relative to it where the load of this moment is less."""
    bound: ForecastBound | None = None
    """How `upper` was cut; None: it was not."""


@dataclass(frozen=True, slots=True)
class LoadSituation:
    """The known load of one target at one moment. NaN and infinite values count as unknown."""

    load: float | None
    """The observed load; None: unknown, and the last size is held."""
    forecast: LoadForecast | None = None
    """None: there is none yet, and plain headroom takes its place."""
    pods: tuple[PodConnections, ...] | None = None
    """None: the pods are not looked at one by one, or they are unknown."""
    refused_per_second: float | None = None
    """Connections that were refused; None: unknown."""
    gate: float | None = None
    """The value of `freezeUnless`; None: it has none, or is unknown."""
    current_replicas: int | None = None
    """The present size of the target."""
    last_replicas: int | None = None
    """The last size that the constraints of all kinds of recommendations let through."""
    delays: ControlDelays | None = None
    """The delays in the forecast's horizon besides the start-up; None if there are none."""
    interval_seconds: float = 10.0
    """How often sizes are decided."""
