"""The value of a record in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recommender.decisions.record import Record


def value_text(record: Record) -> str:
    """Return the value: `11 replicas`, `sizes of 2 containers`, or `no value`."""
    if record.replicas is not None:
        return f"{record.replicas} replica{'' if record.replicas == 1 else 's'}"
    if record.resources is not None:
        return f"sizes of {len(record.resources)} container{'' if len(record.resources) == 1 else 's'}"
    return "no value"
