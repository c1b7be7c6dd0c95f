"""Each poll looks up a limited number of targets, beginning with those that need to be scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.decisions.inputs import TargetState
from recommender.decisions.record import Record, Status, TargetReference
from recommender.running.inputs.due_targets import DueTargets

if TYPE_CHECKING:
    from recommender.running.inputs.input_gathering import TargetInput


def target(number: int) -> TargetReference:
    return TargetReference("apps/v1", "Deployment", "shop", f"web-{number:03}")


def records(count: int, *, differing: int = 0) -> list[Record]:
    """Return records that recommend 3 replicas, and 9 for the last few."""
    sizes = [9 if number >= count - differing else 3 for number in range(count)]
    return [
        Record("chat", "predictive", 0.0, Status.OK, "", size, each=target(number)) for number, size in enumerate(sizes)
    ]


def polled(turns: DueTargets, now: float) -> list[int]:
    """Look up the chosen targets, each of which has 3 replicas; return their numbers."""
    chosen = turns.choose()
    turns.looked_up({each: Observed(TargetState(3), now) for each in chosen}, now, 60.0)
    return sorted(int(each.name.removeprefix("web-")) for each in chosen)


def test_few_targets_are_all_looked_up_in_each_poll() -> None:
    turns = DueTargets(most=8)
    turns.follow_records(records(8))
    assert [polled(turns, now) for now in (0.0, 10.0)] == [list(range(8))] * 2


def test_many_targets_take_turns() -> None:
    turns = DueTargets(most=8)
    turns.follow_records(records(40))
    seen = [polled(turns, 10.0 * poll) for poll in range(12)]
    assert all(len(each) == 8 for each in seen)
    assert {number for each in seen[:7] for number in each} == set(range(40))
    assert sorted(number for each in seen[-5:] for number in each) == list(range(40))


def test_targets_to_be_scaled_come_first_and_others_keep_a_share_of_the_lookups() -> None:
    turns = DueTargets(most=8)
    turns.follow_records(records(40))
    for poll in range(7):
        polled(turns, 10.0 * poll)
    turns.follow_records(records(40, differing=12))
    first, second = polled(turns, 80.0), polled(turns, 90.0)
    assert [sum(number >= 28 for number in each) for each in (first, second)] == [6, 6]
    assert {number for number in (*first, *second) if number >= 28} == set(range(28, 40))
    assert [sum(number < 28 for number in each) for each in (first, second)] == [2, 2]


def test_only_recent_lookups_are_used() -> None:
    turns = DueTargets(most=8)
    turns.follow_records(records(3))
    turns.looked_up({target(0): Observed(TargetState(3), 100.0), target(1): Unknown("no answer")}, 100.0, 60.0)
    now = {target(2): Unknown("no answer")}
    assert turns.looked_up(now, 150.0, 60.0) == {target(0): Observed(TargetState(3), 100.0), **now}
    assert turns.looked_up({}, 170.0, 60.0) == {}


def test_an_earlier_lookup_has_the_size_that_was_written_since() -> None:
    before: TargetInput = Observed(TargetState(3), 100.0)
    written: TargetInput = Observed(TargetState(9), 100.0)
    turns = DueTargets(most=8, with_own_size=lambda each, found: written if each == target(0) else found)
    turns.follow_records(records(2))
    both = {target(0): before, target(1): before}
    assert turns.looked_up(both, 110.0, 60.0) == both
    assert turns.looked_up({}, 112.0, 60.0) == {target(0): written, target(1): before}


def test_a_target_that_is_no_longer_listed_is_not_looked_up() -> None:
    turns = DueTargets(most=8)
    turns.follow_records(records(3))
    turns.follow_records(records(2))
    assert polled(turns, 0.0) == [0, 1]
