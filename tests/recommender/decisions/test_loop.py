"""The order of a decision, and what happens when inputs are missing, old or wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.decisions.calculation import CalculationError, InputMissingError
from recommender.decisions.loop import decide
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.policy_settings import Output
from recommender.decisions.record import Status, TargetAction
from tests.recommender.decisions.harness import DNS, NOW, asks_for, braked, fails_with, inputs, policy, remembers

if TYPE_CHECKING:
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.inputs import TargetState
    from recommender.decisions.record import TargetReference

MISSING = fails_with(InputMissingError("nodes cannot be listed"))


def test_a_fresh_value_is_published_and_remembered() -> None:
    decision = decide(policy(), asks_for(11, NOW - 5), inputs(), Memory(), NOW)
    record = decision.record
    assert (record.status, record.replicas, record.time, record.binding) == (Status.OK, 11, NOW, "linear/nodes")
    assert record.message == "linear/nodes: ceil(11 / 1)"
    assert record.targets[0].action is TargetAction.SCALE
    assert decision.memory == Memory(LastValue(11, NOW, NOW - 5))


def test_a_changed_value_counts_as_a_change_and_a_first_value_does_not() -> None:
    first = decide(policy(), asks_for(11), inputs(), Memory(), NOW).memory
    assert first.changes == ()
    same = decide(policy(), asks_for(11), inputs(), first, NOW).memory
    assert same.changes == ()
    assert decide(policy(), asks_for(12), inputs(), same, NOW).memory.changes == (NOW,)


def test_a_note_of_the_calculation_is_the_message() -> None:
    assert decide(policy(), asks_for(11, note="old parameters"), inputs(), Memory(), NOW).record.message == (
        "old parameters"
    )


def test_a_recommendation_that_only_sizes_containers_has_no_replicas() -> None:
    decision = decide(policy(), asks_for(None), inputs(), Memory(), NOW)
    assert (decision.record.status, decision.record.replicas) == (Status.OK, None)
    assert decision.record.targets[0].action is TargetAction.NONE


def test_a_missing_input_holds_the_last_value_with_its_old_time() -> None:
    memory = remembers(7, decided=NOW - 30, confirmed=NOW - 35)
    decision = decide(policy(), MISSING, inputs(), memory, NOW)
    record = decision.record
    assert (record.status, record.replicas, record.time) == (Status.HELD, 7, NOW - 30)
    assert record.message == "nodes cannot be listed; 7 is kept until 2027-01-15T08:00:25Z"
    assert decision.memory == memory


def test_nothing_is_scaled_on_a_held_value() -> None:
    record = decide(policy(), MISSING, inputs(), remembers(7), NOW).record
    assert (record.targets[0].action, record.targets[0].message) == (
        TargetAction.NONE,
        "nothing is written until all inputs are known again",
    )


@pytest.mark.parametrize(
    ("confirmed", "status"),
    [(NOW - 60, Status.HELD), (NOW - 60.5, Status.STALE), (NOW + 0.5, Status.HELD), (NOW + 5, Status.STALE)],
)
def test_a_value_is_held_for_stale_after_its_last_confirmation(confirmed: float, status: Status) -> None:
    record = decide(policy(), MISSING, inputs(), remembers(7, confirmed=confirmed), NOW).record
    assert record.status is status
    assert record.replicas == (7 if status is Status.HELD else None)


def test_a_missing_input_without_a_last_value_is_stale() -> None:
    record = decide(policy(), MISSING, inputs(), Memory(), NOW).record
    assert (record.status, record.replicas, record.message) == (Status.STALE, None, "nodes cannot be listed")


def test_a_stale_record_names_the_last_value() -> None:
    record = decide(policy(), MISSING, inputs(), remembers(7, decided=NOW - 90, confirmed=NOW - 90), NOW).record
    assert record.message == "nodes cannot be listed; the last value was 7 at 2027-01-15T07:58:30Z"
    assert record.time == NOW - 90


@pytest.mark.parametrize(
    ("confirmed", "message"),
    [
        (NOW - 61, "an input is 61 s old, and 60 s are allowed; 7 is kept until 2027-01-15T08:00:50Z"),
        (NOW + 2, "an input has a time in the future, so its age is unknown; 7 is kept until 2027-01-15T08:00:50Z"),
    ],
)
def test_a_value_from_old_inputs_is_not_used(confirmed: float, message: str) -> None:
    decision = decide(policy(), asks_for(11, confirmed), inputs(), remembers(7), NOW)
    assert (decision.record.status, decision.record.replicas, decision.record.message) == (Status.HELD, 7, message)
    assert decision.memory == remembers(7)


def test_an_impossible_size_is_an_error_that_names_what_to_correct() -> None:
    record = decide(policy(), asks_for(2**53), inputs(), remembers(7), NOW).record
    assert (record.status, record.replicas) == (Status.ERROR, None)
    assert record.message == "9007199254740992 is not a number of replicas: correct the parameters, or the query"


def test_a_calculation_error_has_no_value_and_keeps_the_memory() -> None:
    decision = decide(policy(), fails_with(CalculationError("min is 5, max is 3")), inputs(), remembers(7), NOW)
    assert (decision.record.status, decision.record.replicas) == (Status.ERROR, None)
    assert decision.record.message == "min is 5, max is 3"
    assert decision.record.targets[0].current_replicas == 3
    assert decision.memory == remembers(7)


def test_an_unexpected_exception_of_a_calculation_is_an_internal_error() -> None:
    record = decide(policy(), fails_with(ZeroDivisionError("division by zero")), inputs(), Memory(), NOW).record
    assert record.status is Status.ERROR
    assert record.message == "the decision failed with an internal error (ZeroDivisionError: division by zero)"


@pytest.mark.parametrize("replicas", [-1, 2**31])
def test_a_value_that_is_not_a_size_is_an_error(replicas: int) -> None:
    record = decide(policy(), asks_for(replicas), inputs(), Memory(), NOW).record
    assert (record.status, record.replicas) == (Status.ERROR, None)


@pytest.mark.parametrize(
    "last",
    [
        LastValue(-4, NOW, NOW),
        LastValue(4, float("nan"), NOW),
        LastValue(4, NOW, float("inf")),
        LastValue(4, 1e300, 1e300),
    ],
)
def test_an_impossible_remembered_value_is_forgotten(last: LastValue) -> None:
    record = decide(policy(), MISSING, inputs(), Memory(last), NOW).record
    assert (record.status, record.replicas) == (Status.STALE, None)


def test_constraints_follow_the_calculation_and_the_last_that_changes_the_value_binds() -> None:
    record = decide(braked(max_step=None, max_changes_per_hour=1), asks_for(9), inputs(), remembers(4, NOW - 60), NOW)
    assert [step.step for step in record.record.steps] == ["linear/nodes", "maxChangesPerHour"]
    assert (record.record.replicas, record.record.binding) == (4, "maxChangesPerHour")


@pytest.mark.parametrize(
    "calculate",
    [MISSING, asks_for(11), fails_with(CalculationError("min is 5, max is 3"))],
    ids=["input missing", "inputs old", "calculation error"],
)
def test_a_clock_that_is_ahead_for_a_moment_does_not_lift_the_limit_of_changes(calculate: Calculate) -> None:
    limited, memory = braked(max_changes_per_hour=2), remembers(7, NOW - 60, NOW - 30)
    ahead = decide(limited, calculate, inputs(), memory, NOW + 7200)
    assert ahead.record.replicas is None
    after = decide(limited, asks_for(9), inputs(), ahead.memory, NOW + 10)
    assert (after.record.replicas, after.record.binding) == (7, "maxChangesPerHour")


def test_changes_in_the_future_count_as_made_now() -> None:
    memory = decide(policy(), asks_for(7), inputs(), remembers(7, NOW - 4000, NOW - 10, NOW + 9000), NOW).memory
    assert memory.changes == (NOW - 10, NOW)


@pytest.mark.parametrize(
    ("problems", "message"),
    [
        ((), "linear/nodes: ceil(11 / 1)"),
        (("Node n1 is left out",), "linear/nodes: ceil(11 / 1); Node n1 is left out"),
        (("n1", "n2", "n3"), "linear/nodes: ceil(11 / 1); n1; n2; n3"),
        (("n1", "n2", "n3", "n4"), "linear/nodes: ceil(11 / 1); n1; n2 (and 2 more)"),
    ],
)
def test_the_message_names_objects_left_out_of_the_inputs_after_the_reason(
    problems: tuple[str, ...], message: str
) -> None:
    given = inputs()
    given = replace(given, cluster=replace(given.cluster, problems=problems))
    assert decide(policy(), asks_for(11), given, Memory(), NOW).record.message == message


def test_problems_of_pod_placement_are_not_part_of_the_message() -> None:
    given = inputs()
    given = replace(given, cluster=replace(given.cluster, placement_problems=("the file holds no DaemonSets",)))
    assert decide(policy(), asks_for(11), given, Memory(), NOW).record.message == "linear/nodes: ceil(11 / 1)"


@pytest.mark.parametrize("outputs", [frozenset({Output.METRIC}), frozenset({Output.SCALE})])
def test_a_target_that_does_not_exist_is_reported(outputs: frozenset[Output]) -> None:
    given = replace(inputs(), targets={DNS: Observed(None, NOW)})
    record = decide(replace(policy(), outputs=outputs), asks_for(11), given, Memory(), NOW).record
    absence = f"{DNS} does not exist: correct the target, or create it"
    assert (record.status, record.message) == (Status.OK, f"linear/nodes: ceil(11 / 1); {absence}")
    assert [(each.current_replicas, each.message) for each in record.targets] == [(None, absence)]


def test_a_target_of_unknown_size_is_not_reported_as_missing() -> None:
    states: list[dict[TargetReference, Observed[TargetState | None] | Unknown]]
    states = [{}, {DNS: Unknown("forbidden")}, {DNS: Observed(None, NOW - 3600)}]
    for known in states:
        record = decide(policy(), asks_for(11), replace(inputs(), targets=known), Memory(), NOW).record
        assert "does not exist" not in record.message


def test_a_note_of_the_configuration_is_part_of_the_message() -> None:
    record = decide(policy(note="an old version"), asks_for(11, note="old parameters"), inputs(), Memory(), NOW).record
    assert record.message == "old parameters; an old version"
