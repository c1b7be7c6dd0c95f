"""Discovers all node groups at one moment, from all sources, and the group of each node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.node_counts import matching_nodes
from adapter.foundation.cluster.values.state import Taint, Unknown
from adapter.foundation.objects.grouping import group_values
from adapter.foundation.reports.counts import count_of
from recommender.kinds.cluster_size.model.groups import (
    MOST_NODES,
    GroupOptions,
    NodeGroup,
    NodeGroups,
    ProviderReference,
    size_problem,
)
from recommender.kinds.cluster_size.model.size_settings import EXTERNAL_GRPC, provider_name
from recommender.kinds.cluster_size.model.taints import is_leaving
from recommender.kinds.cluster_size.node_groups.cluster_api.groups import cluster_api_groups, needed_kinds
from recommender.kinds.cluster_size.node_groups.discovery_facts import NO_TEMPLATE, Discovered, discovery_facts_of
from recommender.kinds.cluster_size.node_groups.other_autoscalers import (
    autoscaler_kinds,
    cluster_autoscaler,
    karpenter_of,
)
from recommender.kinds.cluster_size.node_groups.plugin_groups import plugin_groups
from recommender.kinds.cluster_size.node_groups.templates import NO_TAINTS, labels_of_selector, quantity_of, stated_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, ClusterState, ObjectKind
    from recommender.kinds.cluster_size.model.size_settings import LabelGroups, NodeGroupSources, StaticGroup
    from recommender.kinds.cluster_size.model.taints import PassingTaints
    from recommender.kinds.cluster_size.node_groups.discovery_facts import DiscoveryFacts
    from recommender.kinds.cluster_size.node_groups.other_autoscalers import SeenAutoscaler
    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginReading


def _static_groups(stated: Iterable[StaticGroup], facts: DiscoveryFacts, seen: SeenAutoscaler | None) -> Discovered:
    """Return the groups of the configuration. The target size of each is the number of its nodes."""
    groups, problems = [], []
    for one in stated:
        members = tuple(node.name for node in matching_nodes(facts.nodes.values(), one.selector))
        node = _node_of_template(one)
        if node is not None and not one.selector.matches(node.labels):
            problems.append(
                f"node group {one.name}: its template does not have the labels that its selector {one.selector} asks "
                "for, so new nodes may not belong to it: add them to template.labels"
            )
        template = (
            facts.template(one.name, members, None, "")
            if node is None
            else facts.stated_template(node, "configuration")
        )
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
                autoscaler=karpenter_of(members, facts.nodes) or _autoscaler_in_charge(seen, one.name),
                deleting=tuple(name for name in members if is_leaving(facts.nodes[name])),
                problem="" if template else f"{NO_TEMPLATE}: write template.cpu and template.memory",
            )
        )
    return Discovered(tuple(groups), tuple(problems))


def _autoscaler_in_charge(seen: SeenAutoscaler | None, group: str) -> str:
    return seen.name if seen is not None and seen.has(group) else ""


def _node_of_template(group: StaticGroup) -> ClusterNode | None:
    if group.capacity is None:
        return None
    capacity = {resource: quantity_of(resource, amount) for resource, amount in group.capacity.items()}
    labels = labels_of_selector(group.selector) | dict(group.labels)
    return stated_node(group.name, capacity, labels, (Taint(*taint) for taint in group.taints))


_UNKNOWN_AUTOSCALER: Final = "the autoscaler of the cloud (byLabel)"


def label_groups(stated: LabelGroups, facts: DiscoveryFacts, seen: SeenAutoscaler | None) -> Discovered:
    """Return a group for each value of the label.

    Each group is named after its value; its target size is the number of its nodes.
    """
    labelled = ((node.labels.get(stated.key), name) for name, node in facts.nodes.items())
    members = group_values((value, name) for value, name in labelled if value)
    groups = []
    for value, names in members.items():
        template = facts.template(value, names, None, "")
        groups.append(
            NodeGroup(
                name=value,
                min_size=stated.min_size,
                max_size=stated.max_size,
                target_size=len(names),
                nodes=tuple(names),
                template=template,
                price=stated.prices.get(value),
                autoscaler=karpenter_of(names, facts.nodes) or (seen.name if seen else _UNKNOWN_AUTOSCALER),
                deleting=tuple(name for name in names if is_leaving(facts.nodes[name])),
                problem="" if template else NO_TEMPLATE,
            )
        )
    without = f"byLabel: no node has the label {stated.key}, so there is no node group: check the key"
    return Discovered(tuple(groups), () if groups else (without,))


def object_kinds(sources: NodeGroupSources, cluster: ClusterState | None = None) -> frozenset[ObjectKind]:
    """Return the kinds of objects that are needed with all their fields.

    The kinds of infrastructure templates are known only from the groups that name them: they are returned too if
    `cluster` has the groups.
    """
    if not sources.are_written:
        return frozenset()
    autoscalers = autoscaler_kinds(sources.autoscaler_namespaces)
    if sources.cluster_api is None:
        return autoscalers
    objects = {} if cluster is None else cluster.objects
    return needed_kinds(sources.cluster_api, objects) | autoscalers


def node_groups(
    sources: NodeGroupSources,
    cluster: ClusterState,
    now: float,
    providers: Sequence[PluginReading] = (),
    passing: PassingTaints = NO_TAINTS,
) -> NodeGroups:
    """Return the groups of all sources, and their problems.

    `now` is in Unix seconds. `providers` are the statements of the gRPC provider and of the plugin.
    `passing` are the taints that no template has. A node that two groups claim belongs to the first, in the order
    static, clusterAPI, externalGRPC, byLabel, plugin, and of static groups in the order of the file. The other group is
    left out, since its size would appear too small.
    """
    facts = discovery_facts_of(cluster, sources.daemon_sets, now, passing)
    if isinstance(facts, Unknown):
        return NodeGroups(problems=(f"node groups are not known: {facts.reason}",))
    found = tuple(_sources(sources, cluster, facts, {each.provider: each for each in providers}))
    problems = [*facts.problems, *(problem for each in found for problem in each.problems)]
    groups: dict[str, NodeGroup] = {}
    group_of: dict[str, str] = {}
    for group in (group for each in found for group in each.groups):
        if group.name in groups:
            problems.append(f"two node groups are named {group.name}: the second one is left out: rename one of them")
            continue
        claimed = _claim_problem(group, group_of)
        impossible = size_problem(group.target_size, min(group.min_size, group.max_size))
        groups[group.name] = replace(group, problem=group.problem or impossible or claimed)
        for node in group.nodes:
            group_of.setdefault(node, group.name)
        if claimed:
            problems.append(f"node group {group.name}: {claimed}")
    ordered = tuple(_within_bound([groups[name] for name in sorted(groups)]))
    if not ordered and not problems:
        problems.append("no source under nodeGroups has a node group: check their namespaces and labels")
    problems += _unmatched_selectors(sources, groups, len(facts.nodes.keys() - group_of.keys()))
    created = {name: node.created for name, node in facts.nodes.items() if node.created is not None}
    return NodeGroups(ordered, group_of, (*problems, *_greedy_daemon_sets(ordered, sources)), created)


def _unmatched_selectors(sources: NodeGroupSources, groups: Mapping[str, NodeGroup], outside: int) -> Iterator[str]:
    """Yield the selectors that match no node while some nodes are outside groups; else an empty group is normal."""
    for one in sources.static if outside else ():
        if not groups[one.name].nodes:
            yield (
                f"node group {one.name}: its selector {one.selector} matches no node, so it counts as empty "
                f"(nodes without a group: {outside}): correct the selector if it should match them"
            )


def _greedy_daemon_sets(groups: Iterable[NodeGroup], sources: NodeGroupSources) -> Iterator[str]:
    """Yield the DaemonSets that do not count on new nodes, since they request more than their namespace's share."""
    found = group_values(
        (daemon_set, (group.name, what))
        for group in groups
        for daemon_set, what in (group.template.left_out if group.template else {}).items()
    )
    share = f"{100 * sources.daemon_sets.share_ratio:g}%"
    for daemon_set, places in sorted(found.items()):
        group_name, what = places[0]
        more = f" and of {count_of(len(places) - 1, 'more group')}" if len(places) > 1 else ""
        yield (
            f"{daemon_set} is not counted on new nodes: the DaemonSets of its namespace would take {what} of a new "
            f"node of {group_name}{more}, and {share} is allowed: lower its requests, or add its namespace "
            "to daemonSets.namespaces"
        )


