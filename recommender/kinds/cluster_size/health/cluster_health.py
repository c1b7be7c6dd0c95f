"""Determines how many nodes of the cluster and of each group are ready, and whether it is healthy (`clusterstate`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.constraints import TaintEffect
from adapter.foundation.cluster.values.state import Taint

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.size_settings import Unready

_NOT_READY: Final = Taint("node.kubernetes.io/not-ready", "", TaintEffect.NO_SCHEDULE)


def with_readiness_taint(node: ClusterNode) -> ClusterNode:
    """Return the node with the taint that a controller gives it a moment after it ceases to be ready.

    Until then, the scheduler may still place pods on the node, but nothing should count on that.
    """
    if node.ready or _NOT_READY in node.taints:
        return node
    return replace(node, taints=(*node.taints, _NOT_READY))


@dataclass(frozen=True, slots=True)
class NodeReadiness:
    """How many nodes are in each state. Nodes that are being deleted are in none of them."""

    ready: int = 0
    starting: int = 0
    """Nodes that cannot hold pods yet, but are so new that they are about to."""
    unready: int = 0

    @property
    def total(self) -> int:
        """How many nodes are in any of the states."""
        return self.ready + self.starting + self.unready


def readiness_of(
    nodes: Iterable[ClusterNode], group_of: Mapping[str, str], deleting: frozenset[str], starting: Container[str]
) -> dict[str, NodeReadiness]:
    """Return the readiness by group; nodes outside of groups are under the empty name.

    `starting` has the names of the nodes that are on their way, whether or not the API reports them as ready.
    """
    states: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for node in nodes:
        if node.name not in deleting and not node.is_terminating:
            state = "starting" if node.name in starting else "ready" if node.ready else "unready"
            states[group_of.get(node.name, "")][state] += 1
    return {group: NodeReadiness(**counts) for group, counts in states.items()}


def health_problem(unready: int, total: int, allowed: Unready) -> str:
    """Return why this number of unready nodes makes the cluster unhealthy; empty if it does not.

    It does if the number exceeds both `allowed.count` and the share `allowed.ratio` of all nodes.
    """
    if unready <= allowed.count or unready <= allowed.ratio * total:
        return ""
    return (
        f"nodes that are not ready: {unready} of {total}, more than {allowed.count} and more than "
        f"{100 * allowed.ratio:g}%: check them first"
    )
