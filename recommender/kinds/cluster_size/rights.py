"""The rights that cluster size recommendations need beside those of every recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.decisions.policy_settings import Output
from recommender.kinds.cluster_size.node_groups.watched_kinds import CLUSTER_API_GROUP, SCALABLE_RESOURCES
from recommender.kinds.role_rules import CREATE, GET, KEEP, WATCH, RoleRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.kind import Recommendation

_INFRASTRUCTURE: Final = "infrastructure.cluster.x-k8s.io"
"""The API group of the templates of machines with every provider of Cluster API; their kinds differ."""
_BUFFERS: Final = "autoscaling.x-k8s.io"


def rights_of_sizes(recommendation: Recommendation) -> Iterator[RoleRule]:
    """Yield the rights to write what the outputs name, and to watch the templates of machines."""
    settings: ClusterSizeSettings = recommendation.subject
    # Pods that no group can hold, and objects whose sizes are recommended, are anywhere.
    yield RoleRule("", "", "events", "", CREATE)
    groups = settings.node_groups.cluster_api
    for namespace in groups.namespaces if groups is not None else ():
        yield RoleRule(namespace, _INFRASTRUCTURE, "*", "", WATCH)
        if groups is not None and Output.SCALE in recommendation.policy.outputs:
            yield from _of_scaling(namespace, mark_machines=groups.mark_machines)
    if settings.buffer is not None:
        buffer = settings.buffer
        yield RoleRule(buffer.namespace, _BUFFERS, "capacitybuffers", "", KEEP, (buffer.name,))


def _of_scaling(namespace: str, *, mark_machines: bool) -> Iterator[RoleRule]:
    """Yield the rights to write sizes; limits and pauses are read again right before."""
    for resource in (*SCALABLE_RESOURCES.values(), "clusters"):
        yield RoleRule(namespace, CLUSTER_API_GROUP, resource, "", GET)
    for resource in SCALABLE_RESOURCES.values():
        yield RoleRule(namespace, CLUSTER_API_GROUP, resource, "scale", KEEP)
    if mark_machines:
        yield RoleRule(namespace, CLUSTER_API_GROUP, "machines", "", KEEP)
