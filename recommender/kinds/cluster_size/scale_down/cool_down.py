"""Determines whether a change was too recent for a removal: `delayAfterAdd`, `delayAfterDelete`, `delayAfterFailure`.

Times are seconds of the wall clock. A time from the future, as after a correction of the clock, counts as now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.scale_down.reasons import Waiting, WaitReason, duration_of

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_settings import ScaleDownSettings


def cool_down(memory: ClusterSizeMemory, settings: ScaleDownSettings, now: float) -> Waiting | None:
    """Return the change that was too recent for a removal, or of several the one that delays it longest; else None."""
    changes = (
        (memory.last_scale_up, settings.delay_after_add_seconds, "nodes were added", "delayAfterAdd"),
        (memory.last_delete, settings.delay_after_delete_seconds, "a node was removed", "delayAfterDelete"),
        (memory.last_failure, settings.delay_after_failure_seconds, "a removal failed", "delayAfterFailure"),
    )
    longest: tuple[float, Waiting] | None = None
    for at, delay, what, key in changes:
        if at is None:
            continue
        elapsed = max(0.0, now - at)
        left = delay - elapsed
        if left > 0 and (longest is None or left > longest[0]):
            text = f"{what} {duration_of(elapsed)} ago, and {key} is {duration_of(delay)}"
            longest = (left, Waiting(WaitReason.IN_COOLDOWN, text))
    return longest[1] if longest else None
