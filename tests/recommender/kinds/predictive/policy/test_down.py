from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from recommender.kinds.predictive.policy.load_situation import LoadSituation
from recommender.kinds.predictive.policy.memory import PolicyMemory
from recommender.kinds.predictive.policy.sizing import size_of
from tests.recommender.kinds.predictive.policy.policy_harness import (
    LIMIT,
    NOW,
    forecast,
    gently,
    polls,
    settings,
    sizes,
    sticky,
    unready,
)

loads = st.lists(st.floats(0, 3_000_000), min_size=1, max_size=40)


def test_capacity_decays_by_five_percent_in_ten_seconds() -> None:
    found = polls(settings(scale_down=gently()), [2_500_000.0] + [0.0] * 20)
    assert sizes(found) == [max(1, math.ceil(100 * 0.95**step)) for step in range(21)]
    assert {decision.binding for decision in found[1:]} == {"decay"}


def test_a_small_fleet_decays_to_one_replica() -> None:
    found = polls(settings(scale_down=gently()), [100_000.0] + [0.0] * 40)
    assert sizes(found)[-1] == 1


@pytest.mark.parametrize("seconds", [1.0, 10.0, 60.0])
def test_decay_is_the_same_for_every_poll_interval(seconds: float) -> None:
    found = polls(settings(scale_down=gently()), [2_500_000.0] + [500_000.0] * int(240 / seconds), seconds=seconds)
    for place, decision in enumerate(found):
        if place * seconds % 60 == 0:
            assert decision.replicas == max(20, math.ceil(100 * 0.95 ** (place * seconds / 10) - 1e-6))


def test_an_outage_of_the_recommender_causes_at_most_a_minute_of_decay() -> None:
    before = polls(settings(scale_down=gently()), [2_500_000.0])[-1]
    after = polls(settings(scale_down=gently()), [0.0], memory=before.memory, start=NOW + 3600)[-1]
    assert after.replicas == math.ceil(100 * 0.95**6)


def test_decisions_every_five_minutes_have_the_same_decay() -> None:
    policy, memory = settings(scale_down=gently()), PolicyMemory()
    found = []
    for second, load in ((0, 2_500_000.0), (300, 0.0)):
        situation = LoadSituation(load, forecast(load), interval_seconds=300.0)
        found.append(size_of(policy, situation, memory, NOW + second))
        memory = found[-1].memory
    assert sizes(found) == [100, math.ceil(100 * 0.95**30)]


@pytest.mark.parametrize("jump", [-3600.0, -5.0, 0.0])
def test_a_clock_set_back_causes_no_decay(jump: float) -> None:
    before = polls(settings(scale_down=gently()), [2_500_000.0])[-1]
    after = polls(settings(scale_down=gently()), [0.0, 0.0], memory=before.memory, start=NOW + jump)
    assert sizes(after) == [100, 95]


def test_the_first_decision_starts_from_the_present_size() -> None:
    situation = LoadSituation(0.0, forecast(0.0), current_replicas=40)
    first = size_of(settings(scale_down=gently()), situation, PolicyMemory(), NOW)
    second = size_of(settings(scale_down=gently()), situation, first.memory, NOW + 10)
    assert (first.replicas, second.replicas) == (40, 38)


@pytest.mark.parametrize(
    ("changes", "present", "expected"),
    [
        ({}, 40, [40] * 30 + [5]),
        ({"scale_down": gently(None, 86_400.0)}, 40, [40] * 30 + [5]),
        ({"scale_down": gently(None, 0.0)}, 40, [5] * 31),
        ({"scale_down": gently(None, 300.0, drain=300.0)}, 40, [40] * 30 + [39]),
        ({"scale_down": gently(0.05, 300.0)}, 40, [max(5, math.ceil(40 * 0.95**step)) for step in range(31)]),
        ({"max_replicas": 20}, 40, [20] * 30 + [5]),
        ({}, 3, [5] * 31),
        ({}, 0, [5] * 31),
    ],
    ids=[
        "by default",
        "a long window",
        "no window",
        "sessions",
        "decay",
        "above max",
        "smaller than needed",
        "without replicas",
    ],
)
def test_without_a_memory_the_present_size_is_held_as_by_an_hpa(
    changes: dict[str, object], present: int, expected: list[int]
) -> None:
    """An HPA begins its stabilisation window with the current size."""
    policy, memory, found = settings(**changes), PolicyMemory(), []
    for step in range(31):
        situation = LoadSituation(125_000.0, forecast(0.0), current_replicas=present, writes_size=True)
        found.append(size_of(policy, situation, memory, NOW + 10 * step))
        memory = found[-1].memory
    assert sizes(found) == expected


