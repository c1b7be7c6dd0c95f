"""Recommendations and targets as lines of a list that can be sorted and searched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.foundation.objects.grouping import group_values
from recommender.decisions.record import Record, Status, TargetAction
from recommender.decisions.summary import WORST_FIRST, summary_of
from recommender.page.selection import SortOrder

_DIGITS: Final = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class PageLine:
    """A recommendation with all its targets, or one target of a recommendation."""

    name: str
    records: tuple[Record, ...]
    status: Status
    """The worst status among the records."""
    replicas: int | None
    """The recommended size, or the sum of sizes for several targets; None without a value."""
    current: int | None
    is_refused: bool
    """Whether something else owns a target, or may own it."""

    @property
    def first(self) -> Record:
        """The first record, which is the only one unless the recommendation has `forEach`."""
        return self.records[0]

    @property
    def type(self) -> str:
        """The key of the recommendation's kind."""
        return self.first.type

    @property
    def change(self) -> int:
        """The difference between the recommended and the current size; 0 if either is not known."""
        return 0 if self.replicas is None or self.current is None else abs(self.replicas - self.current)

    @property
    def has_targets_of_series(self) -> bool:
        """Whether the line is about a recommendation with `forEach`."""
        return self.first.each is not None


def lines_of(records: Sequence[Record]) -> list[PageLine]:
    """Return a line for each recommendation, in the order of the configuration."""
    # Two entries that share a name by mistake are two lines.
    groups = group_values(
        ((record.name, record.each is not None, 0 if record.each is not None else place), record)
        for place, record in enumerate(records)
    )
    return [_line(group) for group in groups.values()]


def line_of_target(record: Record) -> PageLine:
    """Return the line of one target of a recommendation with `forEach`."""
    return _line_of_one(record, place_of(record))


def place_of(record: Record) -> str:
    """Return namespace and name of the target of a record with `forEach`; empty for other records."""
    return "" if record.each is None else f"{record.each.namespace}/{record.each.name}"


def _line(group: list[Record]) -> PageLine:
    if group[0].each is None:
        return _line_of_one(group[0], group[0].name)
    summary = summary_of(group)
    return PageLine(
        group[0].name, tuple(group), summary.worst, summary.replicas, summary.current, is_refused=summary.refused > 0
    )


def _line_of_one(record: Record, name: str) -> PageLine:
    refused = any(outcome.action is TargetAction.REFUSED for outcome in record.targets)
    current = record.targets[0].current_replicas if record.targets else None
    return PageLine(name, (record,), record.status, record.replicas, current, is_refused=refused)


def sorted_lines(lines: Iterable[PageLine], order: SortOrder) -> list[PageLine]:
    """Return the lines in this order; ties are sorted by name, and numbers in names by their value."""
    return sorted(lines, key=_KEYS[order])


def _natural(name: str) -> tuple[str | tuple[int, str], ...]:
    """Return the sort key of a name, so that `web-2` is before `web-10`. Every other part is a number."""
    parts = _DIGITS.split(name)
    return tuple((len(part), part) if place % 2 else part for place, part in enumerate(parts))


_KEYS: Final[dict[SortOrder, Callable[[PageLine], tuple[object, ...]]]] = {
    SortOrder.STATUS: lambda line: (
        WORST_FIRST.index(line.status),
        not line.is_refused,
        -line.change,
        _natural(line.name),
    ),
    SortOrder.NAME: lambda line: (_natural(line.name),),
    SortOrder.CHANGE: lambda line: (-line.change, _natural(line.name)),
    SortOrder.REPLICAS: lambda line: (-1 if line.replicas is None else -line.replicas - 2, _natural(line.name)),
}


def is_found(line: PageLine, text: str) -> bool:
    """Return whether a name, type, status or message of a line contains the text, which must be casefolded."""
    if text in line.name.casefold() or text in line.type.casefold():
        return True
    return any(_is_in_record(record, text) for record in line.records)


def _is_in_record(record: Record, text: str) -> bool:
    if text in record.status.value or text in record.message.casefold() or text in place_of(record).casefold():
        return True
    return any(
        text in str(outcome.target).casefold() or text in outcome.message.casefold() for outcome in record.targets
    )
