"""Turns the groups of a plugin into node groups."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.objects.grouping import group_values
from adapter.foundation.reports.counts import first_names
from adapter.foundation.sources.kubernetes.errors import trim_message
from recommender.kinds.cluster_size.model.groups import NodeGroup
from recommender.kinds.cluster_size.model.taints import is_leaving
from recommender.kinds.cluster_size.node_groups.discovery_facts import NO_TEMPLATE, Discovered
from recommender.kinds.cluster_size.node_groups.machines_without_nodes import compare_machines
from recommender.kinds.cluster_size.node_groups.other_autoscalers import karpenter_of
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState
from recommender.kinds.cluster_size.node_groups.templates import stated_node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.groups import ProviderReference
    from recommender.kinds.cluster_size.node_groups.discovery_facts import DiscoveryFacts
    from recommender.kinds.cluster_size.node_groups.machines_without_nodes import MachineComparison
    from recommender.kinds.cluster_size.node_groups.other_autoscalers import SeenAutoscaler
    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup, PluginReading


def plugin_groups(
    reading: PluginReading,
    facts: DiscoveryFacts,
    seen: SeenAutoscaler | Unknown | None,
    written: ProviderReference | None,
) -> Discovered:
    """Return the groups of a plugin; none, with the problem, if it has not answered.

    `written` is the provider through which their sizes are written; None if they are only recommended.
    """
    if reading.problem:
        return Discovered(problems=(f"the node groups of {reading.shown} are left out: {reading.problem}",))
    members = group_values((group, node) for node, group in reading.group_of.items() if node in facts.nodes)
    compared = compare_machines(reading, facts.nodes, facts.nodes_problem)
    groups = [
        _with_writer(
            _group(one, tuple(members.get(one.name, ())), facts, reading, compared),
            facts,
            seen,
            written if one.has_writes else None,
        )
        for one in reading.groups
    ]
    lacking = [one.name for one in reading.groups if written is not None and not (one.has_writes or one.problem)]
    kept = f"the node groups of {reading.shown} are those of its last answer: {reading.kept_because}"
    problems = [kept] if reading.kept_because else []
    for why in sorted(set(reading.kept.values())):
        names = sorted(name for name, its in reading.kept.items() if its == why)
        verb = "counts with its last answer" if len(names) == 1 else "count with their last answers"
        problems.append(f"{first_names(names)} of {reading.shown} {verb}: {why}")
    if lacking:
        problems.append(
            f"{', '.join(lacking)} of {reading.shown} cannot be written, since increase_size, decrease_target_size or "
            "delete_nodes is missing: add them, or remove `writes`"
        )
    return Discovered(tuple(groups), tuple(problems))


def _with_writer(
    group: NodeGroup, facts: DiscoveryFacts, seen: SeenAutoscaler | Unknown | None, written: ProviderReference | None
) -> NodeGroup:
    """Return the group with the provider that its size is written through, and with any autoscaler that manages it."""
    karpenter = karpenter_of(group.nodes, facts.nodes)
    if isinstance(seen, Unknown):
        unknown = f"it is not known whether a Cluster Autoscaler manages it: {seen.reason}" if written else ""
        return replace(group, provider=written, autoscaler=karpenter, paused=unknown)
    other = seen.name if seen is not None and seen.has(group.name) else ""
    return replace(group, provider=written, autoscaler=karpenter or other)


def _group(
    one: PluginGroup,
    members: tuple[str, ...],
    facts: DiscoveryFacts,
    reading: PluginReading,
    compared: MachineComparison,
) -> NodeGroup:
    nodes = [facts.nodes[name] for name in members]
    stated = None if one.template is None else _template_node(one.name, one.template)
    template = facts.template(one.name, members, stated, f"template of {reading.shown}")
    going = {each.provider_id for each in one.instances if each.state is InstanceState.DELETING}
    kept = reading.kept_because or reading.kept.get(one.name, "")
    group = NodeGroup(
        name=one.name,
        min_size=one.min_size,
        max_size=one.max_size,
        target_size=one.target_size,
        nodes=members,
        template=template,
        price=one.price,
        options=one.options,
        gpu_label=one.gpu_label,
        failures=_failures(one, nodes),
        deleting=tuple(node.name for node in nodes if is_leaving(node) or node.provider_id in going),
        problem=one.problem or ("" if template else NO_TEMPLATE),
    )
    return compared.with_machines(group, one, nodes, kept)


def _failures(one: PluginGroup, nodes: Iterable[ClusterNode]) -> tuple[str, ...]:
    """Return why machines cannot be made, without those that are nodes all the same."""
    known = {node.provider_id for node in nodes}
    return tuple(
        trim_message(each.error)
        for each in one.instances
        if each.error and each.state is InstanceState.CREATING and each.provider_id not in known
    )


def _template_node(group: str, node: ClusterNode) -> ClusterNode:
    """Return the node of a plugin's template. Without allocatable amounts, its capacity counts."""
    return stated_node(group, {**node.capacity, **node.allocatable}, node.labels, node.taints, node.capacity)
