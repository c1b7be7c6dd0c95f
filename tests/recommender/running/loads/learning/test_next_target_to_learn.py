"""Many targets take turns, one group after another, and none waits for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from recommender.decisions.record import TargetReference
from recommender.running.loads.learning.learner_of_many import FAILED_GROUP_SECONDS, MOST_AT_ONCE, Turns

if TYPE_CHECKING:
    from recommender.running.loads.histories.target_loads import Target

LOADS: dict[Target, float] = {
    TargetReference("apps/v1", "Deployment", "shop", f"d{each:03}"): float(each) for each in range(300)
}
RETRY_SECONDS = 14_400.0
PERIOD = 3600.0


def names(group: tuple[Target, ...]) -> set[str]:
    return {target.name for target in group if target is not None}


def test_the_largest_loads_are_first_and_then_the_targets_that_waited_longest() -> None:
    turns = Turns()
    first = turns.next_group(LOADS, 0.0)
    turns.record_turn(first, PERIOD)
    second = turns.next_group(LOADS, 10.0)
    assert names(first) == {f"d{each:03}" for each in range(100, 300)}
    assert names(second) == {f"d{each:03}" for each in range(100)}
    are_served = [turns.are_all_served]
    turns.record_turn(second, 10.0 + PERIOD)
    assert [*are_served, turns.are_all_served] == [False, True]
    assert turns.next_group(LOADS, PERIOD - 1) == ()
    looks = [turns.has_due_turn(count, now) for count, now in ((300, PERIOD - 1), (300, PERIOD), (301, PERIOD - 1))]
    assert looks == [False, True, True]
    assert turns.next_group(LOADS, PERIOD) == first
    assert turns.next_group(LOADS, PERIOD + 10.0)[:MOST_AT_ONCE] == first


def test_a_target_whose_turns_fail_is_isolated_and_does_not_affect_others() -> None:
    turns, broken, now = Turns(), next(iter(LOADS)), 0.0
    served: set[Target] = set()
    for _ in range(60):
        group = turns.next_group(LOADS, now)
        if not group:
            now += FAILED_GROUP_SECONDS
        elif broken in group:
            turns.record_failure(group, now)
        else:
            served |= set(group)
            turns.record_turn(group, now + PERIOD)
        if served == set(LOADS) - {broken}:
            break
    assert served == set(LOADS) - {broken}
    assert now <= 10 * FAILED_GROUP_SECONDS


def test_a_removed_target_is_forgotten() -> None:
    turns = Turns()
    turns.record_failure(turns.next_group(LOADS, 0.0), 0.0)
    few = dict(list(LOADS.items())[:3])
    turns.record_turn(turns.next_group(few, FAILED_GROUP_SECONDS), PERIOD)
    assert turns.are_all_served
    assert len(turns.next_group(LOADS, FAILED_GROUP_SECONDS)) == MOST_AT_ONCE


@given(st.lists(st.sampled_from(["served", "failed", "wait"]), max_size=40), st.data())
def test_no_target_is_starved(results: list[str], data: st.DataObject) -> None:
    turns, now = Turns(), 0.0
    for result in results:
        now += data.draw(st.sampled_from([1.0, FAILED_GROUP_SECONDS, PERIOD]))
        group = turns.next_group(LOADS, now)
        if group and result == "served":
            turns.record_turn(group, now + PERIOD)
        elif group and result == "failed":
            turns.record_failure(group, now)
    now += RETRY_SECONDS
    seen: set[Target] = set()
    while group := turns.next_group(LOADS, now):
        seen |= set(group)
        turns.record_turn(group, now + PERIOD)
    assert seen == set(LOADS)
