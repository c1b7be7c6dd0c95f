"""Each constraint alone, in tables, and how their settings are read."""

from __future__ import annotations

import pytest

from recommender.decisions.constraints.brakes import apply_brakes as through_brakes
from recommender.decisions.constraints.brakes import step_limit
from recommender.decisions.constraints.pauses import read_pause
from recommender.decisions.inputs import TargetState
from recommender.decisions.loop import decide
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.policy_settings import Brakes, Direction, MaxStep, Pause
from recommender.decisions.record import Status, TargetAction
from recommender.decisions.replicas import NO_VALUE, Replicas
from recommender.decisions.targets.target_situation import KnownTarget, Situation
from tests.recommender.decisions.harness import DNS, NOW, WEB, asks_for, braked, inputs, policy, remembers

STALE = policy().stale_after_seconds
BOTH, UP, DOWN = Pause(Direction.BOTH), Pause(Direction.UP), Pause(Direction.DOWN)


def situation(*sizes: int, last: int | None = None, changes: tuple[float, ...] = (), rollouts: int = 0) -> Situation:
    """Return a situation with targets of these sizes, of which the first `rollouts` are being rolled out."""
    references = (DNS, WEB)
    targets = (
        KnownTarget(references[place], TargetState(size, rollout=place < rollouts)) for place, size in enumerate(sizes)
    )
    remembered = None if last is None else LastValue(last, NOW, NOW)
    return Situation(NOW, tuple(targets), remembered, changes)


def limited(brakes: Brakes, given: Situation, value: int) -> Replicas:
    return through_brakes(Replicas(value), brakes, given)


@pytest.mark.parametrize(
    ("given", "value", "expected"),
    [
        (situation(10), 4, 4),
        (situation(10, rollouts=1), 4, 10),
        (situation(10, rollouts=1), 12, 12),
        (situation(3, 10, rollouts=1), 2, 3),
        (situation(3, 10, rollouts=2), 2, 10),
        (situation(), 2, 2),
    ],
)
def test_a_rollout_is_a_floor(given: Situation, value: int, expected: int) -> None:
    assert limited(Brakes(), given, value).replicas == expected


def test_a_rollout_reports_the_size_it_keeps_and_until_when() -> None:
    found = limited(Brakes(), situation(10, rollouts=1), 4)
    assert found.holds == ("not below 10 until the rollout of Deployment kube-system/coredns is complete",)


@pytest.mark.parametrize(
    ("step", "given", "value", "expected"),
    [
        (MaxStep(replicas=2), situation(10), 20, 12),
        (MaxStep(replicas=2), situation(10), 1, 8),
        (MaxStep(replicas=2), situation(10), 11, 11),
        (MaxStep(replicas=2), situation(1), 0, 0),
        (MaxStep(ratio=0.1), situation(29), 100, 31),
        (MaxStep(ratio=0.29), situation(100), 1000, 129),
        (MaxStep(ratio=0.1), situation(3), 100, 4),
        (MaxStep(ratio=0.1), situation(0), 100, 1),
        (MaxStep(replicas=2), situation(3, 10), 20, 12),
        (MaxStep(replicas=2), situation(10, last=5), 20, 12),
        (MaxStep(replicas=2), situation(last=5), 20, 7),
        (MaxStep(replicas=2), situation(), 20, 20),
        (None, situation(10), 20, 20),
    ],
)
def test_max_step_limits_the_distance_from_the_present_size(
    step: MaxStep | None, given: Situation, value: int, expected: int
) -> None:
    assert limited(Brakes(max_step=step), given, value).replicas == expected


def test_a_recommendation_without_a_number_passes_all_brakes() -> None:
    brakes = Brakes(paused=BOTH, max_step=MaxStep(ratio=0.1), max_changes_per_hour=1)
    given = situation(3, last=5, changes=(NOW - 60,), rollouts=1)
    assert through_brakes(NO_VALUE, brakes, given) == NO_VALUE


def test_max_step_shows_its_calculation() -> None:
    found = limited(Brakes(max_step=MaxStep(replicas=2)), situation(10), 20)
    assert found.steps[-1].detail == "10 + 2, from the current size of Deployment kube-system/coredns"
    assert found.holds == ()


@pytest.mark.parametrize(("ratio", "base", "limit"), [(0.05, 20, 1), (0.05, 100, 5), (0.29, 100, 29), (1.0, 7, 7)])
def test_a_ratio_is_rounded_down_to_at_least_one(ratio: float, base: int, limit: int) -> None:
    assert step_limit(MaxStep(ratio=ratio), base) == limit


@pytest.mark.parametrize(
    ("changes", "value", "expected", "holds"),
    [
        ((NOW - 60,), 9, 9, False),
        ((NOW - 60, NOW - 30), 9, 5, True),
        # Nothing is kept back, so the value is not held.
        ((NOW - 60, NOW - 30), 5, 5, False),
    ],
)
def test_changes_in_an_hour_are_limited(changes: tuple[float, ...], value: int, expected: int, *, holds: bool) -> None:
    found = limited(Brakes(max_changes_per_hour=2), situation(3, last=5, changes=changes), value)
    assert (found.replicas, bool(found.holds)) == (expected, holds)


def test_the_limit_of_changes_reports_until_when_it_holds() -> None:
    given = situation(3, last=5, changes=(NOW - 90, NOW - 60, NOW - 30))
    found = limited(Brakes(max_changes_per_hour=2), given, 9)
    # The oldest of the last two has to leave the hour.
    assert found.holds == ("5 is kept: 3 changes in the last hour, and 2 are allowed, until 2027-01-15T08:59:00Z",)


