"""Made-up cluster sizes, for the dashboard of recommendations."""

from __future__ import annotations

from typing import Final

from recommender.decisions.record import Record, Status, Step
from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, GroupSize, Removal, UnschedulablePods
from recommender.kinds.cluster_size.model.pod_places import PodName

_MOST: Final = 12
_PRICE: Final = 0.4


def sized_record(now: float, number: int) -> Record:
    """Return the Nth decision: one group grows to its maximum, and another one's nodes are no longer needed."""
    recommended = min(_MOST, 4 + number // 20)
    reached = min(recommended, 4 + max(0, number - 15) // 20)
    going = number // 30 % 3
    removals = tuple(Removal(f"spot-{index}", "spot", 0.1, "", 900.0, saved_per_hour=_PRICE) for index in range(going))
    left = tuple(PodName("shop", f"search-{index}") for index in range(number % 40 // 10))
    answer = ClusterSizeAnswer(
        groups=(
            GroupSize(
                "general", reached, recommended, recommended, 2, _MOST, "pending pods need it", registered=reached
            ),
            GroupSize("spot", 5, 5, 5 - going, 0, 20, "no pending pod needs it", registered=5),
        ),
        removals=removals,
        unschedulable=(UnschedulablePods(left, {"general": "Insufficient memory", "spot": "Insufficient memory"}),),
        binding="round/1",
        saved_per_hour=_PRICE * going if going else None,
        pending_pods=len(left) + 10,
    )
    steps = (Step("round/1", recommended, "general"),)
    return Record("workers", "clusterSize", now, Status.OK, "", steps=steps, binding="round/1", details=answer)