def _sources(
    sources: NodeGroupSources, cluster: ClusterState, facts: DiscoveryFacts, providers: Mapping[str, PluginReading]
) -> Iterator[Discovered]:
    seen = cluster_autoscaler(cluster, sources.autoscaler_namespaces, facts.now)
    known = None if isinstance(seen, Unknown) else seen
    yield _static_groups(sources.static, facts, known)
    if sources.cluster_api is not None:
        yield cluster_api_groups(sources.cluster_api, facts, seen)
    external = providers.get(EXTERNAL_GRPC)
    if sources.external_grpc is not None and external is not None:
        written_by = ProviderReference(EXTERNAL_GRPC, sources.external_grpc.delete_nodes)
        yield plugin_groups(external, facts, seen, written_by)
    if sources.by_label is not None:
        yield label_groups(sources.by_label, facts, known)
    stated = sources.plugin
    reading = None if stated is None else providers.get(provider_name(stated))
    if stated is not None and reading is not None:
        written = ProviderReference(reading.provider, stated.delete_nodes) if stated.writes else None
        yield plugin_groups(reading, facts, seen, written)


def _within_bound(groups: Sequence[NodeGroup]) -> Iterator[NodeGroup]:
    """Yield the groups; if too many nodes are missing in total, the groups that lack the most have a problem."""
    missing = {group.name: _missing_nodes(group) for group in groups if not group.problem}
    total, beyond = 0, set()
    for name in sorted(missing, key=lambda name: (missing[name], name)):
        total += missing[name]
        if total > MOST_NODES:
            beyond.add(name)
    for group in groups:
        if group.name in beyond:
            problem = (
                f"{missing[group.name]} of its nodes do not exist yet, and all node groups together may miss no more "
                f"than {MOST_NODES} nodes: correct its size or its minimum"
            )
            yield replace(group, problem=problem)
        else:
            yield group


def _missing_nodes(group: NodeGroup) -> int:
    return max(0, max(group.target_size, min(group.min_size, group.max_size)) - len(group.nodes))


def _claim_problem(group: NodeGroup, group_of: dict[str, str]) -> str:
    """Return the problem if nodes of a group belong to an earlier one; empty if no node does."""
    taken = [node for node in group.nodes if node in group_of]
    if not taken:
        return ""
    others = ", ".join(sorted({group_of[node] for node in taken}))
    more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
    return f"node {taken[0]}{more} already belongs to {others}: each node may belong to only one group"
