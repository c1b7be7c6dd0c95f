"""Turns the groups of a plugin into node groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.kinds.cluster_size.model.groups import NodeGroup
from recommender.kinds.cluster_size.node_groups.autoscalers import karpenter_of
from recommender.kinds.cluster_size.node_groups.discovery_facts import NO_TEMPLATE, Discovered
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState
from recommender.kinds.cluster_size.node_groups.templates import stated_node

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.node_groups.autoscalers import SeenAutoscaler
    from recommender.kinds.cluster_size.node_groups.discovery_facts import DiscoveryFacts
    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup, PluginReading


def plugin_groups(reading: PluginReading, world: DiscoveryFacts, seen: SeenAutoscaler | None) -> Discovered:
    """Return the groups of a plugin; none, with the problem, if it has not answered."""
    if reading.problem:
        return Discovered(problems=(f"the node groups of the plugin {reading.plugin} are left out: {reading.problem}",))
    members: dict[str, list[str]] = {}
    for node, group in reading.group_of.items():
        if node in world.nodes:
            members.setdefault(group, []).append(node)
    return Discovered(tuple(_group(one, tuple(members.get(one.name, ())), world, seen) for one in reading.groups))


def _group(one: PluginGroup, members: tuple[str, ...], world: DiscoveryFacts, seen: SeenAutoscaler | None) -> NodeGroup:
    stated = None if one.template is None else _stated(one.name, one.template)
    template = world.template(one.name, members, stated, "template of the plugin")
    going = {each.provider_id for each in one.instances if each.state is InstanceState.DELETING}
    return NodeGroup(
        name=one.name,
        min_size=one.min_size,
        max_size=one.max_size,
        target_size=one.target_size,
        nodes=members,
        template=template,
        price=one.price,
        options=one.options,
        autoscaler=karpenter_of(members, world.nodes) or (seen.name if seen is not None and seen.has(one.name) else ""),
        deleting=tuple(name for name in members if _is_going(world.nodes[name], going)),
        problem=one.problem or ("" if template else NO_TEMPLATE),
    )


def _is_going(node: ClusterNode, going: set[str]) -> bool:
    return node.is_terminating or node.provider_id in going


def _stated(group: str, node: ClusterNode) -> ClusterNode:
    """Return the node of a plugin's template. What it does not state as allocatable is its capacity."""
    return stated_node(group, {**node.capacity, **node.allocatable}, node.labels, node.taints, node.capacity)
