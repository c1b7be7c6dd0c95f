"""Free slots: connections stay on their pods, so that new ones find room only on ready pods below their limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from recommender.kinds.predictive.policy.arithmetic import known_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from recommender.decisions.loads.load_inputs import PodConnections

RESUME_RATIO: Final = 0.95
"""A pod that is not ready and holds at least this share of its limit is full. Below this share, it becomes ready
again."""
PATIENCE_FACTOR: Final = 2.0
"""A pod that has not been ready for longer than this many start-up times is no longer expected to start."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The room for new connections."""

    free: float
    """Connections that ready pods can still take."""
    occupied: int
    """All pods except those that are starting."""
    full: int
    """Pods that were seen at their limit."""
    without_sample: int
    """Ready pods whose connections are unknown; they count as full."""


def with_full_ones(
    pods: Iterable[PodConnections], were_closed: Collection[str], limit: int
) -> tuple[PodConnections, ...]:
    """Return the pods; those that were closed stay closed for as long as their readiness probe keeps them out.

    `were_closed` has the names of the pods that took no new connections before. A query shows only how many connections
    a pod has, and its probe lets new ones in only below `RESUME_RATIO` of the limit.
    """
    return tuple(
        replace(pod, is_ready=False)
        if pod.name in were_closed and pod.connections is not None and pod.connections >= RESUME_RATIO * limit
        else pod
        for pod in pods
    )


def count_slots(pods: Iterable[PodConnections], limit: int, startup_seconds: float) -> Slots:
    """Return the room for new connections on the pods.

    Pods that are starting do not count at all: the size is the number of the other pods plus the additional pods, so
    that the pods of the last decision are not requested a second time while they start.
    """
    free, occupied, full, without_sample = 0.0, 0, 0, 0
    for pod in pods:
        connections = known_value(pod.connections)
        if pod.is_ready:
            occupied += 1
            if connections is None:
                without_sample += 1
            elif connections >= limit:
                full += 1
            else:
                free += limit - max(0.0, connections)
        elif connections is not None and connections >= RESUME_RATIO * limit:
            occupied += 1
            full += 1
        elif pod.unready_seconds is not None and pod.unready_seconds > PATIENCE_FACTOR * startup_seconds:
            occupied += 1
    return Slots(free, occupied, full, without_sample)


def pods_for(slots: Slots, limit: int, arrivals: float, reserve: float) -> int:
    """Return how many pods are needed to have room for new connections and for the reserve.

    `arrivals` are the new connections, net of those that end, that are expected until a pod that is requested now is
    ready. Without room for these, the answer is the current pods plus `ceil((arrivals + reserve) / limit)`, since full
    pods stay full. With room for these, it is as many more or fewer pods as the reserve needs, even if the emptiest
    pods are removed. When the last slot is taken, at least one pod is added, because a Service without a ready pod has
    no endpoints.
    """
    arrivals = max(0.0, arrivals)
    wanted = arrivals + reserve
    missing = wanted if slots.free < arrivals else wanted - slots.free
    extra = math.ceil(missing / limit - 1e-9)
    return slots.occupied + (max(1, extra) if slots.occupied and slots.free <= 0 else extra)
