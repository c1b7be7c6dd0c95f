"""Failed polls are shown by `/last-poll` and counted for `--max-sync-failures`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Unknown
from recommender.commands.proportional.poll_state import PollState
from recommender.decisions.calculation import CalculationError, InputMissingError
from recommender.decisions.loop import decide
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Owners
from recommender.decisions.record import TargetReference
from recommender.outputs.pending_writes import PendingWrite
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from tests.recommender.decisions.harness import DNS, NOW, asks_for, fails_with, inputs, policy, remembers
from tests.support.readings import FakeClock

if TYPE_CHECKING:
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.record import Record

PERIOD = 10.0
FORGETFUL = Memory()
NAMED = policy(owners=Owners(autoscalers_required=False))


def record(found: Inputs, calculate: Calculate | None = None, memory: Memory = FORGETFUL) -> Record:
    return decide(NAMED, calculate or asks_for(5), found, memory, NOW).record


def unreadable() -> Inputs:
    found = inputs()
    return type(found)(found.cluster, targets={DNS: Unknown("the API server did not answer")})


BAD = record(inputs(), fails_with(CalculationError("no ConfigMap")))


@pytest.fixture
def given_up() -> list[str]:
    return []


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def state(given_up: list[str], clock: FakeClock) -> PollState:
    return PollState(2, PERIOD, given_up.append, clock.clock.monotonic)


@pytest.mark.parametrize(
    "good",
    [
        record(inputs()),
        record(inputs(paused="true"), memory=remembers(3)),
        record(inputs(rollout=True), asks_for(2), remembers(3)),
        record(inputs(), asks_for(5, note="the ConfigMap cannot be used; the parameters of … stay in use")),
    ],
    ids=["decided", "paused by an annotation", "held by a rollout", "last good parameters"],
)
def test_a_poll_with_a_decision_from_fresh_inputs_has_not_failed(
    state: PollState, given_up: list[str], good: Record
) -> None:
    state.record_poll([good])
    state.record_poll([good])
    assert state.answer().status == 200
    assert given_up == []


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (record(inputs(), fails_with(CalculationError("no ConfigMap"))), b"no ConfigMap"),
        (record(inputs(), fails_with(InputMissingError("no nodes"))), b"no nodes"),
        (record(inputs(), fails_with(InputMissingError("no nodes")), remembers(3)), b"no nodes"),
        (record(inputs(None)), b"Deployment kube-system/coredns does not exist"),
        (record(unreadable()), b"the API server did not answer"),
    ],
    ids=["an error", "stale", "held without inputs", "no target", "a target that does not answer"],
)
def test_a_poll_without_fresh_inputs_or_without_its_target_has_failed(
    state: PollState, given_up: list[str], clock: FakeClock, bad: Record, text: bytes
) -> None:
    state.record_poll([bad])
    answer = state.answer()
    assert (answer.status, text in answer.body) == (500, True)
    assert given_up == []
    clock.forward(PERIOD)
    state.record_poll([bad])
    assert given_up[0].startswith("2 consecutive polls have failed: ")


def test_one_successful_poll_resets_the_count_of_failures(
    state: PollState, given_up: list[str], clock: FakeClock
) -> None:
    for each in (BAD, record(inputs()), BAD):
        clock.forward(PERIOD)
        state.record_poll([each])
    assert given_up == []


def test_polls_that_follow_changes_of_nodes_do_not_end_the_process_sooner(
    state: PollState, given_up: list[str], clock: FakeClock
) -> None:
    state.record_poll([BAD])
    for _ in range(4):
        clock.forward(1)
        state.record_poll([BAD])
    assert given_up == []
    clock.forward(PERIOD - 4)
    state.record_poll([BAD])
    assert given_up[0].startswith("6 consecutive polls have failed: ")


def test_polls_that_end_a_little_sooner_after_the_former_one_count(
    state: PollState, given_up: list[str], clock: FakeClock
) -> None:
    state.record_poll([BAD])
    clock.forward(PERIOD - 2)
    state.record_poll([BAD])
    assert given_up


def test_a_wait_for_the_first_list_of_nodes_is_shown_and_ends_no_process(
    state: PollState, given_up: list[str], clock: FakeClock
) -> None:
    waiting = record(inputs(), fails_with(InputMissingError("the first list has not arrived yet")))
    for _ in range(5):
        state.awaits_nodes(is_awaited=True)
        state.record_poll([waiting])
        clock.forward(PERIOD)
    assert state.answer().status == 500
    for _ in range(2):
        assert given_up == []
        clock.forward(PERIOD)
        state.awaits_nodes(is_awaited=False)
        state.record_poll([waiting])
    assert given_up[0].startswith("2 consecutive polls have failed: ")


def test_a_failed_scale_call_fails_the_next_polls_until_one_succeeds(state: PollState) -> None:
    write = PendingWrite("coredns", TargetReference("apps/v1", "Deployment", "kube-system", "coredns"), 5, NOW)
    state.record_scale_call(ScaleOutcome(write, ScaleResult.ERROR, message="forbidden"))
    state.record_poll([record(inputs())])
    assert state.answer().status == 500
    state.record_scale_call(ScaleOutcome(write, ScaleResult.OK))
    state.record_poll([record(inputs())])
    assert state.answer().status == 200


def test_a_failed_scale_call_that_is_no_longer_needed_is_not_a_failure(state: PollState, given_up: list[str]) -> None:
    write = PendingWrite("coredns", DNS, 5, NOW)
    state.record_scale_call(ScaleOutcome(write, ScaleResult.ERROR, message="forbidden"))
    for _ in range(3):
        state.record_poll([record(inputs(), asks_for(3))])
    assert state.answer().status == 200
    assert given_up == []


def test_last_good_parameters_are_reported_and_do_not_end_the_process(state: PollState, given_up: list[str]) -> None:
    for _ in range(3):
        state.uses_former_parameters("the ConfigMap kube-system/dns does not exist")
        state.record_poll([record(inputs())])
    assert (state.answer().status, state.answer().body) == (500, b"the ConfigMap kube-system/dns does not exist\n")
    assert given_up == []
    state.uses_former_parameters("")
    assert state.answer().status == 200


def test_a_missing_target_does_not_hide_that_former_parameters_are_in_use(state: PollState) -> None:
    state.uses_former_parameters("the ConfigMap kube-system/dns cannot be used")
    state.record_poll([record(inputs(None))])
    body = state.answer().body.decode()
    assert "Deployment kube-system/coredns does not exist" in body
    assert "the ConfigMap kube-system/dns cannot be used" in body
