"""Failed removals of nodes: an annotation of the node shows one, and no other node is removed for a while. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from adapter.foundation.cluster.values.state import Observed

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterState
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory

FAILED_REMOVAL: Final = "tidewatch.io/removal-failed"
"""The annotation of a node that is in use again after a failed removal: since when, in Unix seconds."""


def with_failed_removals(memory: ClusterSizeMemory, cluster: ClusterState, now: float) -> ClusterSizeMemory:
    """Return the memory with the time of the last failed removal, at which `delayAfterFailure` begins.

    The time is read from the node, since another process may have drained it.
    """
    nodes = cluster.nodes.value if isinstance(cluster.nodes, Observed) else ()
    times = [time for node in nodes if (time := _seconds(node.annotations.get(FAILED_REMOVAL, ""))) is not None]
    last = max((min(each, now) for each in times), default=None)
    if last is None or (memory.last_failure is not None and memory.last_failure >= last):
        return memory
    return replace(memory, last_failure=last)


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None
