"""`/last-poll`, and the polls after which the process gives up."""

from __future__ import annotations

from dataclasses import replace

from recommender.commands.proportional.poll_state import PollState
from recommender.decisions.record import Record, Status, Step, TargetReference
from recommender.outputs.results import ScaleResult
from recommender.outputs.scale import ScaleOutcome
from recommender.outputs.wishes import Wish

STEP = Step("linear/nodes", 3, "ceil(48 / 16)")
GOOD = Record("dns", "proportional", 0.0, Status.OK, "linear/nodes: ceil(48 / 16)", 3, steps=(STEP,))
NOTED = replace(GOOD, message="the ConfigMap kube-system/dns cannot be used")
STALE = replace(GOOD, status=Status.STALE, message="nodes are too old", replicas=None)


def outcome(result: ScaleResult, message: str = "") -> ScaleOutcome:
    target = TargetReference("apps/v1", "Deployment", "kube-system", "coredns")
    wish = Wish(target=target, recommendation="dns", replicas=3, reason="", valid_until=60.0)
    return ScaleOutcome(wish, result, message=message)


def test_a_poll_that_failed_is_shown_until_one_succeeds() -> None:
    state = PollState(0, lambda _: None)
    for record, answer in ((GOOD, (200, b"ok\n")), (STALE, (500, b"nodes are too old\n")), (GOOD, (200, b"ok\n"))):
        state.polled([record])
        found = state.answer("")
        assert (found.status, found.body) == answer


def test_a_scale_call_that_fails_is_a_failure_of_each_poll_until_it_succeeds() -> None:
    reasons: list[str] = []
    state = PollState(2, reasons.append)
    state.scaled(outcome(ScaleResult.ERROR, "403 Forbidden"))
    state.polled([GOOD])
    state.scaled(outcome(ScaleResult.OK))
    state.polled([GOOD])
    state.scaled(outcome(ScaleResult.ERROR, "403 Forbidden"))
    state.polled([GOOD])
    assert reasons == []
    state.polled([GOOD])
    assert reasons == ["2 consecutive polls have failed: 403 Forbidden"]


def test_a_config_map_that_cannot_be_used_is_shown_and_never_ends_the_process() -> None:
    reasons: list[str] = []
    state = PollState(1, reasons.append)
    for _ in range(3):
        state.polled([NOTED])
    assert state.answer("").status == 500
    assert state.answer("").body == b"the ConfigMap kube-system/dns cannot be used\n"
    assert reasons == []


def test_failures_that_are_not_consecutive_do_not_add_up() -> None:
    reasons: list[str] = []
    state = PollState(2, reasons.append)
    for record in (STALE, GOOD, STALE, GOOD):
        state.polled([record])
    assert reasons == []
