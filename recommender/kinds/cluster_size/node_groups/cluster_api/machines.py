"""Determines which nodes belong to which group: by Machines and their owners, and by the lists of MachinePools."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.cluster.values.pod_owners import is_same_object
from recommender.kinds.cluster_size.node_groups.fields import items, section, text
from recommender.kinds.cluster_size.node_groups.fields import object_text as named_object
from recommender.kinds.cluster_size.node_groups.watched_kinds import CLUSTER_API_GROUP, SCALABLE_RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adapter.foundation.cluster.values.state import ClusterNode, JsonObject


Owned: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""

_DEPLOYMENT_LABEL: Final = f"{CLUSTER_API_GROUP}/deployment-name"


class ClaimProof(IntEnum):
    """The evidence for a claim."""

    STATED = 0
    """The Machine states the node's provider ID, or no object of Cluster API owns the Machine."""
    NAMED = 1
    """The Machine's status, written by Cluster API's controller, names the node, and an object of Cluster API owns the
    Machine."""
    OWNED = 2
    """As with `NAMED`, and that owner exists: a MachineSet or MachinePool with the UID that the reference names."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One object that claims a node."""

    by: Owned
    """The owner whose number of nodes includes the node if the claim holds."""
    named: str
    """How messages name the object that claims the node, such as `Machine capi/workers-x7`."""
    proof: ClaimProof
    machine: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """The owner of a node."""

    claims: tuple[Claim, ...]
    """The claims of the node's owner; none if it is not clear who owns it."""
    refused: tuple[Claim, ...]
    """The other claims."""


def owners_of_nodes(claims: Mapping[str, Sequence[Claim]]) -> dict[str, Settled]:
    """Return the owner of each node: the one with the best proof, or nobody if two have the same proof.

    Proof is needed, since whoever can create Machines can name any node in one.
    """
    found = {}
    for node, stated in claims.items():
        best = max(claim.proof for claim in stated)
        owners = {claim.by for claim in stated if claim.proof is best}
        owner = owners.pop() if len(owners) == 1 else None
        found[node] = Settled(
            tuple(claim for claim in stated if claim.by == owner), tuple(claim for claim in stated if claim.by != owner)
        )
    return found


@dataclass(slots=True)
class Members:
    """The Machines and nodes of one group."""

    machines: list[JsonObject] = field(default_factory=list)
    """All Machines, including those without a node, but not those of a MachinePool."""
    nodes: dict[str, JsonObject | None] = field(default_factory=dict)
    """The Machine of each node, by name; None if there is none, as in a MachinePool."""
    deleting: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    """Nodes that Machines name but this cluster does not have."""
    disputed: dict[str, str] = field(default_factory=dict)
    """Nodes that other groups also claim, each with the objects that claim it; such a node counts for no group."""
    refused: dict[str, str] = field(default_factory=dict)
    """Nodes that belong to another group although an object of this one claims them, each with a sentence."""


def controller_of(one: JsonObject) -> Owned | None:
    """Return the controlling owner of an object; None if no object of Cluster API controls it."""
    owner = _controller(one)
    if owner is None:
        return None
    return text(owner, "kind"), text(one, "metadata", "namespace"), text(owner, "name")


def _controller(one: JsonObject) -> JsonObject | None:
    for owner in items(one, "metadata", "ownerReferences"):
        if owner.get("controller") is not True:
            continue
        group = text(owner, "apiVersion").rpartition("/")[0]
        # Control planes have groups of their own, such as controlplane.cluster.x-k8s.io.
        is_other = text(owner, "kind") not in SCALABLE_RESOURCES and group.endswith(f".{CLUSTER_API_GROUP}")
        return owner if group == CLUSTER_API_GROUP or is_other else None
    return None


def identity_of(one: JsonObject) -> Owned:
    """Return kind, namespace and name of an object."""
    return text(one, "kind"), text(one, "metadata", "namespace"), text(one, "metadata", "name")


