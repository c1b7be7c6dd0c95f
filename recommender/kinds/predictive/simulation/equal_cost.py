"""Scales a policy's room above the load until it costs as much as another policy, to judge single models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.simulation.measures import measure
from recommender.kinds.predictive.simulation.serving import desired_replicas, simulate

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray
    from recommender.kinds.predictive.simulation.measures import JudgedLoad, Measures

LARGEST_SCALE: Final = 16.0
_HALVINGS: Final = 16


def measured_at_cost(
    judged: JudgedLoad, room: FloatArray, replica_hours: float, limits: FloatArray | None = None
) -> Measures:
    """Return the measures of `load + scale x room`, at the scale from 0 to 16 that costs this many replica-hours.

    If the load costs more even without any room, its measures without room are returned. `limits` are the largest
    capacity that may be requested, None for any. Arrays have the shape (steps,).
    """

    def at(scale: float) -> Measures:
        capacity = judged.load + scale * room
        asked = capacity if limits is None else np.minimum(capacity, limits)
        return measure(judged, simulate(desired_replicas(asked, judged.fleet.load_per_replica), judged.fleet))

    low, high = 0.0, LARGEST_SCALE
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if at(middle).replica_hours <= replica_hours:
            low = middle
        else:
            high = middle
    return at(low)
