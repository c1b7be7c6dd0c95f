"""Turns the objects of Cluster API into node groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Unknown
from recommender.kinds.cluster_size.model.groups import NodeGroup
from recommender.kinds.cluster_size.node_groups import watched_kinds as kinds
from recommender.kinds.cluster_size.node_groups.cluster_api.capacity import (
    CPU_ANNOTATION,
    MEMORY_ANNOTATION,
    infrastructure_of,
    node_from_zero,
    states_capacity,
)
from recommender.kinds.cluster_size.node_groups.cluster_api.machines import (
    Members,
    controller_of,
    identity_of,
    members_of,
)
from recommender.kinds.cluster_size.node_groups.cluster_api.options import options_of
from recommender.kinds.cluster_size.node_groups.cluster_api.removals import DELETE_MARK
from recommender.kinds.cluster_size.node_groups.cluster_api.scalables import (
    ScalableError,
    bounds_of,
    cluster_of,
    group_name,
    is_opted_in,
    reference_of,
    size_managers,
    target_size,
    write_problem,
)
from recommender.kinds.cluster_size.node_groups.discovery_facts import NO_TEMPLATE, Discovered
from recommender.kinds.cluster_size.node_groups.fields import section, text
from recommender.kinds.cluster_size.node_groups.other_autoscalers import karpenter_of, writing_autoscaler
from recommender.kinds.cluster_size.node_groups.watched_kinds import objects_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode, JsonObject, ObjectKind
    from recommender.decisions.record import TargetReference
    from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups
    from recommender.kinds.cluster_size.node_groups.cluster_api.machines import Owned
    from recommender.kinds.cluster_size.node_groups.discovery_facts import DiscoveryFacts
    from recommender.kinds.cluster_size.node_groups.other_autoscalers import SeenAutoscaler
    from recommender.kinds.cluster_size.node_groups.watched_kinds import Objects


@dataclass(frozen=True, slots=True)
class _Read:
    """The objects that are read from Cluster API."""

    scalables: tuple[JsonObject, ...]
    members: Mapping[Owned, Members]
    machines_missing: Mapping[str, str]
    """Why Machines are not known, by namespace; namespaces where they are known are absent."""
    clusters: Mapping[tuple[str, str], JsonObject]
    """The Clusters, by namespace and name."""
    clusters_missing: Mapping[str, str]
    """Why Clusters are not known, by namespace."""
    problems: tuple[str, ...]


def needed_kinds(stated: ClusterApiGroups, objects: Objects) -> frozenset[ObjectKind]:
    """Return the kinds that are needed: those of Cluster API, and the infrastructure templates that groups name.

    Templates are read for groups whose annotations do not state a capacity. Their kinds are known only once the groups
    are.
    """
    scalables = [each for kind in kinds.SCALABLE_RESOURCES for each in kinds.scalable_kinds(kind, stated)]
    found = {*scalables, *kinds.machines(stated), *kinds.clusters(stated)}
    for one in objects_of(objects, *scalables):
        reference = infrastructure_of(one)
        if reference is not None and _is_group(one, stated) and not states_capacity(one):
            found.add(kinds.infrastructure(reference.api_group, reference.kind, text(one, "metadata", "namespace")))
    return frozenset(found)


def cluster_api_groups(
    stated: ClusterApiGroups, facts: DiscoveryFacts, seen: SeenAutoscaler | Unknown | None
) -> Discovered:
    """Return the groups of the annotated objects; groups that depend on a kind that cannot be read are left out."""
    read = _read(stated, facts)
    problems = list(read.problems)
    groups = []
    for one in read.scalables:
        options, wrong = options_of(one)
        problems.extend(wrong)
        problems.extend(read.members.get(identity_of(one), Members()).refused.values())
        found = replace(_group(one, read, stated, facts), options=options)
        groups.append(_with_autoscaler(found, seen, facts))
    return Discovered(tuple(groups), tuple(problems))


def may_be_group(target: TargetReference, stated: ClusterApiGroups, objects: Objects) -> bool:
    """Return whether an object of Cluster API is a node group; also True while it is not known."""
    if target.kind not in kinds.SCALABLE_RESOURCES or target.namespace not in stated.namespaces:
        return False
    wanted = [kind for kind in kinds.scalable_kinds(target.kind, stated) if kind.namespace == target.namespace]
    if any(isinstance(objects.get(kind), Unknown) for kind in wanted):
        return True
    found = (one for one in objects_of(objects, *wanted) if text(one, "metadata", "name") == target.name)
    return any(_is_group(one, stated) for one in found)


def _is_group(one: JsonObject, stated: ClusterApiGroups) -> bool:
    """Return whether an object is a requested node group; a MachineSet of a MachineDeployment is only a part of one."""
    owner = controller_of(one)
    if not is_opted_in(one) or (owner is not None and owner[0] == "MachineDeployment"):
        return False
    is_in_place = text(one, "metadata", "namespace") in stated.namespaces
    return is_in_place and stated.cluster_name in {"", cluster_of(one)}


def _read(stated: ClusterApiGroups, facts: DiscoveryFacts) -> _Read:
    problems: list[str] = []
    scalables: list[JsonObject] = []
    for kind in kinds.SCALABLE_RESOURCES:
        found, missing = _list_objects(kinds.scalable_kinds(kind, stated), facts)
        scalables.extend(one for one in found if _is_group(one, stated))
        problems += [
            f"the {kind}s of Cluster API in {namespace} are not known, so none is a node group: {reason}"
            for namespace, reason in missing.items()
        ]
    machines, machines_missing = _list_objects(kinds.machines(stated), facts)
    clusters, clusters_missing = _list_objects(kinds.clusters(stated), facts)
    pools = [one for one in scalables if text(one, "kind") == "MachinePool"]
    sets = objects_of(facts.objects, *kinds.scalable_kinds("MachineSet", stated))
    return _Read(
        tuple(scalables),
        members_of(machines, sets, pools, facts.nodes),
        machines_missing,
        {identity_of(one)[1:]: one for one in clusters},
        clusters_missing,
        tuple(problems),
    )


def _list_objects(wanted: Iterable[ObjectKind], facts: DiscoveryFacts) -> tuple[list[JsonObject], dict[str, str]]:
    """Return the objects of a kind in its namespaces, and why they are not known, by namespace."""
    found: list[JsonObject] = []
    missing = {}
    for kind in wanted:
        listed = facts.objects_of(kind)
        if isinstance(listed, Unknown):
            missing[kind.namespace] = listed.reason
        else:
            found.extend(listed)
    return found, missing


def _group(one: JsonObject, read: _Read, stated: ClusterApiGroups, facts: DiscoveryFacts) -> NodeGroup:
    name, members = group_name(one), read.members.get(identity_of(one), Members())
    group = NodeGroup(
        name=name,
        min_size=0,
        max_size=0,
        target_size=len(members.nodes),
        nodes=tuple(sorted(members.nodes)),
        price=stated.prices.get(name, stated.prices.get(text(one, "metadata", "name"))),
        scalable=reference_of(one),
        size_managers=size_managers(one),
        deleting=tuple(sorted(members.deleting)),
        paused=_pause_reason(one, read),
    )
    try:
        low, high = bounds_of(one)
        size = target_size(one, low, high)
        group = replace(
            group,
            min_size=low,
            max_size=high,
            target_size=size,
            deleting=tuple(sorted(members.deleting | _nodes_about_to_leave(members, size))),
        )
        node = _node_from_zero(one, facts)
        template = facts.template(name, group.nodes, node, "template of Cluster API")
    except ScalableError as error:
        return replace(group, problem=str(error))
    unknown = read.machines_missing.get(text(one, "metadata", "namespace"), "")
    if unknown and text(one, "kind") != "MachinePool":
        # Without them, all of its nodes would count as missing.
        return replace(group, template=template, problem=f"its Machines are not known: {unknown}")
    if members.disputed:
        node_name, claimants = min(members.disputed.items())
        disputed = f"the node {node_name} is claimed by {claimants}, and it is not known to which of them it belongs"
        return replace(group, template=template, problem=f"{disputed}: delete the Machine that is not its own")
    if members.foreign and not members.nodes:
        return replace(group, template=template, problem=_foreign_problem(min(members.foreign), stated, facts))
    missing = "" if template else f"{NO_TEMPLATE}: add the annotations {CPU_ANNOTATION} and {MEMORY_ANNOTATION}"
    return replace(group, template=template, problem=missing)


def _foreign_problem(node: str, stated: ClusterApiGroups, facts: DiscoveryFacts) -> str:
    """Return the problem of a group of whose Machines none has a node here. One of them names the given node."""
    if node in facts.nodes:
        return f"its Machines are nodes of another cluster, such as {node}: set clusterAPI.clusterName"
    other = "" if stated.cluster_name else ", or set clusterAPI.clusterName if they belong to another cluster"
    return f"its Machines have nodes that do not exist, such as {node}: delete Machines whose nodes are gone{other}"


def _nodes_about_to_leave(members: Members, size: int) -> set[str]:
    """Return the nodes with marked Machines if there are more nodes than the size: Cluster API is about to delete them.

    Unless the size is smaller, a mark only says which Machine is deleted first at some later time.
    """
    if len(members.nodes) - len(members.deleting) <= size:
        return set()
    return {
        name
        for name, machine in members.nodes.items()
        if machine is not None and DELETE_MARK in section(machine, "metadata", "annotations")
    }


def _node_from_zero(one: JsonObject, facts: DiscoveryFacts) -> ClusterNode | None:
    reference = infrastructure_of(one)
    template = None
    if reference is not None:
        kind = kinds.infrastructure(reference.api_group, reference.kind, text(one, "metadata", "namespace"))
        place = (reference.kind, reference.namespace, reference.name)
        template = next((each for each in objects_of(facts.objects, kind) if identity_of(each) == place), None)
    return node_from_zero(one, template)


def _pause_reason(one: JsonObject, read: _Read) -> str:
    namespace = text(one, "metadata", "namespace")
    if namespace in read.clusters_missing:
        unknown = f"it is not known whether its Cluster is paused: {read.clusters_missing[namespace]}"
        return write_problem(one, None) or unknown
    return write_problem(one, read.clusters.get((namespace, cluster_of(one))))


def _with_autoscaler(group: NodeGroup, seen: SeenAutoscaler | Unknown | None, facts: DiscoveryFacts) -> NodeGroup:
    """Name the autoscaler that manages the group.

    Cluster Autoscaler opts groups in by the same annotations. So it manages each such group, unless its published
    status names its groups and this one is not among them, such as when it works with a cloud's own groups.
    """
    known = karpenter_of(group.nodes, facts.nodes) or writing_autoscaler(group.size_managers, facts.now)
    if known:
        return replace(group, autoscaler=known)
    if isinstance(seen, Unknown):
        unknown = f"it is not known whether a Cluster Autoscaler manages it: {seen.reason}"
        return replace(group, paused=group.paused or unknown)
    return replace(group, autoscaler=seen.name) if seen is not None and seen.has(group.name) else group
