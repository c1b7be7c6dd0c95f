"""Values and outcomes in one line: for tables, and for events of Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.record import Action

if TYPE_CHECKING:
    from recommender.decisions.record import Record, TargetOutcome


def value_text(record: Record) -> str:
    """Return the value: `11 replicas`, `sizes of 2 containers`, or `no value`."""
    if record.replicas is not None:
        return f"{record.replicas} replica{'' if record.replicas == 1 else 's'}"
    if record.resources is not None:
        return f"sizes of {len(record.resources)} container{'' if len(record.resources) == 1 else 's'}"
    return "no value"


def event_text(record: Record, outcome: TargetOutcome) -> str:
    """Return the message of an event on a target: what happens to it, and why."""
    if outcome.action is Action.REFUSED:
        return f"recommendation {record.name}: not scaled to {value_text(record)}: {outcome.message}"
    before = "unknown" if outcome.current_replicas is None else str(outcome.current_replicas)
    return f"recommendation {record.name}: from {before} to {value_text(record)}: {record.message}"
