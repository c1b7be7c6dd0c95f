"""Several targets of one recommendation: each has its own situation, brakes, pause and memory; limits always hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import Autoscaler, ClusterState, Observed, Unknown
from recommender.decisions.calculation import Calculation, InputMissingError
from recommender.decisions.constraints.pauses import ANNOTATION
from recommender.decisions.inputs import Inputs, TargetState
from recommender.decisions.limits import range_limits
from recommender.decisions.loop import Decision, decide
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Brakes, Direction, MaxStep, Pause
from recommender.decisions.record import Record, Status, TargetAction, TargetReference
from recommender.decisions.replicas import Replicas
from recommender.decisions.targets.several_targets import whole_record
from recommender.outputs.pending_writes import pending_writes_of
from tests.recommender.decisions.harness import DNS, NOW, WEB, asks_for, fails_with, policy, remembers, sized

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.calculation import Calculate, DecisionContext, SettledValue
    from recommender.decisions.policy_settings import RecommendationPolicy

A = TargetReference("apps/v1", "Deployment", "team-a", "web")
B = TargetReference("apps/v1", "Deployment", "team-b", "web")
BOTH = policy(targets=(A, B), limits=range_limits(1, 10))
ROLLOUT_TO_5000 = TargetState(5000, rollout=True)


def known(states: Mapping[TargetReference, TargetState | None]) -> Inputs:
    none: tuple[Autoscaler, ...] = ()
    autoscalers = {target.namespace: Observed(none, NOW) for target in states}
    return Inputs(
        ClusterState(autoscalers=autoscalers),
        targets={target: Observed(state, NOW) for target, state in states.items()},
    )


def sizes(record: Record) -> dict[TargetReference, int | None]:
    return {each.target: each.recommended_replicas for each in record.targets}


@pytest.mark.parametrize(
    ("a", "brakes", "expected"),
    [
        (ROLLOUT_TO_5000, Brakes(), (10, 4)),
        (ROLLOUT_TO_5000, Brakes(max_step=MaxStep(replicas=2)), (10, 4)),
        (TargetState(5000), Brakes(max_step=MaxStep(replicas=2)), (10, 4)),
        (TargetState(7, paused="true"), Brakes(), (7, 4)),
        (TargetState(7, paused="nonsense"), Brakes(), (7, 4)),
        (None, Brakes(), (4, 4)),
    ],
    ids=["rollout", "rollout and maxStep", "maxStep", "paused", "unreadable pause", "does not exist"],
)
def test_the_situation_of_one_target_does_not_size_another(
    a: TargetState | None, brakes: Brakes, expected: tuple[int, int]
) -> None:
    record = decide(replace(BOTH, brakes=brakes), asks_for(4), known({A: a, B: TargetState(3)}), Memory(), NOW).record
    assert sizes(record) == dict(zip((A, B), expected, strict=True))
    assert record.replicas == max(expected)
    assert [(write.target, write.replicas) for write in pending_writes_of(record, NOW + 60) if write.target == B] == [
        (B, 4)
    ]


@pytest.mark.parametrize(
    ("of_targets", "expected"),
    [
        # (value, status, time) of each target -> of the recommendation
        ([(5, Status.OK, NOW - 30), (9, Status.OK, NOW)], (9, Status.OK, NOW - 30)),
        ([(5, Status.HELD, NOW - 9), (9, Status.OK, NOW)], (9, Status.HELD, NOW - 9)),
        ([(None, Status.STALE, NOW), (None, Status.ERROR, NOW)], (None, Status.ERROR, NOW)),
        ([(None, Status.ERROR, NOW), (None, Status.STALE, NOW)], (None, Status.ERROR, NOW)),
    ],
)
def test_the_recommendation_is_as_old_and_as_bad_as_its_worst_target(
    of_targets: list[tuple[int | None, Status, float]], expected: tuple[int | None, Status, float]
) -> None:
    made = decide(replace(BOTH, targets=(A,)), asks_for(4), known({A: TargetState(3)}), Memory(), NOW).record
    records = [replace(sized(made, size), status=status, time=time) for size, status, time in of_targets]
    found = whole_record(records)
    assert (found.replicas, found.status, found.time) == expected


class Waiting(Replicas):
    """A size that may be decided again at a time that depends on the target."""

    def settled(self, question: DecisionContext) -> SettledValue:
        [target] = question.policy.targets
        return replace(Replicas.settled(self, question), decide_again={A: NOW + 7, B: NOW + 5}[target])


def test_the_next_decision_is_due_at_the_earliest_time_of_any_target() -> None:
    states = known({A: TargetState(3), B: TargetState(3)})
    waiting = decide(BOTH, lambda *_: Calculation(Waiting(4), NOW), states, Memory(), NOW)  # type: ignore[arg-type]
    assert waiting.decide_again == NOW + 5
    assert decide(BOTH, asks_for(4), states, Memory(), NOW).decide_again is None


def test_a_pause_of_one_target_is_reported_and_holds_only_that_target() -> None:
    inputs = known({A: TargetState(7, paused="true"), B: TargetState(3)})
    record = decide(BOTH, asks_for(4), inputs, Memory(), NOW).record
    assert record.status is Status.HELD
    assert f"paused by the annotation {ANNOTATION} of {A}: 7 is kept" in record.message
    assert {each.target: each.action for each in record.targets} == {A: TargetAction.NONE, B: TargetAction.SCALE}


def test_each_target_counts_its_own_changes() -> None:
    limited = replace(BOTH, brakes=Brakes(max_changes_per_hour=1))
    memory = Memory(by_target={A: remembers(5, NOW - 60), B: remembers(3)})
    found = decide(limited, asks_for(8), known({A: TargetState(5), B: TargetState(3)}), memory, NOW)
    assert sizes(found.record) == {A: 5, B: 8}
    assert found.memory.by_target[A].changes == (NOW - 60,)
    assert found.memory.by_target[B].changes == (NOW,)


def test_a_memory_of_all_targets_together_is_not_used_for_single_targets() -> None:
    paused = replace(BOTH, brakes=Brakes(paused=Pause(Direction.BOTH)))
    found = decide(paused, asks_for(8), known({A: TargetState(5), B: TargetState(3)}), remembers(9), NOW)
    assert sizes(found.record) == {A: 5, B: 3}


def test_a_target_that_remains_alone_keeps_its_own_memory() -> None:
    memory = Memory(by_target={A: remembers(5), B: remembers(3)})
    paused = replace(BOTH, targets=(B,), brakes=Brakes(paused=Pause(Direction.BOTH)))
    assert decide(paused, asks_for(8), known({B: TargetState(4)}), memory, NOW).record.replicas == 3


def test_a_target_without_a_last_value_does_not_get_that_of_another() -> None:
    memory = Memory(by_target={A: remembers(5)})
    record = decide(BOTH, fails_with(InputMissingError("no answer")), known({}), memory, NOW).record
    assert (record.status, sizes(record)) == (Status.HELD, {A: 5, B: None})


def test_a_size_held_without_inputs_stays_within_its_bounds() -> None:
    record = decide(
        policy(limits=range_limits(1, 10)), fails_with(InputMissingError("no answer")), known({}), remembers(40), NOW
    ).record
    assert (record.status, record.replicas, record.binding) == (Status.HELD, 10, "max")
    assert "10 is kept" in record.message


def test_the_bound_that_cuts_a_held_size_is_named() -> None:
    bounded = replace(BOTH, targets=(A,), limits=range_limits(1, 10))
    record = decide(bounded, asks_for(4), known({A: TargetState(5000, rollout=True)}), Memory(), NOW).record
    assert (record.replicas, record.binding) == (10, "max")
    assert record.message.startswith(f"not below 5000 until the rollout of {A} is complete; max: ")


STATES = st.none() | st.builds(
    TargetState,
    st.integers(0, 6000),
    rollout=st.booleans(),
    paused=st.sampled_from([None, "true", "up", "down", "false", "x", "2027-01-15T09:00:00Z"]),
)
BRAKES = st.builds(
    Brakes,
    st.none() | st.builds(Pause, st.sampled_from(Direction)),
    st.none() | st.builds(MaxStep, replicas=st.integers(1, 9)) | st.builds(MaxStep, ratio=st.floats(0.01, 1)),
    st.none() | st.integers(0, 3),
)
MEMORIES = st.just(Memory()) | st.builds(remembers, st.integers(0, 6000), st.floats(NOW - 3599, NOW))
CALCULATIONS = st.just(fails_with(InputMissingError("no answer"))) | st.integers(0, 100_000).map(asks_for)


@st.composite
def polls(draw: st.DrawFn) -> tuple[RecommendationPolicy, Memory, list[tuple[Calculate, Inputs]]]:
    targets = draw(st.permutations((A, B, DNS, WEB)).map(tuple))[: draw(st.integers(1, 4))]
    lowest = draw(st.integers(0, 20))
    limits = range_limits(lowest, draw(st.none() | st.integers(lowest, 40)))
    memory = Memory(by_target={target: draw(MEMORIES) for target in targets})
    rounds = [
        (draw(CALCULATIONS), known({target: draw(STATES) for target in targets}))
        for _ in range(draw(st.integers(1, 3)))
    ]
    return policy(targets=targets, brakes=draw(BRAKES), limits=limits), memory, rounds


@given(polls(), st.data())
def test_sizes_stay_within_bounds_and_no_target_changes_another(
    polled: tuple[RecommendationPolicy, Memory, list[tuple[Calculate, Inputs]]], data: st.DataObject
) -> None:
    made, memory, rounds = polled
    target = data.draw(st.sampled_from(made.targets))
    alone, own = replace(made, targets=(target,)), Memory(by_target={target: memory.by_target[target]})
    for number, (calculate, inputs) in enumerate(rounds):
        now = NOW + 10.0 * number
        together = decide(made, calculate, inputs, memory, now)
        by_itself = decide(alone, calculate, inputs, own, now)
        _check_bounds(made, together, now)
        (outcome,) = [each for each in together.record.targets if each.target == target]
        (same,) = by_itself.record.targets
        assert (outcome.recommended_replicas, outcome.action) == (same.recommended_replicas, same.action)
        if len(made.targets) > 1:
            assert together.memory.by_target[target] == by_itself.memory
        memory, own = together.memory, by_itself.memory


def _check_bounds(made: RecommendationPolicy, decision: Decision, now: float) -> None:
    written = [write.replicas for write in pending_writes_of(decision.record, now + 60)]
    published = [size for size in (*sizes(decision.record).values(), decision.record.replicas) if size is not None]
    for size in (*written, *published):
        for limit in made.limits:
            assert size == limit.apply(size), (limit, size)


def test_a_target_that_cannot_be_looked_up_does_not_hold_others() -> None:
    inputs = replace(known({B: TargetState(3)}), targets={A: Unknown("no answer"), B: Observed(TargetState(3), NOW)})
    record = decide(BOTH, asks_for(4), inputs, Memory(), NOW).record
    assert {each.target: each.action for each in record.targets} == {A: TargetAction.REFUSED, B: TargetAction.SCALE}
