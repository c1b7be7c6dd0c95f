"""Notes for the user about a decision that has a value."""

from __future__ import annotations

from recommender.decisions.record import Record, Status


def note_of(record: Record) -> str:
    """Return the message of an `ok` record that reports a fault, such as a ConfigMap that cannot be used; else empty.

    Otherwise the message of such a record is the calculation of a step.
    """
    explained = {f"{step.step}: {step.detail}" for step in record.steps}
    return record.message if record.status is Status.OK and record.message not in explained else ""
