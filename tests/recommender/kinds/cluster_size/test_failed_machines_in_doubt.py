"""Failed machines that may be nodes, or whose deletion is forbidden, stay and are named with what they wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from recommender.decisions.policy_settings import Brakes, Direction, Pause
from recommender.kinds.cluster_size.model.size_settings import PluginGroups
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.machine_harness import (
    SHORT,
    MachineHarness,
    PluginMachines,
    group_of,
    harness_of,
    with_error,
    with_lost,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def _without_provider_id(harness: MachineHarness) -> None:
    harness.nodes.append(node("nameless", created=1.0))


def _of_another_form(harness: MachineHarness) -> None:
    harness.nodes.append(node("other", provider_id="k3s://other", created=1.0))


def _unlisted_member(harness: MachineHarness) -> None:
    harness.nodes.append(node("member", provider_id="x:///member", created=1.0))
    provider = harness.host._loaded_provider()
    provider.owner = lambda _: "a"  # type: ignore[attr-defined]


def _no_node_matches(harness: MachineHarness) -> None:
    harness.nodes[:] = [replace(one, provider_id=f"x:///zone/{one.name}") for one in harness.nodes]


def _no_scale_down(harness: MachineHarness) -> None:
    harness.down = replace(harness.down, enabled=False)


def _paused(harness: MachineHarness) -> None:
    harness.policy = replace(harness.policy, brakes=Brakes(paused=Pause(Direction.DOWN)))


def _unhealthy(harness: MachineHarness) -> None:
    harness.nodes += [node(f"down-{number}", provider_id=f"x:///d{number}", conditions={}) for number in range(9)]


def _outage(harness: MachineHarness) -> None:
    def fail() -> None:
        raise OSError("the cloud is away")

    harness.step()
    provider = harness.host._loaded_provider()
    provider.on_refresh = fail  # type: ignore[attr-defined]


def _unreadable_node(harness: MachineHarness) -> None:
    harness.left_out = ("node n9 is left out: its cpu is not a quantity",)


def _leaving_node(harness: MachineHarness) -> None:
    harness.nodes[0] = replace(harness.nodes[0], is_terminating=True)


HOLDS: dict[str, tuple[dict[str, object], Callable[[MachineHarness], object], str]] = {
    "node without an id": ({}, _without_provider_id, "node nameless has no spec.providerID"),
    "node of another form": ({}, _of_another_form, "k3s://other, has another form"),
    "member that is not listed": ({}, _unlisted_member, "node member of the group is not in the list"),
    "no id matches a node": ({}, _no_node_matches, "ids cannot be compared"),
    "an earlier list": ({"late_seconds": 5.0}, lambda _: None, "the list of machines is an earlier one"),
    "an answer from before an outage": ({}, _outage, "an earlier one: OSError: the cloud is away"),
    "a node that cannot be read": ({}, _unreadable_node, "not all nodes are known: node n9 is left out"),
    "a node that is being deleted": ({}, _leaving_node, "node node-0 of its group is being deleted"),
    "the minimum": ({"minimum": 3}, lambda _: None, "a minimum of 3"),
    "a size that counts the nodes alone": ({"target": 2}, lambda _: None, "2 nodes, and a size of 2"),
    "all or nothing": ({"zero_or_max": True}, lambda _: None, "is not split"),
    "no scale-down": ({}, _no_scale_down, "scaleDown.enabled is false"),
    "a pause": ({}, _paused, "paused"),
    "an unhealthy cluster": ({}, _unhealthy, "nodes that are not ready: 9 of 11"),
}


@pytest.mark.parametrize("make", [with_error, with_lost])
@pytest.mark.parametrize(("more", "change", "reason"), HOLDS.values(), ids=HOLDS)
def test_a_failed_machine_that_is_in_doubt_or_protected_is_reported_and_not_deleted(
    make: Callable[..., PluginMachines],
    more: dict[str, object],
    change: Callable[[MachineHarness], object],
    reason: str,
) -> None:
    group = make(**more)
    harness = harness_of(group)
    change(harness)
    harness.run(1500.0)
    assert group.deletions == []
    assert reason in harness.notes


@pytest.mark.parametrize("provider_id", ["", "aci://virtual"], ids=["no id", "an id of another form"])
@pytest.mark.parametrize("make", [with_error, with_lost])
def test_a_virtual_kubelet_node_is_not_a_machine_and_prevents_no_deletion(
    make: Callable[..., PluginMachines], provider_id: str
) -> None:
    group = make()
    harness = harness_of(group)
    harness.nodes.append(node("virtual", provider_id=provider_id, labels={"type": "virtual-kubelet"}, created=1.0))
    harness.run(1500.0)
    assert len(group.deletions) == 1


def test_machines_whose_ids_change_with_each_call_are_never_deleted() -> None:
    group = with_lost(number=0)
    harness = harness_of(group)
    harness.run(3000.0)
    assert (group.deletions, harness.failed) == ([], ())


def test_no_machine_is_deleted_if_too_many_do_not_join() -> None:
    few, many = (group_of("x:///1", *(f"x:///lost-{each}" for each in range(count))) for count in (3, 4))
    for group in (few, many):
        harness = harness_of(group)
        harness.run(1500.0)
    assert (sum(len(one.machines) for one in few.deletions), many.deletions) == (3, [])
    assert "machines that are not nodes: 4 of 5, which is more than maxUnready allows" in harness.notes


def test_only_a_bounded_number_of_failures_is_reported() -> None:
    names = [f"x:///new-{number}" for number in range(50)]
    harness = harness_of(group_of("x:///1", *names, errors={each: f"no disk for {each}" for each in names}))
    harness.decide()
    assert harness.notes.count("it cannot be created") == 20
    assert "machines have failed in 30 more ways" in harness.notes


def test_a_machine_listed_in_two_groups_is_not_deleted() -> None:
    groups = with_lost(), group_of("x:///9", "x:///lost", name="b")
    harness = harness_of(*groups)
    harness.run(1500.0)
    assert [group.deletions for group in groups] == [[], []]
    assert "the provider lists a machine in two groups" in harness.notes


def test_in_a_group_without_nodes_only_machines_that_cannot_be_created_are_deleted() -> None:
    lost, short = group_of("x:///lost", name="b"), group_of("x:///new", name="c", errors=SHORT)
    harness = harness_of(group_of("x:///1"), lost, short)
    harness.run(1500.0)
    assert (lost.deletions, [one.machines for one in short.deletions]) == ([], [("x:///new",)])
    assert "no machine of its group is a node" in harness.notes


@pytest.mark.parametrize("spelling", ["X:///LOST", "lost", "/lost", "x://zone/lost"])
def test_a_node_with_another_spelling_of_its_provider_id_is_not_deleted(spelling: str) -> None:
    group = with_lost()
    harness = harness_of(group)
    harness.nodes.append(node("third", provider_id=spelling, created=1.0))
    harness.run(1500.0)
    assert (group.deletions, harness.failed) == ([], ())


def test_a_node_named_like_the_id_of_a_machine_is_not_deleted() -> None:
    group = with_lost()
    harness = harness_of(group)
    harness.nodes.append(node("lost", provider_id="x:///other", created=1.0))
    harness.run(1500.0)
    assert (group.deletions, harness.failed) == ([], ())


@pytest.mark.parametrize(
    ("stated", "needed"),
    [
        (PluginGroups("cloud", writes=True), "write `deleteNodes: true`, or delete it at the provider"),
        (PluginGroups("cloud"), "write `writes: true and deleteNodes: true`"),
    ],
)
def test_without_delete_nodes_the_answer_states_what_to_do(stated: PluginGroups, needed: str) -> None:
    group = with_error()
    harness = harness_of(group, settings=stated)
    for _ in range(5):
        harness.decide()
    assert group.deletions == []
    assert f"node group a: x:///new: it cannot be created: {SHORT['x:///new']}; not deleted: {needed}" in harness.notes


def test_the_size_does_not_fall_below_nodes_that_the_provider_does_not_assign() -> None:
    group = with_lost(target=2)
    harness = harness_of(group, group_of("x:///9", name="b"))
    provider = harness.host._loaded_provider()
    provider.owner = lambda one: "b" if one.provider_id == "x:///9" else None  # type: ignore[attr-defined]
    group.errors["x:///lost"] = "OutOfResources"
    harness.run(1500.0)
    assert group.deletions == []
