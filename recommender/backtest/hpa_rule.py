"""The rule of a HorizontalPodAutoscaler on current load, without its timing; most workloads run with it today."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.policy.arithmetic import MOST_REPLICAS

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.simulation.serving import FleetSettings

MILLI = 1000
_TOLERANCE: Final = 0.1
"""The share of the target by which usage may differ from the target; the HPA controller's default."""


def average_value_replicas(replicas: int, usage_milli: int, target_milli: int) -> int:
    """Return the replicas that an HPA computes for a target of type AverageValue, before look-back and rate limits.

    `usage_milli` is the total usage, and `target_milli` the target for each replica. The formula, and its rounding, is
    that of `replica_calculator.go` in the HPA controller.
    """
    usage, target = float(usage_milli), float(target_milli)
    if replicas and 1.0 - _TOLERANCE <= usage / (target * float(replicas)) <= 1.0 + _TOLERANCE:
        return replicas
    return min(math.ceil(usage / target), MOST_REPLICAS)


def hpa_desired(load: FloatArray, settings: FleetSettings) -> FloatArray:
    """Return the desired replicas of an HPA with the default tolerance, shape (steps,).

    Within 10% of the target, the current size is desired again, so each step depends on the previous one.
    """
    least, most = settings.min_replicas, settings.max_replicas or math.inf
    target = max(1, round(settings.load_per_replica * MILLI))
    recent: deque[float] = deque(maxlen=settings.down_window_steps)
    asked, desired = float(least), np.empty(len(load))
    for step, value in enumerate(load.tolist()):
        if math.isnan(value):
            wanted = recent[-1] if recent else asked
        else:
            wanted = float(average_value_replicas(int(asked), math.ceil(value * MILLI), target))
        recent.append(min(max(wanted, least), most))
        desired[step], asked = recent[-1], max(recent)
    return desired
