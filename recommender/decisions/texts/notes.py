"""Notes for the user about a decision that has a value."""

from __future__ import annotations

from recommender.decisions.record import Record, Status


def note_of(record: Record) -> str:
    """Return the message of an `ok` record if it reports a fault, such as an unusable ConfigMap; else empty.

    The message of an `ok` record without a fault is the calculation of one of its steps.
    """
    explained = {f"{step.step}: {step.detail}" for step in record.steps}
    return record.message if record.status is Status.OK and record.message not in explained else ""
