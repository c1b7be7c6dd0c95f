"""Policies: functions from the load that is known at each step to the size that is desired at that step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recommender.backtest.report import FitCounts
from recommender.kinds.predictive.simulation.serving import FleetSettings, desired_replicas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.backtest.forecasts_of_all_models import ModelRun
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.forecast import ForecastTask

HPA = "hpa"
AUTO = "model:auto"
HEADROOM = "headroom"


@dataclass(frozen=True, slots=True)
class ReplayedPolicy:
    """The sizes that a policy desires at each step, when it knows the load up to and including that step."""

    name: str
    sizes: FloatArray
    """Desired replicas of shape (steps,), before any bounds."""
    predicted: FloatArray | None = None
    """The load for which the policy provides capacity one lead after each step; None for a policy without forecasts."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    fits: FitCounts = field(default_factory=FitCounts)


def model_policy_name(model: str) -> str:
    """Return the name of a model's policy."""
    return f"model:{model}"


def headroom_policy(load: FloatArray, ratio: float, settings: FleetSettings) -> ReplayedPolicy:
    """Return the policy that adds a share to the current load."""
    sizes = desired_replicas(load * (1 + ratio), settings.load_per_replica)
    return ReplayedPolicy(f"{HEADROOM}:{100 * ratio:g}%", sizes, parameters={"headroom_ratio": ratio})


def model_policy(run: ModelRun, capacity: FloatArray, task: ForecastTask, settings: FleetSettings) -> ReplayedPolicy:
    """Return the policy of a model from the capacity that the model requests if it is configured."""
    sizes = desired_replicas(capacity, settings.load_per_replica)
    return ReplayedPolicy(model_policy_name(run.name), sizes, capacity, _parameters(task), run.fits)


def auto_policy(capacity: FloatArray, task: ForecastTask, settings: FleetSettings) -> ReplayedPolicy:
    """Return the policy `model:auto` from the capacity that the models in use requested."""
    return ReplayedPolicy(AUTO, desired_replicas(capacity, settings.load_per_replica), capacity, _parameters(task))


def _parameters(task: ForecastTask) -> dict[str, object]:
    return {
        "quantile": task.quantile,
        "max_growth": task.max_growth,
        "headroom_ratio": task.headroom_ratio,
        "lead_seconds": task.lead_seconds,
        "window_seconds": task.window_seconds,
    }
