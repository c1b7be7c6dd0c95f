"""The memory of size writes: whether each succeeded, failed, or has an unknown outcome."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from recommender.decisions.memory import Memory
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.group_writes import GroupWrites
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeGroups
from recommender.kinds.cluster_size.model.memory import (
    AskedSize,
    ClusterSizeMemory,
    RequestedNodes,
    WrittenSize,
    restore_memory,
)
from recommender.kinds.cluster_size.requested_sizes import settled_writes, with_asked_sizes
from recommender.outputs.pending_writes import MachineRemoval, PendingWrite
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import NOT_STORED, ScaleOutcome
from recommender.running.memory.memory_document import decode_memory, encode_memory
from recommender.running.sizes.reported_writes import WriteResults
from tests.recommender.running.sizes.size_harness import GROUP

NOW = 1_800_000_000.0
GROWS = AskedSize(6, 4, NOW)
SHRINKS = AskedSize(3, 4, NOW, removes=True)
WORKERS = NodeGroup(
    "workers",
    1,
    10,
    4,
    scalable=TargetReference("cluster.x-k8s.io/v1beta2", "MachineDeployment", "capi", "workers"),
)


def groups(size: int = 4) -> NodeGroups:
    return NodeGroups((dataclasses.replace(WORKERS, target_size=size),))


def asked(one: AskedSize, **more: Any) -> ClusterSizeMemory:  # noqa: ANN401 - fields of the memory
    return ClusterSizeMemory(asked={"workers": one}, **more)


def outcome(result: ScaleResult, replicas: int, message: str = "") -> ScaleOutcome:
    return ScaleOutcome(PendingWrite("nodes", GROUP, replicas, NOW + 60.0), result, message=message)


def settled(
    memory: ClusterSizeMemory, *outcomes: ScaleOutcome, size: int = 4, after: float = 10.0
) -> ClusterSizeMemory:
    found = {each.write.target: each for each in outcomes}
    return settled_writes(memory, groups(size), found, NOW + after, 60.0)


@pytest.mark.parametrize(
    ("removals", "replicas", "expected"),
    [((), 6, GROWS), ((MachineRemoval("capi", "m1", "n1"),), 3, SHRINKS)],
)
def test_a_requested_size_starts_no_cool_down(
    removals: tuple[MachineRemoval, ...], replicas: int, expected: AskedSize
) -> None:
    write = PendingWrite("nodes", GROUP, replicas, NOW + 60.0, removals=removals)

    found, _ = with_asked_sizes(ClusterSizeMemory(), GroupWrites((write,)), groups(), NOW)

    assert (found.asked, found.last_scale_up, found.last_delete) == (asked(expected).asked, None, None)
    assert with_asked_sizes(found, GroupWrites((write,)), groups(), NOW + 10.0) == (found, ())


@pytest.mark.parametrize("result", [ScaleResult.OK, ScaleResult.UNCHANGED])
def test_a_written_size_has_nodes_on_their_way_and_starts_the_cool_down(result: ScaleResult) -> None:
    assert settled(asked(GROWS), outcome(result, 6)) == ClusterSizeMemory(
        requested={"workers": RequestedNodes(6, NOW)}, written={"workers": WrittenSize(6, NOW)}, last_scale_up=NOW
    )
    assert settled(asked(SHRINKS), outcome(result, 3)) == ClusterSizeMemory(
        written={"workers": WrittenSize(3, NOW)}, last_delete=NOW
    )


def test_a_killed_process_recognises_its_write_by_the_size_of_the_group() -> None:
    memory = Memory(own=asked(GROWS))
    stored = restore_memory(decode_memory("nodes", encode_memory("nodes", memory)).memory.own)

    assert stored == asked(GROWS)
    assert settled(stored, size=6, after=3600.0) == ClusterSizeMemory(
        requested={"workers": RequestedNodes(6, NOW)}, last_scale_up=NOW
    )


def test_a_failed_write_makes_its_group_back_off_longer_each_time() -> None:
    first = settled(asked(GROWS), outcome(ScaleResult.ERROR, 6, "403: no rights"))
    again = replace(first, asked={"workers": replace(GROWS, since=NOW + 400.0)})
    second = settled(again, outcome(ScaleResult.ERROR, 6, "403: no rights"), after=410.0)

    back_offs = [each.back_offs["workers"] for each in (first, second)]
    assert [each.duration_seconds for each in back_offs] == [300.0, 600.0]
    assert back_offs[0].until == NOW + 310.0
    assert back_offs[0].reason == "its size could not be written: 403: no rights"
    assert (first.requested, first.last_scale_up) == ({}, None)


def test_a_failed_removal_starts_its_cool_down_but_no_back_off() -> None:
    found = settled(asked(SHRINKS), outcome(ScaleResult.ERROR, 3, "500"))

    assert (found.last_failure, found.last_delete, found.back_offs) == (NOW + 10.0, None, {})


def test_if_one_of_two_removals_fails_both_results_are_remembered() -> None:
    found = settled(asked(replace(SHRINKS, size=2)), outcome(ScaleResult.ERROR, 2, "500"), size=3)

    assert (found.last_delete, found.last_failure) == (NOW, NOW + 10.0)


def test_a_failed_write_that_took_effect_is_recognised_later() -> None:
    failed = settled(asked(GROWS), outcome(ScaleResult.ERROR, 6, "sent, but no answer"))

    assert settled(failed, size=6, after=20.0).requested == {"workers": RequestedNodes(6, NOW)}


@pytest.mark.parametrize(
    ("found", "is_kept"),
    [
        ((), True),
        ((outcome(ScaleResult.FENCED, 6),), True),
        ((outcome(ScaleResult.CONFLICT, 6),), True),
        ((outcome(ScaleResult.ERROR, 6, NOT_STORED),), True),
        ((outcome(ScaleResult.ERROR, 5, "of an older decision"),), True),
        ((outcome(ScaleResult.REFUSED, 6, "it is paused"),), False),
    ],
)
def test_a_size_that_was_not_written_requests_nothing_and_is_not_a_failure(
    found: tuple[ScaleOutcome, ...], *, is_kept: bool
) -> None:
    assert settled(asked(GROWS), *found) == (asked(GROWS) if is_kept else ClusterSizeMemory())
    assert settled(asked(GROWS), *found, after=61.0) == ClusterSizeMemory()


def test_a_group_that_has_vanished_is_forgotten_once_nothing_can_be_written() -> None:
    assert settled_writes(asked(GROWS), NodeGroups(), {}, NOW + 10.0, 60.0) == asked(GROWS)
    assert settled_writes(asked(GROWS), NodeGroups(), {}, NOW + 61.0, 60.0) == ClusterSizeMemory()


def test_the_latest_result_for_a_target_counts_until_a_decision_has_used_it() -> None:
    results = WriteResults()
    results.note(outcome(ScaleResult.ERROR, 6, "500"))
    results.note(outcome(ScaleResult.OK, 6))
    seen = results.of("nodes")
    results.note(outcome(ScaleResult.ERROR, 7, "500"))
    results.drop("nodes", seen, {})

    assert [each.result for each in seen.values()] == [ScaleResult.OK]
    assert [each.result for each in results.of("nodes").values()] == [ScaleResult.ERROR]
    results.drop("nodes", results.of("nodes"), {})
    assert results.of("nodes") == results.of("others") == {}


@pytest.mark.parametrize("size", [6, 7])
def test_an_attempt_that_sent_nothing_leaves_the_last_success(size: int) -> None:
    results = WriteResults()
    results.note(outcome(ScaleResult.OK, 6))
    results.note(outcome(ScaleResult.FENCED, size))
    assert [(each.result, each.write.replicas) for each in results.of("nodes").values()] == [(ScaleResult.OK, 6)]


def test_a_write_that_is_sent_again_after_a_decision_began_is_new_to_the_next_one() -> None:
    results, write = WriteResults(), PendingWrite("nodes", GROUP, 6, NOW + 60.0)
    results.note_sending(write)
    seen = results.sent_of("nodes")
    results.note_sending(write)
    results.drop("nodes", {}, seen)

    assert seen.keys() == results.sent_of("nodes").keys() == {(str(GROUP), 6)}
    results.drop("nodes", {}, results.sent_of("nodes"))
    assert not results.sent_of("nodes")


@pytest.mark.parametrize(("counted", "is_open"), [((), True), ((NOW,), False)])
def test_a_replaced_size_counts_for_good_if_its_decision_counts_anyway(
    counted: tuple[float, ...], *, is_open: bool
) -> None:
    """The same decision has changed another group."""
    first, second = (GroupWrites((PendingWrite("nodes", GROUP, size, NOW + 60.0),)) for size in (6, 7))
    before, _ = with_asked_sizes(ClusterSizeMemory(), first, groups(), NOW)
    after, replaced = with_asked_sizes(before, second, groups(), NOW + 20.0, counted)
    assert (replaced, bool(after.replaced)) == ((NOW,), is_open)
