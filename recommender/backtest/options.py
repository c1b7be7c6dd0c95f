"""The options of a backtest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from recommender.backtest.report import Actuator
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.predictive_settings import PredictiveSettings

DEFAULT_STARTUP_SECONDS: Final = 180.0
DEFAULT_WARM_UP_SECONDS: Final = 8 * DAY_SECONDS
DEFAULT_MIN_REPLICAS: Final = 2


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """How the load is replayed."""

    settings: PredictiveSettings = field(default_factory=PredictiveSettings)
    """The settings of the recommendation; without a configuration, the defaults."""
    actuator: Actuator = Actuator.SCALE
    startup_seconds: float = DEFAULT_STARTUP_SECONDS
    load_per_replica: float | None = None
    """The load that a replica serves; None means 1/20 of the load's 99th percentile, which is only a scale."""
    warm_up_seconds: float = DEFAULT_WARM_UP_SECONDS
    """Steps within this time are not judged, at most half of the trace."""

    connections: str = ""
    """How connections start and end, such as `mean-session=10m`, if the trace holds arrivals of long-lived connections;
    empty if the trace holds the load."""

    @property
    def min_replicas(self) -> int:
        """Return the least size: that of the configuration, or else 2, but at most `maxReplicas`."""
        settings = self.settings
        written = settings.is_min_replicas_written or settings.min_replicas != PredictiveSettings().min_replicas
        if written:
            return settings.min_replicas
        return min(DEFAULT_MIN_REPLICAS, settings.max_replicas or DEFAULT_MIN_REPLICAS)