@pytest.mark.parametrize(
    ("pause", "value", "expected", "holds"),
    [
        (None, 9, 9, False),
        (BOTH, 9, 5, True),
        (BOTH, 1, 5, True),
        (BOTH, 5, 5, True),
        (UP, 9, 5, True),
        (UP, 1, 1, False),
        (DOWN, 1, 5, True),
        (DOWN, 9, 9, False),
        (Pause(Direction.BOTH, NOW + 1), 9, 5, True),
        (Pause(Direction.BOTH, NOW), 9, 9, False),
    ],
)
def test_a_pause_keeps_the_last_value(pause: Pause | None, value: int, expected: int, *, holds: bool) -> None:
    found = limited(Brakes(paused=pause), situation(3, last=5), value)
    assert (found.replicas, bool(found.holds)) == (expected, holds)


def test_a_pause_without_a_last_value_keeps_the_present_size() -> None:
    assert limited(Brakes(paused=BOTH), situation(3), 9).replicas == 3


def test_a_pause_reports_its_source_and_its_end() -> None:
    found = limited(Brakes(paused=Pause(Direction.BOTH, NOW + 60)), situation(3, last=5), 9)
    assert found.holds == ("paused by the configuration until 2027-01-15T08:01:00Z: 5 is kept, and not changed to 9",)


def test_a_paused_recommendation_that_never_had_a_value_has_none() -> None:
    decision = decide(braked(paused=BOTH), asks_for(9), inputs(None), Memory(), NOW)
    assert (decision.record.status, decision.record.replicas) == (Status.HELD, None)
    assert decision.memory.last is None
    assert "neither a last value nor the current size is known" in decision.record.message
    assert (decision.record.replicas, decision.record.binding) == (None, None)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        ("true", 9, 5),
        ("up", 9, 5),
        ("up", 1, 1),
        ("down", 1, 5),
        ("false", 9, 9),
        ("9999-12-31T23:59:59Z", 9, 5),
        # This is in the year 10000 in UTC.
        ("9999-12-31T23:59:59-05:00", 9, 5),
        ("2027-01-15T08:00:01Z", 9, 5),
        ("2027-01-15T10:00:00+02:00", 9, 9),
        ("2027-01-15T07:59:59Z", 9, 9),
        ("", 9, 5),
        ("yes", 1, 5),
        ("2027-13-15", 9, 5),
    ],
)
def test_the_annotation_of_the_target_pauses_too(annotation: str, value: int, expected: int) -> None:
    record = decide(policy(), asks_for(value), inputs(3, paused=annotation), remembers(5), NOW).record
    assert record.replicas == expected
    assert record.binding == ("linear/nodes" if value == expected else "paused")


@pytest.mark.parametrize(
    ("pause", "annotation", "value", "expected"),
    [(UP, "down", 9, 5), (UP, "down", 1, 5), (DOWN, "up", 9, 5), (UP, "up", 1, 1), (UP, "false", 1, 1)],
)
def test_the_pauses_of_the_configuration_and_of_the_target_hold_together(
    pause: Pause, annotation: str, value: int, expected: int
) -> None:
    record = decide(braked(paused=pause), asks_for(value), inputs(3, paused=annotation), remembers(5), NOW).record
    assert record.replicas == expected


@pytest.mark.parametrize(
    ("age", "rollout", "value", "expected", "current"),
    [
        (0.0, False, 9, 6, 4),
        (0.0, True, 3, 4, 4),
        (STALE + 1.0, False, 9, 7, None),
        (STALE + 1.0, True, 3, 3, None),
    ],
)
def test_a_size_that_was_read_too_long_ago_limits_nothing_and_is_not_shown(
    age: float, value: int, expected: int, current: int | None, *, rollout: bool
) -> None:
    given = inputs(4, rollout=rollout, time=NOW - age)
    record = decide(braked(max_step=MaxStep(replicas=2)), asks_for(value), given, remembers(5), NOW).record
    assert (record.replicas, record.targets[0].current_replicas) == (expected, current)


def test_an_invalid_pause_annotation_is_reported() -> None:
    record = decide(policy(), asks_for(9), inputs(3, paused="tomorrow"), remembers(5), NOW).record
    assert record.message == (
        "paused by the annotation tidewatch.io/paused of Deployment kube-system/coredns, which cannot be read "
        "('tomorrow' is not a pause: write true, false, up, down, or a time such as 2026-11-21T06:00:00Z): "
        "5 is kept, and not changed to 9"
    )


def test_a_size_set_by_hand_during_a_pause_is_kept() -> None:
    target = decide(braked(paused=BOTH), asks_for(9), inputs(8), remembers(5), NOW).record.targets[0]
    assert (target.action, target.message) == (TargetAction.NONE, "paused by the configuration")


def test_a_pause_of_increases_allows_decreases() -> None:
    target = decide(braked(paused=UP), asks_for(2), inputs(8), remembers(5), NOW).record.targets[0]
    assert target.action is TargetAction.SCALE


@pytest.mark.parametrize("text", ["True", "0", "down ", "2026-11-21", "2026-11-21 06:00:00Z", "2026-11-21T06:00:00"])
def test_an_invalid_pause_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a pause: write true, false, up, down, or a time"):
        read_pause(text)


def test_an_invalid_pause_is_shortened_in_the_message() -> None:
    with pytest.raises(ValueError, match="x…' is not a pause") as refused:
        read_pause("x" * 262_144)
    assert len(str(refused.value)) < 200
