"""Decisions about groups whose nodes are deleted or never join, or whose ids change: requests and memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from recommender.decisions.memory import Memory
from recommender.kinds.cluster_size.model.answer import answer_of
from recommender.kinds.cluster_size.model.memory import RequestedNodes
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup, PluginReading
from recommender.kinds.cluster_size.node_groups.protocol import InstanceState, ProviderInstance
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from tests.recommender.kinds.cluster_size.builders import node
from tests.recommender.kinds.cluster_size.deciding import size_memory
from tests.recommender.kinds.cluster_size.test_decide import NOW
from tests.recommender.kinds.cluster_size.test_provider_sizes import NODES, decided, pending_writes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.loop import Decision
    from recommender.outputs.pending_writes import PendingWrite

GOING = node(
    "n9", provider_id="x:///9", created=1.0, taints=["ToBeDeletedByClusterAutoscaler:NoSchedule"], unschedulable=True
)
"""An empty node that is being drained and deleted."""
ALL = (*NODES, GOING)


def stated(
    target: int, *, going: InstanceState = InstanceState.RUNNING, zombies: int = 0, name: str = "a"
) -> PluginReading:
    """Return four nodes, one of which is being deleted, machines that never become nodes, and an empty other group.

    The list of machines is an earlier one, so that no machine is deleted by it.
    """
    machines = [
        *(ProviderInstance(each.provider_id) for each in NODES),
        ProviderInstance(GOING.provider_id, going),
        *(ProviderInstance(f"x:///zombie-{number}", InstanceState.CREATING) for number in range(zombies)),
    ]
    group = PluginGroup(name, 1, 10, target, tuple(machines), template=NODES[0], has_writes=True, age_seconds=1.0)
    return PluginReading("externalGRPC", (group,), {each.name: name for each in ALL})


def sizes_of(decision: Decision) -> list[tuple[str, int]]:
    return [(write.target.name, write.replicas) for write in pending_writes_of(decision)]


@pytest.mark.parametrize(
    ("before", "going"),
    [
        pytest.param(4, InstanceState.RUNNING, id="drained-and-still-counted"),
        pytest.param(3, InstanceState.DELETING, id="deleted-and-counted-no-more"),
        pytest.param(3, InstanceState.RUNNING, id="deleted-and-counted-no-more-though-it-is-shown-as-running"),
    ],
)
def test_while_a_node_is_being_deleted_its_group_grows_only_by_what_pods_need(
    before: int, going: InstanceState
) -> None:
    first = decided(NOW, Memory(), stated(before, going=going), nodes=ALL)
    [write] = pending_writes_of(first)
    assert write.replicas == before + 2
    memory, shown = first.memory, before
    for seconds in (1.0, 30.0, 60.0):
        outcome = (ScaleOutcome(write, ScaleResult.OK),) if seconds == 1.0 else ()
        found = decided(NOW + seconds, memory, stated(shown, going=going), *outcome, nodes=ALL)
        assert sizes_of(found) == []
        memory, shown = found.memory, before + 2


@pytest.mark.parametrize("seconds", [0.0, 60.0, 600.0])
def test_pods_do_not_wait_for_a_node_that_is_being_drained(seconds: float) -> None:
    first = decided(NOW, Memory(), stated(4), nodes=ALL, pending=0)
    later = decided(NOW + seconds, first.memory, stated(4), nodes=ALL, pending=1)
    assert sizes_of(later) == [("a", 5)]


def with_other_group(reading: PluginReading, size: int = 0) -> PluginReading:
    return replace(
        reading, groups=(*reading.groups, PluginGroup("b", 0, 10, size, (), template=NODES[0], has_writes=True))
    )


def late_machines() -> Decision:
    """Return the decision that finds two machines late, which the provider counts and lists as being created."""
    first = decided(NOW, Memory(), with_other_group(stated(3)), nodes=NODES)
    found = first
    outcomes: Sequence[ScaleOutcome] = [ScaleOutcome(write, ScaleResult.OK) for write in pending_writes_of(first)]
    for seconds in range(60, 1021, 60):
        found = decided(NOW + seconds, found.memory, with_other_group(stated(5, zombies=2)), *outcomes, nodes=NODES)
        outcomes = [refused(write) for write in pending_writes_of(found)]
        if outcomes:
            return found
    raise AssertionError("no node was found to be late")


def refused(write: PendingWrite) -> ScaleOutcome:
    return ScaleOutcome(write, ScaleResult.REFUSED, message="5 of its machines exist")


def after_late_machines(seconds: float, *, pending: int, loads: int = 3) -> Decision:
    """Return the last of the decisions in so many seconds after the one that finds two machines late.

    The other group has accepted a request for two nodes, which are being created.
    """
    late = late_machines()
    outcomes = [
        refused(w) if w.target.name == "a" else ScaleOutcome(w, ScaleResult.OK) for w in pending_writes_of(late)
    ]
    began, found = NOW + 960.0, late
    for passed in (*range(30, int(seconds), 30), int(seconds)):
        found = decided(
            began + passed,
            found.memory,
            with_other_group(stated(5, zombies=2), size=2),
            *outcomes,
            nodes=NODES,
            pending=2 if passed < seconds else pending,
            loads=loads,
        )
        outcomes = []
    return found


def test_late_machines_are_subtracted_and_another_group_is_scaled_up() -> None:
    late = late_machines()
    assert sizes_of(late) == [("a", 3), ("b", 2)]
    assert "2 requested nodes were not ready within 900 s" in size_memory(late).back_offs["a"].reason


@pytest.mark.parametrize("seconds", [30, 120, 270, 420, 840])
def test_pods_do_not_wait_again_for_late_machines_that_the_provider_still_counts(seconds: int) -> None:
    assert ("b", 3) in sizes_of(after_late_machines(seconds, pending=3))


def test_late_machines_still_counted_are_subtracted_again_after_the_back_off() -> None:
    assert sizes_of(after_late_machines(240, pending=2)) == []
    again = after_late_machines(300, pending=2)
    assert sizes_of(again) == [("a", 3)]
    back_off = size_memory(again).back_offs["a"]
    assert (back_off.duration_seconds, back_off.reason) == (
        600.0,
        "2 requested nodes have not joined, and its size still counts them: find out why, or lower the size",
    )


def test_late_machines_of_a_group_do_not_prevent_removals() -> None:
    found = after_late_machines(60, pending=0, loads=0)
    waits = size_memory(found)
    answer = answer_of(found.record)
    assert answer is not None
    assert not any("UpcomingNodes" in removal.reason and "of a" in removal.reason for removal in answer.removals), waits


def test_a_size_that_grows_while_machines_are_late_has_nodes_on_their_way() -> None:
    late = late_machines()
    grown = decided(NOW + 1000.0, late.memory, with_other_group(stated(7, zombies=4), size=2), nodes=NODES)
    assert size_memory(grown).requested["a"] == RequestedNodes(7, NOW + 1000.0)


def test_requests_of_groups_with_changing_ids_do_not_accumulate() -> None:
    memory, most = Memory(), 0
    for number in range(60):
        found = decided(NOW + 60.0 * number, memory, stated(5, name=f"pool-{number}"), nodes=NODES, pending=0)
        memory, most = found.memory, max(most, len(size_memory(found).requested))
    assert most <= 900 / 60 + 1


def test_the_request_of_a_group_that_is_temporarily_not_listed_is_remembered() -> None:
    first = decided(NOW, Memory(), stated(5), nodes=NODES, pending=0)
    without = decided(NOW + 60.0, first.memory, PluginReading("externalGRPC", problem="it hangs"), nodes=NODES)
    assert size_memory(without).requested == size_memory(first).requested == {"a": RequestedNodes(5, NOW)}


def out_of_stock(target: int, *errors: str) -> PluginReading:
    """Return three nodes, one machine for each error, and an empty second group."""
    reading = stated(target)
    [group] = reading.groups
    machines = [
        *(ProviderInstance(each.provider_id) for each in NODES),
        *(ProviderInstance(f"x:///{number}-new", InstanceState.CREATING, error) for number, error in enumerate(errors)),
    ]
    return with_other_group(replace(reading, groups=(replace(group, instances=tuple(machines)),)))


def test_a_group_that_is_out_of_stock_backs_off_at_once_and_another_is_scaled_up() -> None:
    first = decided(NOW, Memory(), out_of_stock(3), nodes=NODES)
    [write] = pending_writes_of(first)
    assert (write.target.name, write.replicas) == ("a", 5)
    making = decided(
        NOW + 10.0, first.memory, out_of_stock(5, "", ""), ScaleOutcome(write, ScaleResult.OK), nodes=NODES
    )
    assert sizes_of(making) == []
    failed = decided(NOW + 20.0, making.memory, out_of_stock(5, "", "NO_STOCK: none left"), nodes=NODES)
    assert sizes_of(failed) == [("b", 1)], "one of the two is still being made"
    back_off = size_memory(failed).back_offs["a"]
    assert (back_off.until, back_off.reason) == (NOW + 320.0, "1 requested node cannot be made: NO_STOCK: none left")
    both = decided(NOW + 30.0, failed.memory, out_of_stock(5, "QUOTA: x", "NO_STOCK: none left"), nodes=NODES)
    assert sizes_of(both) == [("b", 2)]
    assert size_memory(both).back_offs["a"] == back_off, "an error that lasts is one failure for each back-off"


def test_a_machine_whose_error_has_passed_is_on_its_way_again() -> None:
    first = decided(NOW, Memory(), out_of_stock(5, "NO_STOCK: none left", "NO_STOCK: none left"), nodes=NODES)
    assert sizes_of(first) == [("b", 2)]
    assert sizes_of(decided(NOW + 10.0, first.memory, out_of_stock(5, "", ""), nodes=NODES)) == []


def with_present_lists(reading: PluginReading) -> PluginReading:
    owners = {name: group for name, group in reading.group_of.items() if name != GOING.name}
    return replace(reading, groups=tuple(replace(group, age_seconds=0.0) for group in reading.groups), group_of=owners)


def test_an_out_of_stock_machine_is_deleted_while_others_of_its_request_are_awaited() -> None:
    first = decided(NOW, Memory(), with_present_lists(out_of_stock(3)), nodes=NODES)
    [write] = pending_writes_of(first)
    short = with_present_lists(out_of_stock(5, "", "NO_STOCK: none left"))
    failed = decided(NOW + 20.0, first.memory, short, ScaleOutcome(write, ScaleResult.OK), nodes=NODES)
    assert sizes_of(failed) == [("a", 4), ("b", 1)]
    deleted, grown = pending_writes_of(failed)
    assert [one.provider_id for one in deleted.machines] == ["x:///1-new"]
    assert size_memory(failed).asked["a"].machines == ("x:///1-new",)
    outcomes = ScaleOutcome(deleted, ScaleResult.OK), ScaleOutcome(grown, ScaleResult.OK)
    left = with_other_group(with_present_lists(replace(out_of_stock(4, ""), groups=out_of_stock(4, "").groups[:1])), 1)
    found = decided(NOW + 30.0, failed.memory, left, *outcomes, nodes=NODES)
    assert sizes_of(found) == []
    memory = size_memory(found)
    assert memory.requested == {"a": RequestedNodes(4, NOW), "b": RequestedNodes(1, NOW + 20.0)}
    assert (memory.deleted_machines, memory.last_delete) == ({"x:///1-new": NOW + 20.0}, None)


def test_machines_that_cannot_be_created_do_not_prevent_removals() -> None:
    reading = out_of_stock(5, "NO_STOCK: none left", "NO_STOCK: none left")
    found = decided(NOW, Memory(), reading, nodes=NODES, pending=0, loads=0)
    found = decided(NOW + 10.0, found.memory, reading, nodes=NODES, pending=0, loads=0)
    answer = answer_of(found.record)
    assert answer is not None
    assert not any("UpcomingNodes" in removal.reason for removal in answer.removals)


@pytest.mark.parametrize(("least", "removed"), [(3, 0), (2, 1)])
def test_machines_that_never_join_do_not_count_towards_the_minimum(least: int, removed: int) -> None:
    late = late_machines()
    reading = with_other_group(stated(5, zombies=2))
    reading = replace(reading, groups=(replace(reading.groups[0], min_size=least), reading.groups[1]))
    found = late
    for seconds in (980.0, 990.0):
        found = decided(NOW + seconds, found.memory, reading, nodes=NODES, pending=0, loads=0)
    removals = [write.node_removals for write in pending_writes_of(found) if write.target.name == "a"]
    assert sum(map(len, removals)) == removed
