"""The log line about a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.decisions.record import Action
from recommender.decisions.texts import value_text

if TYPE_CHECKING:
    from recommender.decisions.record import Record


def log_fields(record: Record) -> dict[str, str]:
    """Return the fields of the log line about a record."""
    found = {
        "recommendation": record.name,
        "status": record.status.value,
        "value": value_text(record),
        "binding": record.binding or "",
        "reason": record.message,
        "refused": "; ".join(each.message for each in record.targets if each.action is Action.REFUSED),
    }
    return {key: value for key, value in found.items() if value}
