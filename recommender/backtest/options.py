"""What a backtest is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recommender.backtest.report import Actuator
from recommender.predictive.forecast import ForecastTask
from recommender.predictive.history import DAY_SECONDS

if TYPE_CHECKING:
    from recommender.predictive.simulation.serving import FleetSettings

DEFAULT_STARTUP_SECONDS: Final = 180.0
DEFAULT_WARM_UP_SECONDS: Final = 8 * DAY_SECONDS
DEFAULT_MIN_REPLICAS: Final = 2


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """How the load is replayed."""

    actuator: Actuator = Actuator.SCALE
    startup_seconds: float = DEFAULT_STARTUP_SECONDS
    load_per_replica: float | None = None
    """None: the 99th percentile of the load / 20, which is a scale only."""
    warm_up_seconds: float = DEFAULT_WARM_UP_SECONDS
    """Steps of so much time are not judged, at most half of the trace."""
    min_replicas: int = DEFAULT_MIN_REPLICAS
    max_replicas: int | None = None
    down_window_seconds: float = 300.0
    headroom_ratio: float = 0.1
    quantile: float = 0.95
    max_growth: float | None = None


def forecast_task(options: BacktestOptions, fleet: FleetSettings) -> ForecastTask:
    """Return what the models are asked: the load from when a pod serves that is asked for now."""
    return ForecastTask(
        lead_seconds=fleet.lag_steps * fleet.step_seconds,
        window_seconds=fleet.down_window_seconds + fleet.step_seconds,
        quantile=options.quantile,
        max_growth=options.max_growth,
        headroom_ratio=options.headroom_ratio,
    )
