"""The inputs of a size, besides its settings and the memory of earlier sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.decisions.loads.control_delays import ControlDelays
    from recommender.decisions.loads.load_inputs import PodConnections
    from recommender.decisions.loads.prediction import ForecastBound


@dataclass(frozen=True, slots=True)
class LoadForecast:
    """The forecast for the moment at which capacity that is requested now will be ready."""

    median: float
    upper: float
    """The load that is exceeded only with a probability of 1 - `quantile`."""
    model: str
    """The model as the configuration spells it, such as `holt-winters`."""
    bound: ForecastBound | None = None
    """How `upper` was capped; None if it was not."""
    limited: float | None = None
    """`upper` as it is published: within `maxGrowth` of the load or of its mean in the last minutes, whichever is
    larger; None if that mean is unknown."""


@dataclass(frozen=True, slots=True)
class LoadSituation:
    """The known load of one target at one moment. NaN and infinite values count as unknown."""

    load: float | None
    """The observed load; None if it is unknown, so that the last size is held."""
    forecast: LoadForecast | None = None
    """The forecast; None if there is none yet, so that plain headroom replaces it."""
    pods: tuple[PodConnections, ...] | None = None
    """The pods; None if they are not considered one by one, or are unknown."""
    gate: float | None = None
    """The value of `freezeUnless`; None if there is no such query, or if its value is unknown."""
    current_replicas: int | None = None
    """The current size of the target; None if it is not known, or if there is no target."""
    uid: str = ""
    """The UID of the target; empty if it is not known."""
    is_absent: bool = False
    """Whether the target certainly does not exist, so that the next one of its name is another one."""
    writes_size: bool = False
    """Whether the size is written to the target, which is done only once its current size is known."""
    last_replicas: int | None = None
    """The last size that passed the constraints of all kinds of recommendations."""
    delays: ControlDelays | None = None
    """The delays in the forecast's horizon besides the start-up; None if there are none."""
    interval_seconds: float = 10.0
    """How often sizes are decided."""
