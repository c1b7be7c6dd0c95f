from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.group_writes import GroupWrites, group_writes, plan_node_removals
from recommender.kinds.cluster_size.model.groups import GroupOptions, NodeGroup, NodeGroups, ProviderReference
from recommender.kinds.cluster_size.node_groups.cluster_api.removals import RemovalPlan
from recommender.outputs.pending_writes import MachineRemoval, MachineToDelete, NodeRemoval, PendingWrite
from tests.recommender.running.sizes.size_harness import GROUP

WORKERS = NodeGroup(
    "workers",
    1,
    10,
    4,
    scalable=TargetReference("cluster.x-k8s.io/v1beta2", "MachineDeployment", "capi", "workers"),
)
REMOVAL = MachineRemoval("capi", "m1", "n1")
PLAN = RemovalPlan((REMOVAL,))


def writes(size: int, plan: RemovalPlan | None = None, **changed: Any) -> GroupWrites:  # noqa: ANN401 - fields of the group
    groups = NodeGroups((replace(WORKERS, **changed),))
    return group_writes(
        "nodes", groups, {"workers": size}, {"workers": plan} if plan else {}, valid_until=60.0, reason="why"
    )


def test_a_group_that_should_grow_is_written() -> None:
    assert writes(6).writes == (PendingWrite("nodes", GROUP, 6, 60.0, "why", 4),)


def test_a_group_that_has_its_size_is_not_written() -> None:
    assert writes(4) == GroupWrites()


def test_a_group_is_reduced_by_the_machines_of_its_plan() -> None:
    assert writes(4, PLAN).writes == (PendingWrite("nodes", GROUP, 3, 60.0, "why", 4, (REMOVAL,)),)


def test_a_growing_group_removes_no_machines() -> None:
    assert writes(6, PLAN).writes == (PendingWrite("nodes", GROUP, 6, 60.0, "why", 4),)


@pytest.mark.parametrize(
    ("size", "changed", "replicas"),
    [(4, {}, 3), (6, {}, 6), (2, {}, 2), (6, {"paused": "it is paused"}, 4), (4, {"paused": "it is paused"}, 4)],
    ids=["removal", "growth", "a smaller size", "refused growth", "refused removal"],
)
def test_marks_of_earlier_removals_are_taken_off_whatever_becomes_of_the_size(
    size: int, changed: dict[str, Any], replicas: int
) -> None:
    earlier = MachineRemoval("capi", "m9", "n9")
    [write] = writes(size, replace(PLAN, stale=(REMOVAL, earlier)), **changed).writes
    removed = write.removals == (REMOVAL,)
    assert write.replicas == replicas
    assert write.unmarks == ((earlier,) if removed else (REMOVAL, earlier))
    assert removed is (replicas == 3)


def test_marks_of_earlier_removals_are_taken_off_although_the_size_stays() -> None:
    [write] = writes(4, RemovalPlan(stale=(REMOVAL,))).writes
    assert (write.replicas, write.removals, write.unmarks) == (4, (), (REMOVAL,))


@pytest.mark.parametrize(("size", "replicas", "deletes"), [(4, 3, True), (2, 3, True), (6, 6, False)])
def test_failed_machines_are_deleted_alone_and_only_if_the_group_does_not_grow(
    size: int, replicas: int, *, deletes: bool
) -> None:
    failed = (MachineToDelete("x:///3"),)
    [write] = writes(size, RemovalPlan((REMOVAL,), failed=failed)).writes
    assert (write.replicas, write.machines, write.removals) == (replicas, failed if deletes else (), ())


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"autoscaler": "Karpenter (NodePool a)"},
            "Karpenter (NodePool a) manages it: use the outputs metric",
        ),
        ({"scalable": None}, "its size can only be recommended: groups of static and byLabel are read-only"),
        ({"paused": "it is paused by spec.paused"}, "it is paused by spec.paused"),
        ({"problem": "it has no template"}, "it has no template"),
    ],
)
def test_a_group_that_must_not_be_written_is_refused_with_a_reason(changed: dict[str, Any], reason: str) -> None:
    found = writes(6, **changed)
    assert found.writes == ()
    assert found.refusals["workers"].startswith(reason)
    assert writes(4, **changed) == GroupWrites(), "nothing is refused where nothing should change"


@pytest.mark.parametrize(("zero_or_max", "whole"), [(True, 2), (False, 0)])
def test_the_nodes_of_an_all_or_nothing_group_are_removed_together(*, zero_or_max: bool, whole: int) -> None:
    group = NodeGroup(
        "a", 0, 2, 2, nodes=("n1", "n2"), options=GroupOptions(zero_or_max=zero_or_max),
        provider=ProviderReference("plugin/cloud", deletes_nodes=True),
    )  # fmt: skip
    assert plan_node_removals(group, ["n1", "n2"]).nodes == (NodeRemoval("n1", whole), NodeRemoval("n2", whole))


CLOUD = NodeGroup(
    "a", 1, 9, 3, nodes=("n1", "n2", "n3"), provider=ProviderReference("plugin/cloud", deletes_nodes=True)
)
OFF = "deleteNodes is off, so removals are only recommended"


@pytest.mark.parametrize(
    ("changed", "nodes", "kept"),
    [
        pytest.param({}, ["n1", "n2"], {"n3": "the group has a minimum of 1"}, id="above its minimum"),
        pytest.param({"min_size": 3}, [], dict.fromkeys(CLOUD.nodes, "the group has a minimum of 3"), id="at it"),
        pytest.param({"min_size": 5}, [], dict.fromkeys(CLOUD.nodes, "the group has a minimum of 5"), id="below it"),
        pytest.param({"target_size": 9}, ["n1", "n2"], {"n3": "the group has a minimum of 1"}, id="not all have come"),
        pytest.param({"paused": "paused"}, [], dict.fromkeys(CLOUD.nodes, "paused"), id="paused"),
        pytest.param({"problem": "broken"}, [], dict.fromkeys(CLOUD.nodes, "broken"), id="left out"),
        pytest.param(
            {"autoscaler": "Karpenter"}, [], dict.fromkeys(CLOUD.nodes, "Karpenter manages the group"), id="of another"
        ),
        pytest.param(
            {"provider": ProviderReference("plugin/cloud")}, [], dict.fromkeys(CLOUD.nodes, OFF), id="no deletions"
        ),
    ],
)
def test_a_provider_deletes_no_more_nodes_than_the_group_may_lose(
    changed: dict[str, Any], nodes: list[str], kept: dict[str, str]
) -> None:
    plan = plan_node_removals(replace(CLOUD, **changed), CLOUD.nodes)
    assert ([one.node for one in plan.nodes], plan.kept) == (nodes, kept)
