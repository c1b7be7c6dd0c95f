"""Changes of a memory that are stored at once, later, or never."""

from __future__ import annotations

import pytest

from recommender.decisions.memory import LastValue, Memory
from recommender.kinds.predictive.policy.memory import PolicyMemory, ReconnectMemory, SessionMemory
from recommender.running.memory.significant_changes import changed_enough_to_write, is_urgent

NOW = 1_800_000_000.0


def remembered(own: PolicyMemory) -> Memory:
    return Memory(last=LastValue(3, NOW, NOW), own=own)


def held(until: float) -> PolicyMemory:
    return PolicyMemory(time=NOW, reconnect=ReconnectMemory(held_until=until))


@pytest.mark.parametrize(
    ("before", "after", "urgent"),
    [
        (PolicyMemory(time=NOW), held(NOW + 120.0), True),
        (held(NOW + 60.0), held(NOW + 120.0), True),
        (held(NOW + 120.0), held(NOW + 120.0), False),
        (PolicyMemory(), held(NOW - 1.0), False),
        (
            PolicyMemory(sessions=SessionMemory(open_seconds=5e9)),
            PolicyMemory(sessions=SessionMemory(open_seconds=5.1e9)),
            False,
        ),
        (
            PolicyMemory(reconnect=ReconnectMemory(((1.0, 5e9),))),
            PolicyMemory(reconnect=ReconnectMemory(((2.0, 6e9),))),
            False,
        ),
    ],
)
def test_only_the_beginning_or_end_of_a_hold_is_urgent(
    before: PolicyMemory, after: PolicyMemory, *, urgent: bool
) -> None:
    assert is_urgent(remembered(before), remembered(after)) == urgent


@pytest.mark.parametrize(
    ("before", "after", "worth"),
    [({}, {"nodes": 3}, True), ({"nodes": 3}, {}, True), ({"nodes": 3}, {"nodes": 4}, False)],
)
def test_a_number_of_known_objects_is_stored_only_if_it_becomes_zero_or_positive(
    before: dict[str, int], after: dict[str, int], *, worth: bool
) -> None:
    assert changed_enough_to_write(Memory(known=before), Memory(known=after)) == worth


@pytest.mark.parametrize("amount", [3.0, 3e9, 1e12])
def test_an_amount_that_changes_by_more_than_a_twentieth_is_written_however_large_it_is(amount: float) -> None:
    before, after, near = (
        remembered(PolicyMemory(sessions=SessionMemory(open_seconds=each)))
        for each in (amount, 1.2 * amount, 1.01 * amount)
    )
    assert changed_enough_to_write(before, after)
    assert not changed_enough_to_write(before, near)
