"""A decision whose last scale call failed says so, since nobody else would know that the size is not written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recommender.decisions.loop import decide
from recommender.decisions.memory import Memory
from recommender.decisions.record import TargetAction
from recommender.decisions.summary import worst_first
from tests.recommender.decisions.harness import DNS, NOW, asks_for, inputs, policy

FAILED = {("coredns", DNS): "403 Forbidden: not on Fridays"}


@pytest.mark.parametrize(
    ("wanted", "action", "message"),
    [
        (5, TargetAction.SCALE, "the last scale call failed: 403 Forbidden: not on Fridays"),
        (3, TargetAction.NONE, ""),
    ],
    ids=["another size", "the size that it has"],
)
def test_a_target_that_lacks_its_size_says_why_the_last_call_failed(
    wanted: int, action: TargetAction, message: str
) -> None:
    given = replace(inputs(3), failures=FAILED)
    record = decide(policy(), asks_for(wanted), given, Memory(), NOW).record
    (outcome,) = record.targets
    assert (outcome.action, outcome.message, outcome.has_failed) == (action, message, bool(message))
    assert "Fridays" not in record.message, "the message of a record is the reason in the event of a later call"


def test_a_failed_call_does_not_hide_what_else_is_noted_about_the_target() -> None:
    given = inputs(3, replicas_managers=("helm",))
    note = decide(policy(), asks_for(5), given, Memory(), NOW).record.targets[0].message
    found = decide(policy(), asks_for(5), replace(given, failures=FAILED), Memory(), NOW).record.targets[0].message
    assert "helm wrote spec.replicas" in note
    assert found == f"the last scale call failed: 403 Forbidden: not on Fridays; {note}"


def test_of_many_targets_those_whose_calls_failed_are_listed() -> None:
    given = inputs(3)
    larger = decide(policy(), asks_for(50), given, Memory(), NOW).record
    failed = decide(policy(), asks_for(5), replace(given, failures=FAILED), Memory(), NOW).record
    assert worst_first([larger, failed], 1) == [failed]
