"""The log line about a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.record import TargetAction

if TYPE_CHECKING:
    from recommender.decisions.record import Record


def log_fields(record: Record) -> dict[str, object]:
    """Return the fields of the log line about a record; what has no value is left out."""
    found = {
        "recommendation": record.name,
        "status": record.status.value,
        "replicas": record.replicas,
        "binding": record.binding,
        "reason": record.message,
        "refused": "; ".join(each.message for each in record.targets if each.action is TargetAction.REFUSED),
    }
    return {key: value for key, value in found.items() if value not in {None, ""}}
