"""A wall clock that is set while the recommender runs: brakes last as long as without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import Observed
from recommender.decisions.memory import LastValue, Memory
from recommender.kinds.cluster_size.model.memory import (
    LATE,
    Absence,
    AskedSize,
    BackOff,
    ClusterSizeMemory,
    RequestedNodes,
    WrittenSize,
)
from recommender.kinds.predictive.policy.memory import PolicyMemory, ReconnectMemory
from tests.recommender.running.polls.test_writing_loop import BY_SERIES, LISTED, STALE_AFTER, TARGETS, harness_with

if TYPE_CHECKING:
    from tests.recommender.running.polls.writing_loop import WritingHarness, WritingProcess

HOUR: Final = 3600.0
LIMIT: Final = 2
TURN_SECONDS: Final = 30
STEPS: Final = st.lists(
    st.sampled_from([*[0.0] * 5, 0.4, -0.4, 90.0, -90.0, 4000.0, -4000.0, 86_400.0, -86_400.0]), min_size=2, max_size=16
)


def turn(harness: WritingHarness, process: WritingProcess, nodes: int) -> None:
    """Let all facts be new, decide, and write for half a minute."""
    harness.nodes = Observed(nodes, process.wall())
    harness.owners = {target.namespace: Observed((), process.wall()) for target in TARGETS}
    process.poll()
    process.write_for(TURN_SECONDS)


def most_in_an_hour(times: list[float]) -> int:
    return max((sum(time <= other < time + HOUR for other in times) for time in times), default=0)


@pytest.mark.parametrize("kind", [LISTED, BY_SERIES])
@pytest.mark.parametrize(
    "steps",
    [(0.0, 0.0), (4000.0, 0.0), (-4000.0, 4000.0), (4000.0, -4000.0), (-86_400.0, 86_400.0)],
    ids=["not set", "forward", "back and forward", "forward and back", "a day back and forward"],
)
def test_a_clock_that_is_set_allows_no_more_changes_an_hour(kind: str, steps: tuple[float, float]) -> None:
    harness = harness_with(kind, "changes", (2, 2))
    process = harness.process()
    for number in range(40):
        if number in {10, 20}:
            process.wall_ahead += steps[number // 10 - 1]
        turn(harness, process, nodes=8 + 4 * (number % 5))
    for target in TARGETS:
        times = [write.time for write in harness.writes if write.target == target]
        assert times
        assert most_in_an_hour(times) <= LIMIT + 1, "the first size is not a change"


@pytest.mark.parametrize("kind", [LISTED, BY_SERIES])
def test_changes_are_possible_again_an_hour_after_the_clock_was_set_for_the_last_time(kind: str) -> None:
    harness = harness_with(kind, "changes", (2, 2))
    process = harness.process()
    for number in range(20):
        process.wall_ahead += 4000.0 if number % 2 else -4000.0
        turn(harness, process, nodes=8 + 4 * (number % 5))
    written = len(harness.writes)
    harness.now += HOUR
    turn(harness, process, nodes=40)
    assert {write.target for write in harness.writes[written:]} == set(TARGETS)


def test_the_next_process_counts_the_changes_from_before_the_clock_was_set() -> None:
    harness = harness_with(LISTED, "changes", (2, 2))
    process = harness.process()
    for nodes in (8, 12, 16):
        turn(harness, process, nodes)
    process.wall_ahead += 7200.0
    turn(harness, process, nodes=20)
    written = len(harness.writes)
    turn(harness, harness.process(process.wall_ahead), nodes=24)
    assert written == 2 * (LIMIT + 1)
    assert len(harness.writes) == written


def test_all_times_of_a_memory_that_begin_or_end_a_brake_follow_the_clock() -> None:
    def size_memory(ahead: float) -> ClusterSizeMemory:
        return ClusterSizeMemory(
            unneeded_since={"n": 100.0 + ahead},
            unremovable_until={"n": 101.0 + ahead},
            last_scale_up=102.0 + ahead,
            last_delete=103.0 + ahead,
            requested={"a": RequestedNodes(3, 104.0 + ahead), "b": RequestedNodes(3, LATE)},
            asked={"a": AskedSize(4, 3, 105.0 + ahead)},
            written={"b": WrittenSize(3, 109.0 + ahead)},
            unregistered_since={"a": {"i-1": 106.0 + ahead}},
            deleted_machines={"i-2": 107.0 + ahead},
            back_offs={"a": BackOff(400.0 + ahead, 300.0, 108.0 + ahead, "no stock")},
            sizes={"a": 3},
            absences=(Absence(90.0 + ahead, 95.0 + ahead),),
        )

    def policy_memory(ahead: float) -> PolicyMemory:
        return PolicyMemory(
            100.0,
            3.5,
            ((80.0 + ahead, 4), (90.0 + ahead, 3)),
            ReconnectMemory(((95.0, 7.0),), 130.0 + ahead),
            moved_seconds=ahead,
        )

    def memory(ahead: float) -> Memory:
        targets = {
            TARGETS[0]: Memory(own=policy_memory(ahead)),
            TARGETS[1]: Memory(LastValue(3, 9.0, 9.0), own=PolicyMemory(moved_seconds=ahead)),
        }
        return Memory(LastValue(3, 10.0, 10.0), (20.0 + ahead,), size_memory(ahead), by_target=targets)

    assert memory(0.0).prolonged(50.0) == memory(50.0)


@given(st.sampled_from([LISTED, BY_SERIES]), STEPS)
@settings(max_examples=30)
def test_any_steps_of_the_clock_allow_no_more_changes_an_hour(kind: str, steps: list[float]) -> None:
    harness = harness_with(kind, "changes", (2, 2))
    process = harness.process()
    for number, step in enumerate(steps):
        process.wall_ahead += step
        turn(harness, process, nodes=8 + 4 * (number % 5))
    for target in TARGETS:
        times = [write.time for write in harness.writes if write.target == target]
        assert most_in_an_hour(times) <= LIMIT + 1, "the first size is not a change"
    assert STALE_AFTER > TURN_SECONDS
