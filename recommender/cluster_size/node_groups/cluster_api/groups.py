"""From the objects of Cluster API to node groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.cluster.state import Unknown
from recommender.cluster_size.model.groups import NodeGroup
from recommender.cluster_size.node_groups import kinds
from recommender.cluster_size.node_groups.autoscalers import karpenter_of
from recommender.cluster_size.node_groups.cluster_api.capacity import (
    CPU_ANNOTATION,
    MEMORY_ANNOTATION,
    infrastructure_of,
    node_from_zero,
    states_capacity,
)
from recommender.cluster_size.node_groups.cluster_api.machines import (
    Members,
    controller_of,
    identity_of,
    members_of,
)
from recommender.cluster_size.node_groups.cluster_api.options import options_of
from recommender.cluster_size.node_groups.cluster_api.removals import DELETE_MARK
from recommender.cluster_size.node_groups.cluster_api.scalables import (
    ScalableError,
    bounds_of,
    cluster_of,
    group_name,
    is_opted_in,
    reference_of,
    target_size,
    write_problem,
)
from recommender.cluster_size.node_groups.fields import section, text
from recommender.cluster_size.node_groups.kinds import objects_of
from recommender.cluster_size.node_groups.world import NO_TEMPLATE, Discovered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.cluster.state import ClusterNode, JsonObject, ObjectKind
    from recommender.cluster_size.model.settings import ClusterApiGroups
    from recommender.cluster_size.node_groups.autoscalers import SeenAutoscaler
    from recommender.cluster_size.node_groups.cluster_api.machines import Owned
    from recommender.cluster_size.node_groups.kinds import Objects
    from recommender.cluster_size.node_groups.world import DiscoveryFacts


@dataclass(frozen=True, slots=True)
class _Read:
    """What is read of Cluster API."""

    scalables: tuple[JsonObject, ...]
    members: Mapping[Owned, Members]
    machines_missing: str
    """Why Machines are not known; empty if they are."""
    clusters: Mapping[tuple[str, str], JsonObject] | Unknown
    """By namespace and name."""
    problems: tuple[str, ...]


def needed_kinds(stated: ClusterApiGroups, objects: Objects) -> frozenset[ObjectKind]:
    """Return the kinds that are needed: those of Cluster API, and the infrastructure templates that groups name.

    Templates are read for groups whose annotations do not state a capacity. They are known once the groups are.
    """
    scalables = (kinds.scalable_kind(kind, stated) for kind in kinds.SCALABLE_RESOURCES)
    found = {*scalables, kinds.machines(stated), kinds.clusters(stated), kinds.STATUS_CONFIG_MAP}
    for kind in kinds.SCALABLE_RESOURCES:
        for one in objects_of(objects, kinds.scalable_kind(kind, stated)):
            reference = infrastructure_of(one)
            if reference is not None and _is_group(one, stated) and not states_capacity(one):
                found.add(kinds.infrastructure(reference.api_group, reference.kind, stated))
    return frozenset(found)


def cluster_api_groups(
    stated: ClusterApiGroups, world: DiscoveryFacts, seen: SeenAutoscaler | Unknown | None
) -> Discovered:
    """Return the groups of the annotated objects; a kind that cannot be read leaves out what depends on it."""
    read = _read(stated, world)
    problems = list(read.problems)
    groups = []
    for one in read.scalables:
        options, wrong = options_of(one)
        problems.extend(wrong)
        found = replace(_group(one, read, stated, world), options=options)
        groups.append(_with_autoscaler(found, seen, world))
    return Discovered(tuple(groups), tuple(problems))


def _is_group(one: JsonObject, stated: ClusterApiGroups) -> bool:
    """Whether an object is a node group that is asked for. A set of a MachineDeployment is part of that."""
    owner = controller_of(one)
    if not is_opted_in(one) or (owner is not None and owner[0] == "MachineDeployment"):
        return False
    is_in_place = stated.namespace in {"", text(one, "metadata", "namespace")}
    return is_in_place and stated.cluster_name in {"", cluster_of(one)}


def _read(stated: ClusterApiGroups, world: DiscoveryFacts) -> _Read:
    problems: list[str] = []
    scalables: list[JsonObject] = []
    for kind in kinds.SCALABLE_RESOURCES:
        listed = world.listed(kinds.scalable_kind(kind, stated))
        if isinstance(listed, Unknown):
            problems.append(f"the {kind}s of Cluster API are not known, so none is a node group: {listed.reason}")
        else:
            scalables.extend(one for one in listed if _is_group(one, stated))
    machines = world.listed(kinds.machines(stated))
    clusters = world.listed(kinds.clusters(stated))
    pools = [one for one in scalables if text(one, "kind") == "MachinePool"]
    sets = objects_of(world.objects, kinds.scalable_kind("MachineSet", stated))
    return _Read(
        tuple(scalables),
        members_of(() if isinstance(machines, Unknown) else machines, sets, pools, world.nodes),
        machines.reason if isinstance(machines, Unknown) else "",
        clusters if isinstance(clusters, Unknown) else {identity_of(one)[1:]: one for one in clusters},
        tuple(problems),
    )


def _group(one: JsonObject, read: _Read, stated: ClusterApiGroups, world: DiscoveryFacts) -> NodeGroup:
    name, members = group_name(one), read.members.get(identity_of(one), Members())
    group = NodeGroup(
        name=name,
        min_size=0,
        max_size=0,
        target_size=len(members.nodes),
        nodes=tuple(sorted(members.nodes)),
        price=stated.prices.get(name, stated.prices.get(text(one, "metadata", "name"))),
        scalable=reference_of(one),
        deleting=tuple(sorted(members.deleting)),
        paused=_paused(one, read),
    )
    try:
        bounds = bounds_of(one)
        size = target_size(one, bounds)
        group = replace(
            group,
            min_size=bounds.min_size,
            max_size=bounds.max_size,
            target_size=size,
            deleting=tuple(sorted(members.deleting | _leaving(members, size))),
        )
        node = _node_from_zero(one, stated, world)
        template = world.template(name, group.nodes, node, "template of Cluster API")
    except ScalableError as error:
        return replace(group, problem=str(error))
    if read.machines_missing and text(one, "kind") != "MachinePool":
        # Without them, all of its nodes would count as missing.
        return replace(group, template=template, problem=f"its Machines are not known: {read.machines_missing}")
    if members.foreign and not members.nodes:
        foreign = f"its Machines are nodes of another cluster, such as {min(members.foreign)}"
        return replace(group, template=template, problem=f"{foreign}: set clusterAPI.clusterName")
    missing = "" if template else f"{NO_TEMPLATE}: add the annotations {CPU_ANNOTATION} and {MEMORY_ANNOTATION}"
    return replace(group, template=template, problem=missing)


def _leaving(members: Members, size: int) -> set[str]:
    """Return nodes whose Machines are marked while there are more than the size: Cluster API is about to delete them.

    Without a smaller size, a mark says only which Machine goes first some day.
    """
    if len(members.nodes) - len(members.deleting) <= size:
        return set()
    return {
        name
        for name, machine in members.nodes.items()
        if machine is not None and DELETE_MARK in section(machine, "metadata", "annotations")
    }


def _node_from_zero(one: JsonObject, stated: ClusterApiGroups, world: DiscoveryFacts) -> ClusterNode | None:
    reference = infrastructure_of(one)
    template = None
    if reference is not None:
        kind = kinds.infrastructure(reference.api_group, reference.kind, stated)
        place = (reference.kind, reference.namespace, reference.name)
        template = next((each for each in objects_of(world.objects, kind) if identity_of(each) == place), None)
    return node_from_zero(one, template)


def _paused(one: JsonObject, read: _Read) -> str:
    if isinstance(read.clusters, Unknown):
        return write_problem(one, None) or f"whether its Cluster is paused is not known: {read.clusters.reason}"
    return write_problem(one, read.clusters.get((text(one, "metadata", "namespace"), cluster_of(one))))


def _with_autoscaler(group: NodeGroup, seen: SeenAutoscaler | Unknown | None, world: DiscoveryFacts) -> NodeGroup:
    """Name the autoscaler that has the group in its charge.

    Cluster Autoscaler opts groups in by the same annotations. So each is its group, unless what it publishes names its
    groups and this is not among them, as where it works with a cloud's own groups.
    """
    karpenter = karpenter_of(group.nodes, world.nodes)
    if karpenter:
        return replace(group, autoscaler=karpenter)
    if isinstance(seen, Unknown):
        unknown = f"whether a Cluster Autoscaler has it in its charge is not known: {seen.reason}"
        return replace(group, paused=group.paused or unknown)
    return replace(group, autoscaler=seen.name) if seen is not None and seen.has(group.name) else group
