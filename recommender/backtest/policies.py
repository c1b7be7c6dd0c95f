"""Policies: from the load that is known at each step to the size that is desired then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from recommender.backtest.report import FitCounts
from recommender.predictive.simulation.serving import desired_replicas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.predictive.arrays import FloatArray
    from recommender.predictive.forecast import Forecasts, ForecastTask
    from recommender.predictive.simulation.serving import FleetSettings

HPA = "hpa"
AUTO = "model:auto"
HEADROOM = "headroom"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a policy asks for at each step; it knows the load up to and with that step."""

    name: str
    sizes: FloatArray
    """Desired replicas of shape (steps,), before any bounds."""
    predicted: FloatArray | None = None
    """The load that it expects at each step, a lead later."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    fits: FitCounts = field(default_factory=FitCounts)


def model_policy_name(model: str) -> str:
    """Return the name of a model's policy."""
    return f"model:{model}"


def headroom_policy(load: FloatArray, ratio: float, settings: FleetSettings) -> Policy:
    """Return the policy that adds a share to the present load."""
    sizes = desired_replicas(load * (1 + ratio), settings.load_per_replica)
    return Policy(f"{HEADROOM}:{100 * ratio:g}%", sizes, parameters={"headroom_ratio": ratio})


def forecast_policy(
    name: str,
    forecasts: Forecasts,
    load: FloatArray,
    task: ForecastTask,
    settings: FleetSettings,
    fits: FitCounts | None = None,
) -> Policy:
    """Return the policy that acts on the upper forecast, and never on less than the present load.

    Where the model has no forecast yet, plain headroom stands in for it.
    """
    upper = forecasts.upper[0]
    capacity = np.where(np.isnan(upper), load * (1 + task.headroom_ratio), np.fmax(load, upper))
    return Policy(
        name,
        desired_replicas(capacity, settings.load_per_replica),
        predicted=upper,
        parameters={
            "quantile": task.quantile,
            "max_growth": task.max_growth,
            "headroom_ratio": task.headroom_ratio,
            "lead_seconds": task.lead_seconds,
            "window_seconds": task.window_seconds,
        },
        fits=fits or FitCounts(),
    )