def members_of(
    machines: Iterable[JsonObject],
    machine_sets: Sequence[JsonObject],
    machine_pools: Sequence[JsonObject],
    nodes: Mapping[str, ClusterNode],
) -> dict[Owned, Members]:
    """Return the Machines and nodes by the object that determines how many there are.

    A Machine of a MachineSet counts for the MachineDeployment that owns the set; if the set is not listed, the Machine
    counts for the MachineDeployment that its label names. Nodes are found by `status.nodeRef`, else by
    `spec.providerID`. A node that several groups claim belongs to the one for which Cluster API's own controllers have
    recorded it.
    """
    listed = {identity_of(one): text(one, "metadata", "uid") for one in (*machine_sets, *machine_pools)}
    deployment_of = {
        identity_of(one): owner
        for one in machine_sets
        if (owner := controller_of(one)) is not None and owner[0] == "MachineDeployment"
    }
    by_provider = {_same_case(node.provider_id): node.name for node in nodes.values() if node.provider_id}
    found: dict[Owned, Members] = {}
    claims: dict[str, list[Claim]] = {}
    for machine in machines:
        owner = controller_of(machine)
        if owner is None:
            continue
        by = owner
        if owner[0] == "MachineSet" and owner not in listed:
            by = _labelled_owner(machine) or owner
        by = deployment_of.get(by, by)
        members = found.setdefault(by, Members())
        members.machines.append(machine)
        named = text(machine, "status", "nodeRef", "name")
        name = _node_of(named, text(machine, "spec", "providerID"), nodes, by_provider)
        if name:
            proof = _proof(machine, owner, listed) if name == named else ClaimProof.STATED
            claims.setdefault(name, []).append(Claim(by, named_object(machine), proof, machine))
        elif named:
            members.foreign.add(named)
    for pool in machine_pools:
        _add_pool(found.setdefault(identity_of(pool), Members()), pool, claims, nodes, by_provider)
    _settle(found, claims)
    return found


def _proof(machine: JsonObject, owner: Owned, listed: Mapping[Owned, str]) -> ClaimProof:
    stated = _controller(machine) or {}
    exists = owner in listed and is_same_object(text(stated, "uid"), listed[owner])
    return ClaimProof.OWNED if exists else ClaimProof.STATED if owner[0] in SCALABLE_RESOURCES else ClaimProof.NAMED


def _settle(found: dict[Owned, Members], claims: Mapping[str, Sequence[Claim]]) -> None:
    """Assign each node to the members that it belongs to, and record the other claims."""
    for node, result in owners_of_nodes(claims).items():
        for claim in result.claims:
            members = found[claim.by]
            members.nodes[node] = claim.machine if claim.machine is not None else members.nodes.get(node)
            if claim.machine is not None and text(claim.machine, "metadata", "deletionTimestamp"):
                members.deleting.add(node)
        everybody = ", ".join(sorted({claim.named for claim in result.refused}))
        for claim in result.refused:
            if result.claims:
                found[claim.by].refused[node] = (
                    f"{claim.named} claims the node {node}, which belongs to {'/'.join(result.claims[0].by)}: it does "
                    "not count"
                )
            else:
                found[claim.by].disputed[node] = everybody


def _labelled_owner(machine: JsonObject) -> Owned | None:
    name = text(machine, "metadata", "labels", _DEPLOYMENT_LABEL)
    return ("MachineDeployment", text(machine, "metadata", "namespace"), name) if name else None


def _add_pool(
    members: Members,
    pool: JsonObject,
    claims: dict[str, list[Claim]],
    nodes: Mapping[str, ClusterNode],
    by_provider: Mapping[str, str],
) -> None:
    by, named = identity_of(pool), named_object(pool)
    for reference in items(pool, "status", "nodeRefs"):
        name = text(reference, "name")
        if name in nodes:
            claims.setdefault(name, []).append(Claim(by, named, ClaimProof.OWNED))
        elif name:
            members.foreign.add(name)
    listed = section(pool, "spec").get("providerIDList")
    for provider_id in listed if isinstance(listed, list) else ():
        if isinstance(provider_id, str) and _same_case(provider_id) in by_provider:
            claims.setdefault(by_provider[_same_case(provider_id)], []).append(Claim(by, named, ClaimProof.STATED))


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
    """Return a provider ID in the form that is compared: Azure's differ in case between the Machine and the node."""
    return provider_id.lower()
