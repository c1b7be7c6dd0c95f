"""Makes the Kubernetes events of decisions and scale calls. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.reports.counts import count_of
from recommender.decisions.record import Record, TargetAction, TargetReference
from recommender.decisions.texts.record_texts import about_text, change_text, event_text, recommended_text, refusal_text
from recommender.decisions.texts.times import rfc3339
from recommender.outputs.scale_results import ScaleResult

if TYPE_CHECKING:
    from recommender.outputs.write_attempt import ScaleOutcome

COMPONENT: Final = "tidewatch-recommender"
_LONGEST_MESSAGE: Final = 1024
"""Limit of `note` in events.k8s.io/v1; longer messages are cut."""
_LONGEST_NAME: Final = 253
_NOT_IN_A_NAME: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class TargetEvent:
    """An event on a target."""

    target: TargetReference
    reason: str
    """The reason in CamelCase, as `kubectl describe` shows it."""
    message: str
    is_warning: bool = False
    uid: str = field(default="", compare=False)
    """The UID of the target, if whoever made the event has read the target; otherwise empty."""


def events_of_record(before: Record | None, after: Record) -> tuple[TargetEvent, ...]:
    """Return the events for a decision: changes of a published value, and refused scale calls.

    A scale call that is made has its own event once it succeeds (`event_of_scale_call`). `before` is the previous
    record of the same recommendation, or None if this process has none; then no change is reported.
    """
    found = []
    earlier = {each.target: each.recommended_replicas for each in before.targets} if before is not None else {}
    for outcome in after.targets:
        last, replicas = earlier.get(outcome.target), outcome.recommended_replicas
        if outcome.action is TargetAction.REFUSED:
            # Sizes of containers come without a number of replicas.
            reason = "ResizeRefused" if replicas is None else "ScaleRefused"
            found.append(TargetEvent(outcome.target, reason, event_text(after, outcome), is_warning=True))
        elif outcome.action is not TargetAction.SCALE and last != replicas and None not in {last, replicas}:
            text = change_text(after.name, last, recommended_text(outcome), after.message)
            found.append(TargetEvent(outcome.target, "RecommendationChanged", text))
    return tuple(found)


def event_of_scale_call(outcome: ScaleOutcome) -> TargetEvent | None:
    """Return the event for a scale call; None if there is nothing to report: no change, and no refused resize."""
    found = _event_of_resize(outcome) if outcome.write.resizing is not None else _event_of_size(outcome)
    # Not every target that is written is looked up by decisions, and `kubectl describe` shows no event without a UID.
    return found and replace(found, uid=outcome.uid)


def _event_of_size(outcome: ScaleOutcome) -> TargetEvent | None:
    write = outcome.write
    if outcome.result is not ScaleResult.OK:
        return None
    if write.withdraws:
        return TargetEvent(write.target, "Withdrawn", about_text(write.recommendation, write.reason))
    after = count_of(write.replicas, "replica")
    if outcome.stored_instead is not None:
        after = f"{count_of(outcome.stored_instead, 'replica')} instead of the {write.replicas} that were written"
    return TargetEvent(write.target, "Scaled", change_text(write.recommendation, outcome.before, after, write.reason))


def _event_of_resize(outcome: ScaleOutcome) -> TargetEvent | None:
    write = outcome.write
    if outcome.result is ScaleResult.OK:
        return TargetEvent(write.target, "Resized", about_text(write.recommendation, outcome.message))
    if outcome.result is ScaleResult.REFUSED:
        text = about_text(write.recommendation, refusal_text(None, outcome.message))
        return TargetEvent(write.target, "ResizeRefused", text, is_warning=True)
    return None


def event_document(event: TargetEvent, uid: str, time: float, distinction: str) -> dict[str, Any]:
    """Return a core/v1 Event.

    `uid` is the UID of the target: without it, `kubectl describe` does not show the event. `time` is in seconds since
    the Unix epoch; `distinction` makes the name of the event unique.
    """
    target = event.target
    moment = rfc3339(time)
    involved = {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "namespace": target.namespace,
        "name": target.name,
        "uid": uid,
    }
    message = event.message
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": _name(target.name, distinction), "namespace": namespace_of_events(target)},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "reason": event.reason,
        "message": message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…",
        "type": "Warning" if event.is_warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def namespace_of_events(target: TargetReference) -> str:
    """Return the namespace of a target's events: its own, or `default` if it has none."""
    return target.namespace or "default"


def _name(target: str, distinction: str) -> str:
    readable = _NOT_IN_A_NAME.sub("-", target.lower())[: _LONGEST_NAME - len(distinction) - 1].strip("-")
    return f"{readable or 'target'}.{distinction}"
