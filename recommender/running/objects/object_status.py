"""The status of an object of the kind Recommendation, from the records of the last poll or its refusal (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.reports.counts import count_of
from recommender.configuration.objects.admission import QUOTA_EXCEEDED
from recommender.configuration.objects.definition import REFUSED
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome
from recommender.decisions.summary import summary_of, worst_first
from recommender.decisions.texts.record_texts import ACTION_TEXTS, action_text, refusal_text
from recommender.decisions.texts.times import rfc3339
from recommender.kinds.table import kind_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.configuration.objects.object_reading import ObjectRefusal, RecommendationObject

READY: Final = "Ready"
ACTING: Final = "Acting"
MOST_TARGETS: Final = 20
"""The largest number of targets that a status lists; if there are more, it lists the worst ones."""
_MOST_STEPS: Final = 50
_LONGEST_TEXT: Final = 2_000
_REASONS: Final = {Status.STALE: "Stale", Status.ERROR: "Error"}

_Condition = tuple[str, bool, str, str]
"""A condition: its type, whether it holds, its reason and its message."""


def decided_status(
    about: RecommendationObject, policy: RecommendationPolicy, records: Sequence[Record], now: float
) -> dict[str, Any]:
    """Return the status of an object that takes effect, from its records; with `forEach`, there are several records."""
    summary = summary_of(records)
    # The first of several may be about the recommendation as a whole, such as that it has too many targets.
    single = records[0] if records[0].each is None and len(records) == 1 else None
    worst = worst_first((record for record in records if record.targets), MOST_TARGETS)
    message = single.message if single else summary.example or count_of(len(records), "target")
    status = summary.worst
    has_value = any(record.has_value for record in records)
    content: dict[str, Any] = {
        "status": status.value,
        "message": _text(message),
        "value": (single.replicas if single else summary.replicas) if has_value else None,
        "now": _largest_present_size(single.targets) if single else summary.current,
        "targets": [_target(outcome) for record in worst for outcome in record.targets][:MOST_TARGETS],
    }
    if single is not None:
        content["decidedBy"] = single.binding
        content["steps"] = [
            {"step": each.step, "value": each.value, "detail": _text(each.detail)}
            for each in single.steps[:_MOST_STEPS]
        ]
        kind = kind_named(single.type)
        content["resources"] = kind.document(single).get("resources") if kind is not None else None
    outcomes = [outcome for record in records for outcome in record.targets]
    conditions = (
        (READY, has_value, _ready_reason(status, has_value=has_value), message),
        _acting_condition(policy, status, outcomes, message, has_value=has_value),
        ("Refused", False, "Accepted", "the object counts"),
    )
    return _whole(about, content, conditions, now)


def refused_status(about: RecommendationObject, refusal: ObjectRefusal, now: float) -> dict[str, Any]:
    """Return the status of an object that takes no effect."""
    content = {"status": REFUSED, "message": _text(refusal.message)}
    conditions = (
        (READY, False, "Refused", refusal.message),
        (ACTING, False, "Refused", refusal.message),
        ("Refused", True, refusal.reason, refusal.message),
    )
    return _whole(about, content, conditions, now)


def says_over_quota(status: Mapping[str, Any], generation: int) -> bool:
    """Return whether a status for this generation of an object says that a quota refuses it."""
    refused = next((each for each in _conditions(status) if each.get("type") == "Refused"), {})
    is_current = status.get("observedGeneration") == generation
    return is_current and (refused.get("status"), refused.get("reason")) == ("True", QUOTA_EXCEEDED)


def is_urgent(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether people and programs wait for the change: a size, a condition or its reason is different."""
    return _essence(before) != _essence(after)


def _essence(status: Mapping[str, Any]) -> object:
    conditions = [
        (each.get("type"), each.get("status"), each.get("reason"), each.get("observedGeneration"))
        for each in status.get("conditions") or ()
    ]
    return [*(status.get(key) for key in ("status", "value", "now", "observedGeneration")), conditions]


def _ready_reason(status: Status, *, has_value: bool) -> str:
    if not has_value:
        return _REASONS.get(status, "NoValue")
    return "Held" if status is Status.HELD else "Recommended"


def _acting_condition(
    policy: RecommendationPolicy, status: Status, outcomes: Sequence[TargetOutcome], message: str, *, has_value: bool
) -> _Condition:
    """Return the condition that says whether the value has an effect: a size is written, or the value is published."""
    if not has_value:
        return ACTING, False, "NoValue", message
    refused = next((each for each in outcomes if each.action is TargetAction.REFUSED), None)
    if refused is not None:
        return ACTING, False, "TargetOwned", refusal_text(refused.recommended_replicas, refused.message)
    if Output.SCALE not in policy.outputs:
        return ACTING, True, "Published", ACTION_TEXTS[TargetAction.METRIC]
    failed = next((each for each in outcomes if each.has_failed), None)
    if failed is not None:
        return ACTING, False, "ScaleFailed", f"{action_text(failed.action, failed.message)}: {failed.message}"
    if status is Status.HELD:
        return ACTING, False, "Held", message
    return ACTING, True, "Scaling", ACTION_TEXTS[TargetAction.SCALE]


def _whole(
    about: RecommendationObject, content: Mapping[str, Any], conditions: Sequence[_Condition], now: float
) -> dict[str, Any]:
    """Return the status; unchanged parts keep their times from the current status of the object."""
    time = rfc3339(now)
    before = about.status
    known = {each.get("type"): each for each in _conditions(before)}
    is_same = all(before.get(key) == content.get(key) for key in ("status", "value"))
    own = {key: value for key, value in content.items() if value is not None}
    return {
        "observedGeneration": about.generation,
        **own,
        "lastTransitionTime": before.get("lastTransitionTime") or time if is_same else time,
        "conditions": [_condition(about, each, known.get(each[0], {}), time) for each in conditions],
    }


def _conditions(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = status.get("conditions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _condition(
    about: RecommendationObject, condition: _Condition, before: Mapping[str, Any], time: str
) -> dict[str, Any]:
    name, holds, reason, message = condition
    status = "True" if holds else "False"
    return {
        "type": name,
        "status": status,
        "reason": reason,
        "message": _text(message),
        "observedGeneration": about.generation,
        "lastTransitionTime": before.get("lastTransitionTime", time) if before.get("status") == status else time,
    }


def _target(outcome: TargetOutcome) -> dict[str, Any]:
    target = outcome.target
    found = {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "name": target.name,
        "currentReplicas": outcome.current_replicas,
        "recommendedReplicas": outcome.recommended_replicas,
        "action": outcome.action.value,
        "owner": outcome.owner,
        "message": _text(outcome.message) or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _largest_present_size(outcomes: Sequence[TargetOutcome]) -> int | None:
    """Return the size of the largest target; None if none is known."""
    return max((each.current_replicas for each in outcomes if each.current_replicas is not None), default=None)


def _text(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
