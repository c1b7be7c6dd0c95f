"""Machines of Cluster API that claim nodes of another group do not affect it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups, NodeGroupSources
from recommender.kinds.cluster_size.node_groups.discover import object_kinds
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_groups import NAME, found, only
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import (
    MAX,
    MIN,
    machine,
    machines_of,
    owner,
    scalable,
)

if TYPE_CHECKING:
    from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import Json


def test_nodes_of_another_cluster_with_equal_names_are_not_assigned() -> None:
    owned, _ = machines_of("workers")
    other = machine("m1", "n1", owned_by=owner("MachineSet", "workers-x7f2k"), provider_id="aws:///b/i-9")
    group = only(found(scalable(), owned, other, nodes=(node("n1", provider_id="aws:///a/i-1"),)))
    assert group.nodes == ()
    assert group.problem == "its Machines are nodes of another cluster, such as n1: set clusterAPI.clusterName"


@pytest.mark.parametrize(
    ("cluster_name", "other"),
    [("", ", or set clusterAPI.clusterName if they belong to another cluster"), ("prod", "")],
)
def test_machines_with_deleted_nodes_are_not_taken_for_those_of_another_cluster(cluster_name: str, other: str) -> None:
    owned, machines = machines_of("workers", "n1")
    stated = ClusterApiGroups(("capi",), cluster_name)
    group = only(found(scalable(), owned, *machines, stated=stated, nodes=(node("n2"),)))
    gone = "its Machines have nodes that do not exist, such as n1: delete Machines whose nodes are gone"
    assert group.problem == f"{gone}{other}"


EVIL = {"annotations": {MIN: "0", MAX: "100"}}
PROVIDED = (node("n1", provider_id="aws:///a/i-1"), node("n2", provider_id="aws:///a/i-2"))


def evil(name: str = "m-evil", named: str = "", *, owned_by: list[Json] | None = None, namespace: str = "capi") -> Json:
    """Return a Machine that states the provider ID of n1, a node of another Machine."""
    made = machine(name, named, owned_by=owned_by or owner("MachineSet", "evil"), provider_id="aws:///a/i-1")
    made["metadata"]["namespace"] = namespace
    return made


ATTACKS = {
    "a Machine of a namespace that is not listed": evil("m-evil", "n1", namespace="evil"),
    "a Machine that states the provider ID": evil(),
    "a Machine whose owner is not of Cluster API": evil(
        owned_by=[{"apiVersion": "evil.io/v1", "kind": "MachineSet", "name": "evil", "controller": True}]
    ),
    "a Machine whose owner does not control it": evil(
        "m-evil", "n1", owned_by=[owner("MachineSet", "evil")[0] | {"controller": False}]
    ),
    "a Machine whose owner has another UID": evil(
        "m-evil", "n1", owned_by=[owner("MachineSet", "evil")[0] | {"uid": "made-up"}]
    ),
    "a Machine whose owner does not exist": evil("m-evil", "n1", owned_by=owner("MachineSet", "nobody")),
    "a Machine of a made-up control plane": evil(
        "m-evil", "n1", owned_by=[{"apiVersion": "x.cluster.x-k8s.io/v1", "kind": "X", "name": "x", "controller": True}]
    ),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_machine_that_claims_a_node_of_another_group_does_not_affect_that_group(attack: Json) -> None:
    owned, machines = machines_of("workers", "n1")
    machines[0]["spec"]["providerID"] = "aws:///a/i-1"
    groups = found(
        scalable(),
        owned,
        scalable("evil", 1, kind="MachineSet", annotations=EVIL["annotations"]),
        attack,
        *machines,
        nodes=PROVIDED,
    )
    theirs, ours = sorted(groups.groups, key=lambda group: "evil" not in group.name)
    assert (ours.nodes, ours.problem, groups.group_of) == (("n1",), "", {"n1": NAME})
    assert theirs.nodes == ()


def test_a_claim_that_does_not_count_is_reported() -> None:
    owned, machines = machines_of("workers", "n1")
    machines[0]["spec"]["providerID"] = "aws:///a/i-1"
    theirs = scalable("evil", 1, kind="MachineSet", annotations=EVIL["annotations"])
    groups = found(scalable(), owned, theirs, evil(), *machines, nodes=PROVIDED)
    (problem,) = groups.problems
    assert problem == f"Machine capi/m-evil claims the node n1, which belongs to {NAME}: it does not count"


def test_a_node_claimed_equally_by_two_machines_belongs_to_neither_and_both_are_reported() -> None:
    owned, machines = machines_of("workers", "n1")
    machines[0]["spec"]["providerID"] = "aws:///a/i-1"
    theirs = scalable("evil", 1, kind="MachineSet", annotations=EVIL["annotations"])
    groups = found(scalable(), owned, theirs, evil("m-evil", "n1"), *machines, nodes=PROVIDED)
    assert groups.group_of == {}
    problem = (
        "the node n1 is claimed by Machine capi/m-evil, Machine capi/workers-x7f2k-n1, and it is not known to "
        "which of them it belongs: "
        "delete the Machine that is not its own"
    )
    assert [group.problem for group in groups.groups] == [problem, problem]


def test_groups_in_namespaces_that_are_not_listed_are_ignored() -> None:
    """In an attack, a MachineDeployment that a tenant has annotated as a group grows in place of the real one."""
    theirs = scalable("evil", annotations=EVIL["annotations"])
    theirs["metadata"]["namespace"] = "evil"
    assert [group.name for group in found(scalable(), theirs).groups] == [NAME]
    kinds_read = object_kinds(NodeGroupSources(cluster_api=ClusterApiGroups(("capi", "more"))))
    assert {kind.namespace for kind in kinds_read} == {"capi", "more", "kube-system"}