def test_a_size_that_somebody_set_during_a_gap_is_held_for_a_window_but_no_former_one() -> None:
    policy = settings()
    former = polls(policy, [1_000_000.0, 500_000.0])[-1].memory
    for present in (60, 6):
        memory, found = former, []
        for step in range(31):
            situation = LoadSituation(125_000.0, forecast(0.0), current_replicas=present, writes_size=True)
            found.append(size_of(policy, situation, memory, NOW + 3600 + 10 * step))
            memory = found[-1].memory
        assert sizes(found) == [present] * 30 + [5]


def test_after_a_pause_capacity_decays_from_the_kept_size() -> None:
    policy = settings(scale_down=gently())
    memory = polls(policy, [100_000.0])[-1].memory
    situation = LoadSituation(0.0, forecast(0.0), last_replicas=40)
    assert size_of(policy, situation, memory, NOW + 10).replicas == 38


@pytest.mark.parametrize("extra", [{"override": None}, {"min_replicas": 50}])
def test_capacity_raised_by_a_bound_decays_from_the_raised_size(extra: dict[str, object]) -> None:
    policy = settings(scale_down=gently())
    raised = polls(replace(policy, min_replicas=50), [0.0])[-1]
    after = polls(settings(scale_down=gently(), **extra), [0.0], memory=raised.memory, start=NOW + 10)[-1]
    assert after.replicas == (50 if "min_replicas" in extra else 48)


def test_the_window_keeps_the_largest_desired_size() -> None:
    found = polls(settings(scale_down=gently(None, window=30.0)), [250_000.0, 50_000.0, 125_000.0, 0.0, 0.0, 0.0])
    assert sizes(found) == [10, 10, 10, 5, 5, 1]
    assert found[1].binding == "window"


def test_the_default_window_is_five_minutes() -> None:
    found = polls(settings(), [250_000.0] + [0.0] * 30)
    assert sizes(found) == [10] * 30 + [1]


def test_after_a_restart_the_window_holds_a_size_whose_memory_was_written_long_ago() -> None:
    """A memory is written when the size changes, so it lacks an hour of decisions that confirmed the size."""
    policy = settings()
    written = polls(policy, [250_000.0])[-1].memory
    after = polls(policy, [0.0] * 40, memory=written, start=NOW + 3600)
    assert sizes(after) == [10] * 30 + [1] * 10
    assert after[0].binding == "window"


@pytest.mark.parametrize(("window", "held"), [(0.0, 0), (100.0, 10), (86_400.0, 30)])
def test_after_a_restart_a_long_window_holds_for_at_most_five_minutes(window: float, held: int) -> None:
    policy = settings(scale_down=gently(None, window))
    written = polls(policy, [250_000.0])[-1].memory
    after = polls(policy, [0.0] * 40, memory=written, start=NOW + 86_400.0)
    assert sizes(after) == [10] * held + [1] * (40 - held)


def test_a_restart_keeps_the_later_sizes_of_the_window() -> None:
    policy = settings(scale_down=gently(None, 1200.0))
    written = polls(policy, [250_000.0, 125_000.0], seconds=60.0)[-1].memory
    after = polls(policy, [0.0] * 130, memory=written, start=NOW + 300.0)
    assert sizes(after) == [10] * 90 + [5] * 6 + [1] * 34


def test_capacity_goes_down_no_faster_than_sessions_end() -> None:
    found = polls(settings(scale_down=gently(drain=600.0)), [2_500_000.0] + [25_000.0] * 12)
    assert sizes(found)[-1] == math.ceil(100 * math.exp(-120 / 600))
    assert found[-1].binding == "drain"


def test_without_open_sessions_the_decay_alone_counts() -> None:
    found = polls(settings(scale_down=gently(drain=600.0)), [2_500_000.0] + [0.0] * 12)
    assert sizes(found)[-1] == math.ceil(100 * 0.95**12)


