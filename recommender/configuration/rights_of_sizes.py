"""The rights that cluster size recommendations need beside those of every recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.cluster.scheduling.kinds import SCHEDULING_KINDS
from recommender.cluster_size.model.settings import ClusterSizeSettings
from recommender.cluster_size.node_groups.kinds import CLUSTER_API_GROUP, SCALABLE_RESOURCES
from recommender.configuration.needs import needs_of
from recommender.configuration.role_rules import CREATE, GET, KEEP, WATCH, RoleRule
from recommender.decisions.settings import Output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.cluster_size.model.settings import ClusterApiGroups
    from recommender.configuration.model import Configuration

_INFRASTRUCTURE: Final = "infrastructure.cluster.x-k8s.io"
"""The API group of the templates of machines with every provider of Cluster API; their kinds differ."""
_BUFFERS: Final = "autoscaling.x-k8s.io"


def rights_of_sizes(configuration: Configuration) -> Iterator[RoleRule]:
    """Yield the rights to watch what nodes are sized by, and to write what the outputs name."""
    needs = needs_of(configuration)
    if needs.pods:
        yield RoleRule("", "", "pods", "", WATCH)
    for kind in SCHEDULING_KINDS if needs.scheduling else ():
        yield RoleRule("", kind.resource.group, kind.resource.plural, "", WATCH)
    for wanted in needs.objects:
        yield RoleRule(
            wanted.namespace, wanted.group, wanted.resource, "", WATCH, (wanted.name,) if wanted.name else ()
        )
    for each in configuration.recommendations:
        if not isinstance(each.subject, ClusterSizeSettings):
            continue
        # Pods that no group can hold, and objects whose sizes are recommended, are anywhere.
        yield RoleRule("", "", "events", "", CREATE)
        groups = each.subject.node_groups.cluster_api
        if groups is not None:
            yield RoleRule(groups.namespace, _INFRASTRUCTURE, "*", "", WATCH)
            if Output.SCALE in each.policy.outputs:
                yield from _of_scaling(groups)
        if each.subject.buffer is not None:
            buffer = each.subject.buffer
            yield RoleRule(buffer.namespace, _BUFFERS, "capacitybuffers", "", KEEP, (buffer.name,))


def _of_scaling(groups: ClusterApiGroups) -> Iterator[RoleRule]:
    """Yield the rights to write sizes; limits and pauses are read again right before."""
    for resource in (*SCALABLE_RESOURCES.values(), "clusters"):
        yield RoleRule(groups.namespace, CLUSTER_API_GROUP, resource, "", GET)
    for resource in SCALABLE_RESOURCES.values():
        yield RoleRule(groups.namespace, CLUSTER_API_GROUP, resource, "scale", KEEP)
    if groups.mark_machines:
        yield RoleRule(groups.namespace, CLUSTER_API_GROUP, "machines", "", KEEP)
