"""Sums up the records of one recommendation with `forEach`, for outputs with one line for each recommendation."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.foundation.objects.grouping import group_values
from recommender.decisions.record import Record, Status, TargetAction

WORST_FIRST: Final = (Status.ERROR, Status.STALE, Status.HELD, Status.OK)


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the records that have the same name."""

    counts: Mapping[Status, int]
    replicas: int | None
    """The sum of the values of the records; None if no record has a value."""
    current: int | None
    """The sum of the known current sizes; None if no size is known."""
    refused: int
    """The number of targets that are not scaled because something else owns them or may own them."""
    example: str = ""
    """The target or name of the first record that is stale or has an error, with its message; empty without one."""

    @property
    def worst(self) -> Status:
        """Return the worst status of the records; OK if there are none."""
        return next((status for status in WORST_FIRST if self.counts.get(status)), Status.OK)

    @property
    def facts(self) -> tuple[object, ...]:
        """Return the facts whose change is worth a log line: the numbers of errors, stale records, and refusals."""
        return self.counts.get(Status.ERROR, 0), self.counts.get(Status.STALE, 0), self.refused

    def log_fields(self, name: str) -> dict[str, object]:
        """Return the fields of the log line about the summary; fields without a value are left out."""
        found: dict[str, object] = {"recommendation": name, "targets": sum(self.counts.values())}
        found |= {status.value: count for status, count in self.counts.items()}
        found |= {"replicas": self.replicas, "refused": self.refused or None, "example": self.example or None}
        return {key: value for key, value in found.items() if value is not None}


def by_name(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Return the records grouped by name."""
    return group_values((record.name, record) for record in records)


def summary_of(records: Sequence[Record]) -> Summary:
    """Return the summary of records that have the same name."""
    outcomes = [outcome for record in records for outcome in record.targets]
    without = next((record for record in records if record.status in {Status.ERROR, Status.STALE}), None)
    return Summary(
        counts=Counter(record.status for record in records),
        replicas=_sum(record.replicas for record in records),
        current=_sum(outcome.current_replicas for outcome in outcomes),
        refused=sum(outcome.action is TargetAction.REFUSED for outcome in outcomes),
        example=f"{without.each or without.name}: {without.message}" if without else "",
    )


def worst_first(records: Iterable[Record], most: int) -> list[Record]:
    """Return at most `most` records, the worst first: by status, then refused or failed, then by size of the change."""
    return heapq.nsmallest(most, records, key=_badness)


def change_of(record: Record) -> int:
    """Return the absolute difference of the recommended and the current size; 0 if either is not known."""
    current = record.targets[0].current_replicas if record.targets else None
    return 0 if record.replicas is None or current is None else abs(record.replicas - current)


def _badness(record: Record) -> tuple[int, bool, int, str]:
    refused = any(outcome.action is TargetAction.REFUSED or outcome.has_failed for outcome in record.targets)
    return WORST_FIRST.index(record.status), not refused, -change_of(record), str(record.each)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
