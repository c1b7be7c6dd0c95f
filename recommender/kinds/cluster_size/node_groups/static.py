"""Static groups: the configuration lists them, and a selector says which nodes belong to each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.node_counts import matching_nodes
from adapter.foundation.cluster.values.state import Taint
from recommender.kinds.cluster_size.model.groups import GroupOptions, NodeGroup
from recommender.kinds.cluster_size.node_groups.discovery_facts import NO_TEMPLATE, Discovered
from recommender.kinds.cluster_size.node_groups.other_autoscalers import karpenter_of
from recommender.kinds.cluster_size.node_groups.templates import labels_of_selector, quantity_of, stated_node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.size_settings import StaticGroup
    from recommender.kinds.cluster_size.node_groups.discovery_facts import DiscoveryFacts
    from recommender.kinds.cluster_size.node_groups.other_autoscalers import SeenAutoscaler


def static_groups(stated: Iterable[StaticGroup], world: DiscoveryFacts, seen: SeenAutoscaler | None) -> Discovered:
    """Return the groups of the configuration. The target size of each is the number of its nodes."""
    groups, problems = [], []
    for one in stated:
        members = tuple(node.name for node in matching_nodes(world.nodes.values(), one.selector))
        node = _node_of_template(one)
        if node is not None and not one.selector.matches(node.labels):
            problems.append(
                f"node group {one.name}: its template does not have the labels that its selector {one.selector} asks "
                "for, so new nodes may not belong to it: add them to template.labels"
            )
        template = world.template(one.name, members, None, "") if node is None else world.stated(node, "configuration")
        groups.append(
            NodeGroup(
                name=one.name,
                min_size=one.min_size,
                max_size=one.max_size,
                target_size=len(members),
                nodes=members,
                template=template,
                price=one.price,
                options=one.options or GroupOptions(),
                autoscaler=karpenter_of(members, world.nodes) or _in_charge(seen, one.name),
                deleting=tuple(name for name in members if world.nodes[name].is_terminating),
                problem="" if template else f"{NO_TEMPLATE}: write template.cpu and template.memory",
            )
        )
    return Discovered(tuple(groups), tuple(problems))


def _in_charge(seen: SeenAutoscaler | None, group: str) -> str:
    return seen.name if seen is not None and seen.has(group) else ""


def _node_of_template(group: StaticGroup) -> ClusterNode | None:
    if group.capacity is None:
        return None
    capacity = {resource: quantity_of(resource, amount) for resource, amount in group.capacity.items()}
    labels = labels_of_selector(group.selector) | dict(group.labels)
    return stated_node(group.name, capacity, labels, (Taint(*taint) for taint in group.taints))
