"""Determines how long nodes have been unneeded, and whether that is long enough.

Times are seconds of the wall clock, so that they survive a restart with the memory. A time from the future, as after a
correction of the clock, counts as now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.model.memory import known_seconds
from recommender.kinds.cluster_size.scale_down.reasons import Waiting, WaitReason, duration_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings

UNREMOVABLE_SECONDS: Final = 300.0
"""How long a node whose pods found no place is not simulated again (`unremovable-node-recheck-timeout`)."""


def unneeded_since(names: Iterable[str], before: Mapping[str, float], now: float) -> dict[str, float]:
    """Return since when each node has been unneeded; those that are needed again are forgotten."""
    return {name: min(before.get(name, now), now) for name in names}


def unneeded_seconds(since: float, memory: ClusterSizeMemory, now: float) -> float:
    """Return for how long a node has been unneeded, without the times for which nothing is known of the cluster."""
    return max(0.0, known_seconds(memory.absences, since, now))


def recently_unremovable(name: str, until: Mapping[str, float], now: float) -> float | None:
    """Return until when a node is not simulated again, at most five minutes from now; None if that has passed."""
    end = min(until.get(name, now), now + UNREMOVABLE_SECONDS)
    return end if end > now else None


def unneeded_waiting(
    node: ClusterNode, group: NodeGroup, elapsed: float, settings: ScaleDownSettings
) -> Waiting | None:
    """Return why a node, ready or not, which has been unneeded for `elapsed` seconds, waits; None if that is enough.

    The time must be strictly longer than the limit.
    """
    own, common = (
        (group.options.unneeded_seconds, settings.unneeded_seconds)
        if node.ready
        else (group.options.unready_seconds, settings.unready_seconds)
    )
    limit = common if own is None else own
    if limit <= 0 or elapsed > limit:
        return None
    if node.ready:
        return Waiting(
            WaitReason.NOT_UNNEEDED_LONG_ENOUGH,
            f"it has been unneeded for {duration_of(elapsed)}, and is removed after {duration_of(limit)}",
        )
    return Waiting(
        WaitReason.NOT_UNREADY_LONG_ENOUGH,
        f"it is not ready and has been unneeded for {duration_of(elapsed)}, and is removed after {duration_of(limit)}",
    )


def unneeded_limit(previous: int, parallelism: int, unneeded_seconds: float, interval_seconds: float) -> int:
    """Return how many unneeded nodes need to be found, because no more could be removed in time (`unneededNodesLimit`).

    The limit is `min(previous + 2N, N * floor(U / I) + N)`, where `N` nodes are removed at a time, `U` is the unneeded
    time, and `I` is the time between decisions.
    """
    loops = int(max(unneeded_seconds, interval_seconds) / interval_seconds) if interval_seconds > 0 else None
    grown = previous + 2 * parallelism
    return grown if loops is None else min(grown, parallelism * loops + parallelism)
