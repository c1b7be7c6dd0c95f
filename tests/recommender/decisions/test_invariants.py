"""Properties of every sequence of decisions, whatever the inputs, the brakes and the clock do."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.decisions.calculation import CalculationError, InputMissingError
from recommender.decisions.constraints.brakes import step_limit
from recommender.decisions.loop import Decision, decide
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Brakes, Direction, MaxStep, Pause
from recommender.decisions.record import Status
from tests.recommender.decisions.harness import NOW, asks_for, fails_with, inputs, policy

sizes = st.integers(min_value=0, max_value=300)


@dataclass(frozen=True)
class Poll:
    """One poll: the size that the calculation returns, and the state of everything else."""

    requested: int | None
    """The calculated size; None if an input is missing."""
    fault: bool
    current: int | None
    clock_step: float
    """How far the wall clock moves, besides the ten seconds that really pass."""
    input_age: float
    rollout: bool
    annotation: str | None


polls = st.lists(
    st.builds(
        Poll,
        requested=st.none() | sizes,
        fault=st.integers(0, 9).map(lambda number: number == 0),
        current=st.none() | sizes,
        clock_step=st.sampled_from([0.0, 0.0, 0.0, 0.0, -5.0, 30.0, -3600.0, 86400.0]),
        input_age=st.floats(min_value=0, max_value=200),
        rollout=st.booleans(),
        annotation=st.sampled_from([None, None, None, "up", "down", "true", "nonsense", "2027-01-15T08:00:30Z"]),
    ),
    max_size=8,
)
all_brakes = st.builds(
    Brakes,
    paused=st.none() | st.builds(Pause, st.sampled_from(list(Direction)), st.none() | st.just(NOW + 40)),
    max_step=st.none()
    | st.builds(MaxStep, replicas=st.integers(1, 20))
    | st.builds(MaxStep, ratio=st.floats(0.01, 1.0)),
    max_changes_per_hour=st.none() | st.integers(1, 3),
)


def run(brakes: Brakes, sequence: list[Poll]) -> list[tuple[float, Poll, Memory, Decision]]:
    """Return each poll with its time, the memory before it, and the decision."""
    memory, now = Memory(), NOW
    found = []
    for poll in sequence:
        now += 10 + poll.clock_step
        if poll.fault:
            calculate = fails_with(CalculationError("no"))
        elif poll.requested is None:
            calculate = fails_with(InputMissingError("gone"))
        else:
            calculate = asks_for(poll.requested, now - poll.input_age)
        state = inputs(poll.current, time=now, rollout=poll.rollout, paused=poll.annotation)
        decision = decide(policy(brakes=brakes), calculate, state, memory, now)
        found.append((now, poll, memory, decision))
        memory = decision.memory
    return found


@given(all_brakes, polls)
@settings(max_examples=25)
def test_values_are_never_negative_and_only_ok_and_held_records_have_one(brakes: Brakes, sequence: list[Poll]) -> None:
    for _, _, _, decision in run(brakes, sequence):
        record = decision.record
        assert record.replicas is None or record.replicas >= 0
        assert record.replicas is None or record.status in {Status.OK, Status.HELD}
        assert record.replicas is not None or record.status is not Status.OK


@given(all_brakes, polls)
@settings(max_examples=25)
def test_the_binding_step_is_one_of_the_steps(brakes: Brakes, sequence: list[Poll]) -> None:
    for _, _, _, decision in run(brakes, sequence):
        record = decision.record
        assert record.binding is None or record.binding in {step.step for step in record.steps}
        assert record.replicas is None or not record.steps or record.steps[-1].value == record.replicas


@given(all_brakes, polls)
@settings(max_examples=25)
def test_a_value_without_fresh_inputs_keeps_its_time_and_ends(brakes: Brakes, sequence: list[Poll]) -> None:
    for now, poll, before, decision in run(brakes, sequence):
        if poll.fault or (poll.requested is not None and poll.input_age <= 60):
            continue
        record, last = decision.record, before.last
        assert decision.memory.last == last
        if record.replicas is not None:
            assert last is not None
            assert (record.status, record.replicas, record.time) == (Status.HELD, last.replicas, last.decided)
            assert -1 <= now - last.confirmed <= 60


@given(all_brakes, polls)
@settings(max_examples=25)
def test_a_pause_of_decreases_never_lowers_the_value(brakes: Brakes, sequence: list[Poll]) -> None:
    pause = Brakes(Pause(Direction.DOWN), brakes.max_step, brakes.max_changes_per_hour)
    for _, _, before, decision in run(pause, sequence):
        last = None if before.last is None else before.last.replicas
        if last is not None and decision.record.replicas is not None:
            assert decision.record.replicas >= last


@given(all_brakes, polls)
@settings(max_examples=25)
def test_a_change_is_never_larger_than_the_step(brakes: Brakes, sequence: list[Poll]) -> None:
    for _, poll, before, decision in run(brakes, sequence):
        value, last = decision.record.replicas, before.last
        base = poll.current if poll.current is not None else last.replicas if last else None
        if brakes.max_step is None or value is None or base is None or (last and value == last.replicas):
            continue
        assert abs(value - base) <= step_limit(brakes.max_step, base)


@given(all_brakes, polls)
@settings(max_examples=25)
def test_the_changes_of_an_hour_are_never_more_than_allowed(brakes: Brakes, sequence: list[Poll]) -> None:
    for now, _, before, decision in run(brakes, sequence):
        recent = [time for time in decision.memory.changes if now - 3600 < time <= now]
        if decision.memory.last is not None and decision.memory.last.decided == now:
            assert len(recent) == len(decision.memory.changes)
        else:
            assert decision.memory.changes == before.changes, "the clock may be wrong for a moment"
        if brakes.max_changes_per_hour is not None:
            assert len(recent) <= brakes.max_changes_per_hour


@given(all_brakes, polls)
@settings(max_examples=25)
def test_the_same_sequence_gives_the_same_decisions(brakes: Brakes, sequence: list[Poll]) -> None:
    assert [found[3] for found in run(brakes, sequence)] == [found[3] for found in run(brakes, sequence)]