def test_the_session_length_is_measured_on_pods_that_take_no_new_sessions() -> None:
    policy, memory = sticky(scale_down=gently()), PolicyMemory()
    for step in range(30):
        left = 25_000 * math.exp(-step * 10 / 300)
        situation = LoadSituation(2_500_000.0, forecast(0.0), unready(left, left, seconds=None))
        memory = size_of(policy, situation, memory, NOW + 10 * step).memory
    assert memory.sessions.open_seconds / memory.sessions.ended == pytest.approx(300, rel=0.01)
    found = size_of(policy, LoadSituation(2_000_000.0, forecast(0.0)), memory, NOW + 300)
    assert (found.replicas, found.binding) == (math.ceil(100 * math.exp(-10 / 300)), "drain")


@pytest.mark.parametrize(
    ("seconds", "ended"),
    [(10.0, 5000.0), (60.0, 5000.0), (61.0, 0.0), (0.0, 0.0), (-10.0, 0.0)],
)
def test_sessions_are_compared_with_the_last_poll_only_if_it_was_recent(seconds: float, ended: float) -> None:
    policy = sticky(scale_down=gently())
    before = LoadSituation(100_000.0, forecast(0.0), unready(25_000))
    memory = size_of(policy, before, PolicyMemory(), NOW).memory
    after = LoadSituation(95_000.0, forecast(0.0), unready(20_000))
    assert size_of(policy, after, memory, NOW + seconds).memory.sessions.ended in {ended, ended / 2}


def test_a_mass_reconnect_does_not_count_as_ended_sessions() -> None:
    policy = sticky(scale_down=gently())
    memory = size_of(policy, LoadSituation(100_000.0, forecast(0.0), unready(25_000)), PolicyMemory(), NOW).memory
    after = LoadSituation(50_000.0, forecast(0.0), unready(12_500))
    assert size_of(policy, after, memory, NOW + 10).memory.sessions.ended == 0.0


@given(loads, st.sampled_from([None, 0.05, 0.3]), st.sampled_from([0.0, 35.0, 300.0]), st.floats(1, 60))
@examples(max_examples=60)
def test_capacity_never_falls_below_load_and_reserve_nor_faster_than_the_decay(
    series: list[float], decay: float | None, window: float, seconds: float
) -> None:
    policy = settings(scale_down=gently(decay, window), headroom_ratio=0.1)
    found = polls(policy, series, seconds=seconds)
    for load, decision in zip(series, found, strict=True):
        assert decision.replicas is not None
        assert decision.replicas * LIMIT >= load * 1.1 * (1 - 1e-9)
    for before, after in pairwise(found):
        assert before.memory.capacity is not None
        assert after.replicas is not None
        kept = 0.0 if decay is None else (1 - decay) ** (seconds / 10)
        assert after.replicas >= before.memory.capacity * kept - 1e-6


@given(loads, st.floats(1, 3), st.sampled_from([5.0, 10.0, 60.0]))
@examples(max_examples=40)
def test_more_load_never_means_fewer_replicas(series: list[float], factor: float, seconds: float) -> None:
    policy = settings(scale_down=gently(0.05, 60.0), headroom_ratio=0.1)
    smaller, larger = (
        polls(policy, series, seconds=seconds),
        polls(policy, [factor * x for x in series], seconds=seconds),
    )
    assert all((a or 0) <= (b or 0) for a, b in zip(sizes(smaller), sizes(larger), strict=True))


@given(loads, st.integers(1, 20))
@examples(max_examples=30)
def test_a_restart_changes_no_decision(series: list[float], restart: int) -> None:
    policy = sticky(scale_down=gently(0.05, 60.0))
    whole = polls(policy, series)
    first = polls(policy, series[:restart])
    text = msgspec.json.encode(first[-1].memory)
    memory = msgspec.json.decode(text, type=PolicyMemory)
    rest = polls(policy, series[restart:], memory=memory, start=NOW + 10 * len(first))
    assert sizes(whole) == sizes(first) + sizes(rest)
    assert len(text) < 2000


def test_a_frozen_size_is_kept_while_the_size_of_the_target_is_looked_up_after_a_restart() -> None:
    policy = settings(scale_down=gently(), freeze_unless="up")
    memory = polls(settings(scale_down=gently()), [1_000_000.0])[-1].memory
    situation = LoadSituation(0.0, forecast(0.0), gate=0.0, writes_size=True, last_replicas=40)
    found = size_of(policy, situation, memory, NOW + 3600)
    assert (found.replicas, found.binding) == (40, "held")
