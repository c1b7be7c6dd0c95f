"""Groups by label: one for each value; another autoscaler stays in charge of their sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.cluster_size.model.groups import NodeGroup
from recommender.kinds.cluster_size.node_groups.autoscalers import karpenter_of
from recommender.kinds.cluster_size.node_groups.discovery_facts import NO_TEMPLATE, Discovered

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.model.size_settings import LabelGroups
    from recommender.kinds.cluster_size.node_groups.autoscalers import SeenAutoscaler
    from recommender.kinds.cluster_size.node_groups.discovery_facts import DiscoveryFacts

_UNKNOWN_AUTOSCALER: Final = "the autoscaler of the cloud (byLabel)"


def label_groups(stated: LabelGroups, world: DiscoveryFacts, seen: SeenAutoscaler | None) -> Discovered:
    """Return a group for each value of the label. It is named after the value; its target size is its nodes."""
    members: dict[str, list[str]] = {}
    for name, node in world.nodes.items():
        if value := node.labels.get(stated.key):
            members.setdefault(value, []).append(name)
    groups = []
    for value, names in members.items():
        template = world.template(value, names, None, "")
        groups.append(
            NodeGroup(
                name=value,
                min_size=stated.min_size,
                max_size=stated.max_size,
                target_size=len(names),
                nodes=tuple(names),
                template=template,
                price=stated.prices.get(value),
                autoscaler=karpenter_of(names, world.nodes) or (seen.name if seen else _UNKNOWN_AUTOSCALER),
                deleting=tuple(name for name in names if world.nodes[name].is_terminating),
                problem="" if template else NO_TEMPLATE,
            )
        )
    without = f"byLabel: no node has the label {stated.key}, so there is no node group: check the key"
    return Discovered(tuple(groups), () if groups else (without,))
