"""Changes of a memory that are stored at once, later, or never."""

from __future__ import annotations

import pytest

from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.record import TargetReference
from recommender.kinds.predictive.policy.memory import PolicyMemory, ReconnectMemory, SessionMemory
from recommender.running.memory.significant_changes import changed_enough_to_write, is_urgent

NOW = 1_800_000_000.0
WEB = TargetReference("apps/v1", "Deployment", "shop", "web")


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


def test_the_first_hold_is_urgent() -> None:
    assert is_urgent(Memory(), remembered(held(NOW + 120.0)))


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


@pytest.mark.parametrize(
    ("before", "after", "worth"),
    [
        pytest.param(Memory(), remembered(held(NOW + 120.0)), True, id="the first hold"),
        pytest.param(remembered(held(NOW + 120.0)), Memory(), True, id="nothing is held any more"),
        pytest.param(Memory(LastValue(3, NOW, NOW)), Memory(LastValue(4, NOW, NOW)), True, id="another value"),
        pytest.param(Memory(LastValue(3, NOW, NOW)), Memory(LastValue(3, NOW + 10, NOW + 10)), False, id="confirmed"),
        pytest.param(Memory(), Memory(changes=(NOW,)), True, id="a change that counts"),
        pytest.param(
            remembered(PolicyMemory(uid="a")), remembered(PolicyMemory(uid="b")), True, id="a target created again"
        ),
        pytest.param(remembered(PolicyMemory(uid="a")), remembered(PolicyMemory(uid="a")), False, id="the same target"),
    ],
)
def test_what_the_next_leader_must_know_exactly_is_stored(before: Memory, after: Memory, *, worth: bool) -> None:
    assert changed_enough_to_write(before, after) is worth
    assert changed_enough_to_write(Memory(by_target={WEB: before}), Memory(by_target={WEB: after})) is worth


def test_a_target_that_comes_or_goes_is_stored() -> None:
    none, one = Memory(), Memory(by_target={WEB: Memory()})
    assert [changed_enough_to_write(*pair) for pair in ((none, one), (one, none), (one, one))] == [True, True, False]
