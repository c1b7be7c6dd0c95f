"""Which nodes belong to which group: by Machines and their owners, and by the lists of MachinePools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from recommender.cluster_size.node_groups.fields import items, section, text
from recommender.cluster_size.node_groups.kinds import CLUSTER_API_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.cluster.state import ClusterNode, JsonObject

_DEPLOYMENT_LABEL: Final = f"{CLUSTER_API_GROUP}/deployment-name"

Owned: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""


@dataclass(slots=True)
class Members:
    """What stands behind one group."""

    nodes: dict[str, JsonObject | None] = field(default_factory=dict)
    """By name, the Machine of each; None if there is none, as in a MachinePool."""
    deleting: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    """Nodes that are named and that this cluster does not have."""


def controller_of(one: JsonObject) -> Owned | None:
    """Return the controlling owner of an object; None if it has none."""
    for owner in items(one, "metadata", "ownerReferences"):
        if owner.get("controller") is True:
            return text(owner, "kind"), text(one, "metadata", "namespace"), text(owner, "name")
    return None


def identity_of(one: JsonObject) -> Owned:
    """Return kind, namespace and name of an object."""
    return text(one, "kind"), text(one, "metadata", "namespace"), text(one, "metadata", "name")


def members_of(
    machines: Iterable[JsonObject],
    machine_sets: Sequence[JsonObject],
    machine_pools: Iterable[JsonObject],
    nodes: Mapping[str, ClusterNode],
) -> dict[Owned, Members]:
    """Return the nodes by the object that decides about their number.

    A Machine of a MachineSet counts for the MachineDeployment that owns the set; of a set that is not listed, for the
    one that its label names. Nodes are found by `status.nodeRef`, else by `spec.providerID`.
    """
    listed = {identity_of(one) for one in machine_sets}
    deployment_of = {
        identity_of(one): owner
        for one in machine_sets
        if (owner := controller_of(one)) is not None and owner[0] == "MachineDeployment"
    }
    by_provider = {_same_case(node.provider_id): node.name for node in nodes.values() if node.provider_id}
    found: dict[Owned, Members] = {}
    for machine in machines:
        owner = controller_of(machine)
        if owner is None:
            continue
        if owner[0] == "MachineSet" and owner not in listed:
            owner = _labelled(machine) or owner
        members = found.setdefault(deployment_of.get(owner, owner), Members())
        named = text(machine, "status", "nodeRef", "name")
        name = _node_of(named, text(machine, "spec", "providerID"), nodes, by_provider)
        if name:
            members.nodes[name] = machine
            if text(machine, "metadata", "deletionTimestamp"):
                members.deleting.add(name)
        elif named:
            members.foreign.add(named)
    for pool in machine_pools:
        _add_pool(found.setdefault(identity_of(pool), Members()), pool, nodes, by_provider)
    return found


def _labelled(machine: JsonObject) -> Owned | None:
    name = text(machine, "metadata", "labels", _DEPLOYMENT_LABEL)
    return ("MachineDeployment", text(machine, "metadata", "namespace"), name) if name else None


def _add_pool(
    members: Members, pool: JsonObject, nodes: Mapping[str, ClusterNode], by_provider: Mapping[str, str]
) -> None:
    for reference in items(pool, "status", "nodeRefs"):
        name = text(reference, "name")
        if name in nodes:
            members.nodes.setdefault(name, None)
        elif name:
            members.foreign.add(name)
    listed = section(pool, "spec").get("providerIDList")
    for provider_id in listed if isinstance(listed, list) else ():
        if isinstance(provider_id, str) and _same_case(provider_id) in by_provider:
            members.nodes.setdefault(by_provider[_same_case(provider_id)], None)


def _node_of(named: str, provider_id: str, nodes: Mapping[str, ClusterNode], by_provider: Mapping[str, str]) -> str:
    """Return the name of a Machine's node in this cluster; empty if it has none here.

    A management cluster also has Machines of other clusters, whose nodes may have the same names.
    """
    node = nodes.get(named)
    if node is not None and "" in {provider_id, node.provider_id}:
        return named
    if node is not None and _same_case(provider_id) == _same_case(node.provider_id):
        return named
    return by_provider.get(_same_case(provider_id), "") if provider_id else ""


def _same_case(provider_id: str) -> str:
    """Return a provider ID as it is compared: Azure's differ in case between the Machine and the node."""
    return provider_id.lower()
