"""How many nodes of the cluster and of each group are ready (`clusterstate`)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.cluster.state import ClusterNode
    from recommender.cluster_size.model.settings import Unready


@dataclass(frozen=True, slots=True)
class NodeReadiness:
    """Nodes by their state. Nodes that are being deleted are in none of them."""

    ready: tuple[str, ...] = ()
    starting: tuple[str, ...] = ()
    """Not ready, and so new that they may still be starting."""
    unready: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """All of them."""
        return len(self.ready) + len(self.starting) + len(self.unready)


def is_starting(node: ClusterNode, now: float, startup_seconds: float) -> bool:
    """Whether a node is not ready and so new that it may still be starting."""
    return not node.ready and node.created is not None and now - node.created < startup_seconds


def readiness_of(
    nodes: Iterable[ClusterNode],
    group_of: Mapping[str, str],
    deleting: frozenset[str],
    now: float,
    startup_seconds: Mapping[str, float],
    default_seconds: float,
) -> dict[str, NodeReadiness]:
    """Return the readiness by group; nodes outside of groups are under the empty name.

    `startup_seconds` is how long nodes of a group may take to become ready, where it is not the default.
    """
    states: defaultdict[str, tuple[list[str], list[str], list[str]]] = defaultdict(lambda: ([], [], []))
    for node in nodes:
        if node.name in deleting or node.is_terminating:
            continue
        group = group_of.get(node.name, "")
        ready, starting, unready = states[group]
        if node.ready:
            ready.append(node.name)
        elif is_starting(node, now, startup_seconds.get(group, default_seconds)):
            starting.append(node.name)
        else:
            unready.append(node.name)
    return {group: NodeReadiness(*map(tuple, lists)) for group, lists in states.items()}


def health_problem(unready: int, total: int, allowed: Unready) -> str:
    """Return why so many unready nodes are unhealthy; empty if they are not.

    They are where there are more of them than `allowed.count`, and also more than the share `allowed.ratio` of all.
    """
    if unready <= allowed.count or unready <= allowed.ratio * total:
        return ""
    return (
        f"{unready} of {total} nodes are not ready, more than {allowed.count} and more than {100 * allowed.ratio:g} %: "
        "look into them first"
    )
