"""The status of an object: conditions, value and steps, and times that change only with their subject."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from recommender.configuration.objects.object_reading import ObjectRefusal, object_of
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.record import Record, Status, Step, TargetAction, TargetOutcome, TargetReference
from recommender.running.objects.object_status import decided_status, is_urgent, refused_status
from tests.recommender.configuration.objects.objects import made

NOW: Final = 1_767_225_600.0
LATER: Final = NOW + 60
WEB: Final = TargetReference("apps/v1", "Deployment", "shop", "web")
POLICY: Final = RecommendationPolicy("shop/web", "proportional", (WEB,), frozenset({Output.SCALE}), namespace="shop")
OUTCOME: Final = TargetOutcome(WEB, 2, TargetAction.SCALE, recommended_replicas=3)
RECORD: Final = Record(
    "shop/web",
    "proportional",
    NOW,
    Status.OK,
    "nodes count",
    replicas=3,
    steps=(Step("linear/nodes", 3, "ceil(9 / 4)"),),
    binding="linear/nodes",
    targets=(OUTCOME,),
)


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def of(record: Record, policy: RecommendationPolicy = POLICY) -> dict[str, tuple[str, str]]:
    return conditions(decided_status(made(), policy, [record], NOW))


def test_a_value_is_shown_with_the_step_that_decided_it() -> None:
    status = decided_status(made(), POLICY, [RECORD], NOW)
    assert {key: status[key] for key in ("status", "value", "now", "decidedBy", "observedGeneration")} == {
        "status": "ok",
        "value": 3,
        "now": 2,
        "decidedBy": "linear/nodes",
        "observedGeneration": 1,
    }
    assert status["steps"] == [{"step": "linear/nodes", "value": 3, "detail": "ceil(9 / 4)"}]
    assert status["targets"][0]["currentReplicas"] == 2
    assert status["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert conditions(status) == {
        "Ready": ("True", "Recommended"),
        "Acting": ("True", "Scaling"),
        "Refused": ("False", "Accepted"),
    }


@pytest.mark.parametrize(
    ("record", "ready", "acting"),
    [
        (replace(RECORD, status=Status.HELD), ("True", "Held"), ("False", "Held")),
        (replace(RECORD, status=Status.STALE, replicas=None), ("False", "Stale"), ("False", "NoValue")),
        (replace(RECORD, status=Status.ERROR, replicas=None), ("False", "Error"), ("False", "NoValue")),
        (
            replace(RECORD, targets=(replace(OUTCOME, action=TargetAction.REFUSED, owner="HPA"),)),
            ("True", "Recommended"),
            ("False", "TargetOwned"),
        ),
        (
            replace(RECORD, targets=(replace(OUTCOME, has_failed=True, message="the last scale call failed: 403"),)),
            ("True", "Recommended"),
            ("False", "ScaleFailed"),
        ),
    ],
)
def test_conditions_show_whether_there_is_a_value_and_whether_it_takes_effect(
    record: Record, ready: tuple[str, str], acting: tuple[str, str]
) -> None:
    found = of(record)
    assert (found["Ready"], found["Acting"]) == (ready, acting)


def test_a_size_whose_call_failed_is_not_said_to_be_written() -> None:
    failed = replace(OUTCOME, has_failed=True, message="the last scale call failed: 403 Forbidden")
    status = decided_status(made(), POLICY, [replace(RECORD, targets=(failed,))], NOW)
    (acting,) = (each for each in status["conditions"] if each["type"] == "Acting")
    assert acting["message"] == "the size is not written yet: the last scale call failed: 403 Forbidden"


def test_a_value_that_is_only_published_takes_effect_through_its_metric() -> None:
    assert of(RECORD, replace(POLICY, outputs=frozenset({Output.METRIC})))["Acting"] == ("True", "Published")


def test_a_refused_object_has_no_value() -> None:
    status = refused_status(made(), ObjectRefusal("TargetTaken", "it is taken"), NOW)
    assert conditions(status) == {
        "Ready": ("False", "Refused"),
        "Acting": ("False", "Refused"),
        "Refused": ("True", "TargetTaken"),
    }
    assert (status["status"], status["message"]) == ("refused", "it is taken")
    assert "value" not in status


def test_transition_times_change_only_with_their_condition() -> None:
    first = decided_status(made(), POLICY, [RECORD], NOW)
    same = decided_status(replace(made(), status=first), POLICY, [RECORD], LATER)
    assert same == first
    held = decided_status(replace(made(), status=first), POLICY, [replace(RECORD, status=Status.HELD)], LATER)
    times = {each["type"]: each["lastTransitionTime"] for each in held["conditions"]}
    assert times == {
        "Ready": "2026-01-01T00:00:00Z",
        "Acting": "2026-01-01T00:01:00Z",
        "Refused": "2026-01-01T00:00:00Z",
    }
    assert held["lastTransitionTime"] == "2026-01-01T00:01:00Z"


def test_values_of_targets_from_series_are_summed_up() -> None:
    records = [
        replace(RECORD, each=replace(WEB, name=f"w{place}"), targets=(replace(OUTCOME, target=WEB),))
        for place in range(30)
    ]
    status = decided_status(made(), POLICY, records, NOW)
    assert (status["value"], status["now"], len(status["targets"])) == (90, 60, 20)
    # That some are left out says nothing about the others.
    left_out = Record(RECORD.name, RECORD.type, NOW, Status.ERROR, "3 of 33 targets are left out: forEach.max is 30")
    status = decided_status(made(), POLICY, [left_out, *records], NOW)
    assert (status["value"], status["now"], len(status["targets"])) == (90, 60, 20)
    assert (status["status"], status["message"]) == ("error", f"{RECORD.name}: {left_out.message}")
    assert decided_status(made(), POLICY, [left_out], NOW)["message"] == left_out.message


@pytest.mark.parametrize(
    ("after", "urgent"),
    [
        (replace(RECORD, message="other"), False),
        (replace(RECORD, steps=()), False),
        (replace(RECORD, replicas=4), True),
        (replace(RECORD, status=Status.HELD), True),
    ],
)
def test_changes_of_messages_and_steps_are_not_urgent(after: Record, *, urgent: bool) -> None:
    before = decided_status(made(), POLICY, [RECORD], NOW)
    assert is_urgent(before, decided_status(made(), POLICY, [after], NOW)) is urgent


@pytest.mark.parametrize("status", [{"conditions": "none"}, {"conditions": [1, {}]}, {"lastTransitionTime": None}])
def test_a_corrupted_status_is_replaced(status: dict[str, Any]) -> None:
    found = decided_status(replace(made(), status=status), POLICY, [RECORD], NOW)
    assert found == decided_status(made(), POLICY, [RECORD], NOW)


def test_the_largest_status_is_read_back_unchanged() -> None:
    text = "x" * 5_000
    targets = tuple(replace(OUTCOME, target=replace(WEB, name=f"web-{place}"), message=text) for place in range(50))
    record = replace(RECORD, message=text, steps=(Step("linear/nodes", 3, text),) * 99, targets=targets)
    status = decided_status(made(), POLICY, [record], NOW)
    found = object_of({"metadata": {"namespace": "shop", "name": "web"}, "spec": {}, "status": status})
    assert found is not None
    assert found.status == status
