from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups, NodeGroupSources
from recommender.kinds.cluster_size.node_groups.cluster_api.removals import RemovalPlan, plan_removals
from recommender.kinds.cluster_size.node_groups.discover import node_groups
from recommender.outputs.pending_writes import MachineRemoval
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import (
    ALL,
    BOUNDS,
    MIN,
    machine,
    machines_of,
    owner,
    scalable,
    state,
)

if TYPE_CHECKING:
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import Json

NODES = tuple(node(f"n{number}") for number in range(1, 5))
STATED = ClusterApiGroups(("capi",), mark_machines=True)


def plan(
    *wanted: str,
    group: Json | None = None,
    stated: ClusterApiGroups = STATED,
    more: tuple[Json, ...] = (),
    **changed: Any,  # noqa: ANN401 - fields of the group
) -> RemovalPlan:
    owned, machines = machines_of("workers", "n1", "n2", "n3")
    one = group or scalable(replicas=3, status={"upToDateReplicas": 3})
    harness = state(one, owned, *machines, *more, nodes=NODES)
    found: NodeGroup = node_groups(NodeGroupSources(cluster_api=stated), harness, 0.0).groups[0]
    return plan_removals(replace(found, **changed), wanted, stated, harness)


def removal(name: str) -> MachineRemoval:
    return MachineRemoval("capi", f"workers-x7f2k-{name}", name)


def test_nodes_are_removed_by_their_machines() -> None:
    assert plan("n2", "n1") == RemovalPlan((removal("n2"), removal("n1")), {})


def test_no_more_nodes_are_removed_than_the_minimum_allows() -> None:
    found = plan(
        "n1", "n2", "n3", group=scalable(replicas=3, annotations={**BOUNDS, MIN: "2"}, status={"updatedReplicas": 3})
    )
    assert found.machines == (removal("n1"),)
    assert found.kept == {"n2": "the group has a minimum of 2", "n3": "the group has a minimum of 2"}


def test_a_node_without_a_machine_or_with_one_being_deleted_is_kept() -> None:
    going = machine("m4", "n4", owned_by=owner("MachineSet", "workers-x7f2k"), deleted=True)
    assert plan("n4", "n9", more=(going,)).kept == {
        "n4": "its Machine is being deleted already",
        "n9": "there is no Machine for it",
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"stated": ALL}, "clusterAPI.markMachines is off"),
        ({"group": scalable(kind="MachinePool")}, "the machines of a MachinePool cannot be chosen"),
        ({"group": scalable(spec={"paused": True})}, "it is paused by spec.paused"),
        (
            {"autoscaler": "Cluster Autoscaler (Deployment a/b)"},
            "Cluster Autoscaler (Deployment a/b) manages the group",
        ),
        ({"scalable": None}, "it is not a node group of Cluster API"),
        ({"group": scalable(replicas=3, status={"upToDateReplicas": 1})}, "is rolling out a new version"),
        ({"group": scalable(replicas=3, version="v1beta1", status={"updatedReplicas": 1})}, "is rolling out"),
    ],
)
def test_if_no_machine_may_be_marked_every_node_is_kept_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    found = plan("n1", "n2", **changes)
    assert found.machines == ()
    assert reason in found.kept["n1"]
    assert found.kept.keys() == {"n1", "n2"}
