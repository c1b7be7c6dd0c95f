"""Discovery: all node groups at one moment, from all sources, and which group each node belongs to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.cluster.state import Unknown
from recommender.cluster_size.model.groups import NodeGroups
from recommender.cluster_size.node_groups.autoscalers import cluster_autoscaler
from recommender.cluster_size.node_groups.by_label import label_groups
from recommender.cluster_size.node_groups.cluster_api.groups import cluster_api_groups, needed_kinds
from recommender.cluster_size.node_groups.plugin_groups import plugin_groups
from recommender.cluster_size.node_groups.static import static_groups
from recommender.cluster_size.node_groups.world import world_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.cluster.state import ClusterState, ObjectKind
    from recommender.cluster_size.model.groups import NodeGroup
    from recommender.cluster_size.model.settings import NodeGroupSources
    from recommender.cluster_size.node_groups.plugin_reading import PluginReading
    from recommender.cluster_size.node_groups.world import Discovered, DiscoveryFacts


def object_kinds(sources: NodeGroupSources, cluster: ClusterState | None = None) -> frozenset[ObjectKind]:
    """Return the kinds of which whole objects are needed.

    Infrastructure templates are only known by the groups that name them: with a state that has the groups, their kinds
    are returned too.
    """
    if sources.cluster_api is None:
        return frozenset()
    return needed_kinds(sources.cluster_api, {} if cluster is None else cluster.objects)


def node_groups(
    sources: NodeGroupSources, cluster: ClusterState, now: float, plugin: PluginReading | None = None
) -> NodeGroups:
    """Return the groups of all sources, and what is wrong with them.

    `now` is in seconds since the Unix epoch. `plugin` is what the plugin has last stated; None where there is none.
    A node that two groups claim belongs to the first, in the order static, clusterAPI, byLabel, plugin, and of static
    groups in the order of the file. The other group takes no part, since its size would be taken for too small.
    """
    world = world_of(cluster, now)
    if isinstance(world, Unknown):
        return NodeGroups(problems=(f"node groups are not known: {world.reason}",))
    found = tuple(_sources(sources, cluster, world, plugin))
    problems = [*world.problems, *(problem for each in found for problem in each.problems)]
    groups: dict[str, NodeGroup] = {}
    group_of: dict[str, str] = {}
    for group in (group for each in found for group in each.groups):
        if group.name in groups:
            problems.append(f"two node groups are named {group.name}: the second one is left out: rename one of them")
            continue
        claimed = _claimed(group, group_of)
        groups[group.name] = replace(group, problem=group.problem or claimed)
        for node in group.nodes:
            group_of.setdefault(node, group.name)
        if claimed:
            problems.append(f"node group {group.name}: {claimed}")
    return NodeGroups(tuple(groups[name] for name in sorted(groups)), group_of, tuple(problems))


def _sources(
    sources: NodeGroupSources, cluster: ClusterState, world: DiscoveryFacts, plugin: PluginReading | None
) -> Iterator[Discovered]:
    seen = cluster_autoscaler(cluster, world.now)
    known = None if isinstance(seen, Unknown) else seen
    yield static_groups(sources.static, world, known)
    if sources.cluster_api is not None:
        yield cluster_api_groups(sources.cluster_api, world, seen)
    if sources.by_label is not None:
        yield label_groups(sources.by_label, world, known)
    if plugin is not None:
        yield plugin_groups(plugin, world, known)


def _claimed(group: NodeGroup, group_of: dict[str, str]) -> str:
    """Return what is wrong if nodes of a group belong to a former one; empty if none does."""
    taken = [node for node in group.nodes if node in group_of]
    if not taken:
        return ""
    others = ", ".join(sorted({group_of[node] for node in taken}))
    more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
    return f"node {taken[0]}{more} already belongs to {others}: each node may belong to one group alone"
