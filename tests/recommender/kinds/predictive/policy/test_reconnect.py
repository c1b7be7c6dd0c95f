from __future__ import annotations

import pytest

from recommender.kinds.predictive.policy.memory import ReconnectMemory
from recommender.kinds.predictive.policy.reconnect import after_observed_load
from recommender.kinds.predictive.predictive_settings import Connections
from tests.recommender.kinds.predictive.policy.policy_harness import NOW, gently, polls, sizes, sticky

CONNECTIONS = Connections(limit=25_000)


def held(loads: list[tuple[float, float]]) -> list[float | None]:
    """Return, after each pair of second and load, for how many more seconds the capacity is held."""
    memory, found = ReconnectMemory(), []
    for second, load in loads:
        memory = after_observed_load(memory, CONNECTIONS, load, NOW + second)
        found.append(None if memory.held_until is None else memory.held_until - NOW - second)
    return found


@pytest.mark.parametrize(
    ("loads", "seconds"),
    [
        ([(0, 100), (10, 71)], [None, None]),
        ([(0, 100), (10, 70)], [None, 120]),
        ([(0, 100), (60, 70)], [None, 120]),
        # A fall by 30%, but for a rounding error.
        ([(0, 2_995_930), (10, 2_097_151)], [None, 120]),
        # More than a minute apart.
        ([(0, 100), (61, 70)], [None, None]),
        # Little by little, within a minute.
        ([(0, 100), (20, 90), (40, 80), (50, 70)], [None, None, None, 120]),
        # The same fall does not count twice, and the hold ends.
        ([(0, 100), (10, 50), (20, 50), (60, 50), (129, 50), (130, 50)], [None, 120, 110, 70, 1, None]),
        # Connections come back, and the hold goes on to its end: a second wave often follows.
        ([(0, 100), (10, 50), (70, 100), (130, 100)], [None, 120, 60, None]),
        # Connections come back and break again: held anew.
        ([(0, 100), (10, 50), (70, 100), (80, 60)], [None, 120, 60, 120]),
        # The remaining connections break too.
        ([(0, 100), (10, 50), (20, 30)], [None, 120, 120]),
        # A load that stays at zero is not a fall.
        ([(0, 0), (10, 0)], [None, None]),
        # A load may be in thousands of connections.
        ([(0, 0.9), (10, 0.6)], [None, 120]),
        # The clock was set back.
        ([(0, 100), (10, 50), (-3600, 50)], [None, 120, 120]),
        # Since then, the load of the wrong clock counts for a minute, and no longer.
        ([(30, 100), (0, 90), (60, 70)], [None, None, 120]),
        ([(30, 100), (0, 90), (61, 70)], [None, None, None]),
    ],
)
def test_a_fall_within_a_minute_holds_the_capacity(
    loads: list[tuple[float, float]], seconds: list[float | None]
) -> None:
    assert held(loads) == seconds


def test_capacity_is_held_and_then_decays() -> None:
    found = polls(sticky(scale_down=gently()), [2_500_000.0] + [1_000_000.0] * 14)
    assert sizes(found) == [100] * 13 + [95, 91]
    assert [decision.binding for decision in found[1:]] == ["reconnectHold"] * 12 + ["decay"] * 2


def test_capacity_is_held_without_a_decay_too() -> None:
    found = polls(sticky(scale_down=gently(None)), [250_000.0] + [100_000.0] * 13)
    assert sizes(found) == [10] * 13 + [4]


def test_a_hold_does_not_delay_scaling_up() -> None:
    assert sizes(polls(sticky(scale_down=gently()), [250_000.0, 100_000.0, 500_000.0])) == [10, 10, 20]


def test_a_slow_fall_of_the_load_does_not_begin_a_hold() -> None:
    found = polls(sticky(scale_down=gently()), [2_500_000.0 * 0.96**step for step in range(20)])
    assert "reconnectHold" not in {decision.binding for decision in found}


def test_a_poll_without_a_load_neither_begins_nor_ends_a_hold() -> None:
    found = polls(sticky(scale_down=gently()), [2_500_000.0, 1_000_000.0, None, 1_000_000.0])
    assert sizes(found) == [100] * 4
    assert found[-1].binding == "reconnectHold"


def test_a_hold_ends_later_if_the_clock_is_set_forward() -> None:
    policy = sticky(scale_down=gently())
    memory = polls(policy, [2_500_000.0, 1_000_000.0])[-1].memory.prolonged(3600.0)
    found = polls(policy, [1_000_000.0] * 12, memory=memory, start=NOW + 3600.0 + 20.0)
    assert sizes(found) == [100] * 11 + [95]
