"""The rule of a HorizontalPodAutoscaler on present load, without its timing: what most workloads run with today."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from recommender.hpa.arithmetic import Tolerances
from recommender.hpa.totals import average_value_replicas

if TYPE_CHECKING:
    from recommender.predictive.arrays import FloatArray
    from recommender.predictive.simulation.serving import FleetSettings

MILLI = 1000


def hpa_desired(load: FloatArray, settings: FleetSettings) -> FloatArray:
    """Return the desired replicas of an HPA with the default tolerance, shape (steps,).

    Within 10 % of the target, the size that stands is desired again, so each step needs the one before.
    """
    tolerances, least, most = Tolerances(), settings.min_replicas, settings.max_replicas or math.inf
    target = max(1, round(settings.load_per_replica * MILLI))
    recent: deque[float] = deque(maxlen=settings.down_window_steps)
    asked, desired = float(least), np.empty(len(load))
    for step, value in enumerate(load.tolist()):
        if math.isnan(value):
            wanted = recent[-1] if recent else asked
        else:
            usage = math.ceil(value * MILLI)
            wanted = float(average_value_replicas(int(asked), usage, target, tolerances).replicas)
        recent.append(min(max(wanted, least), most))
        desired[step], asked = recent[-1], max(recent)
    return desired
