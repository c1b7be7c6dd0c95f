"""The targets of a recommendation with `forEach` as the page shows them: summed up, or some of them on demand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from recommender.decisions.loads.prediction import forecast_of
from recommender.decisions.summary import WORST_FIRST, Summary, change_of, summary_of
from recommender.page.list_pages import ListPart, part_of
from recommender.page.problem_groups import PageRow, problem_key, rows_of
from recommender.page.recommendation_list import PageLine, line_of_target, place_of, sorted_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.record import Record, Status
    from recommender.page.selection import Selection

MOST_SHOWN: Final = 50
"""At most this many targets are in one answer."""


@dataclass(frozen=True, slots=True)
class ShownTargets:
    """The targets that the page lists."""

    part: ListPart[PageRow]
    matching: int
    """Number of targets that match the filter."""
    filter: str


@dataclass(frozen=True, slots=True)
class TargetSums:
    """The sums over the targets of a recommendation."""

    summary: Summary
    counts: tuple[tuple[Status, int], ...]
    """How many targets have each status, only statuses that occur, the worst first."""
    targets: int
    load: float | None
    """The sum of the current loads; None if no load is known."""
    predicted: float | None
    """The load that the capacity is planned for; None unless each target with a load has a forecast."""
    models: tuple[tuple[str, int], ...]
    """How many targets use each model, the most used first."""
    changing: int
    """Number of targets whose recommended size differs from the current one."""


def sums_of(records: Sequence[Record]) -> TargetSums:
    """Return the sums over the records of one recommendation."""
    predictions = [found for record in records if (found := forecast_of(record)) is not None]
    loads = [prediction.load for prediction in predictions]
    uppers = [load.predicted for load in loads if load.predicted is not None]
    summary = summary_of(records)
    return TargetSums(
        summary=summary,
        counts=tuple((status, summary.counts[status]) for status in WORST_FIRST if summary.counts.get(status)),
        targets=len(records),
        load=sum(load.now for load in loads) if loads else None,
        predicted=sum(uppers) if loads and len(uppers) == len(loads) else None,
        models=tuple(Counter(prediction.model for prediction in predictions).most_common()),
        changing=sum(1 for record in records if change_of(record)),
    )


def shown_targets(records: Sequence[Record], selection: Selection) -> ShownTargets:
    """Return one page of the targets that match; those with the same problem form one row unless there is a filter.

    A filter that is the namespace and name of a target matches only that target.
    """
    text = selection.filter.casefold()
    named = [record for record in records if text and text == place_of(record).casefold()]
    lines = [line for record in named or records if is_found_target(line := line_of_target(record), text)]
    if selection.equals:
        lines = [line for line in lines if problem_key(line) == selection.equals]
    lines = sorted_lines(lines, selection.sort)
    rows = [PageRow((line,)) for line in lines] if text or selection.equals else rows_of(lines)
    return ShownTargets(part_of(rows, selection.page, MOST_SHOWN), len(lines), selection.filter)


def is_found_target(line: PageLine, text: str) -> bool:
    """Return whether a target has a text in its name, its status or its message."""
    record = line.first
    return text in line.name.casefold() or text in record.status.value or text in record.message.casefold()
