"""The targets of a recommendation with `forEach`, as far as the page shows them: summed up, or some on demand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from recommender.decisions.loads.prediction import forecast_of
from recommender.decisions.summary import WORST_FIRST, change_of, summary_of, worst_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.record import Record, Status
from recommender.decisions.summary import Summary

MOST_SHOWN: Final = 50
"""Targets in one answer."""
_LONGEST_FILTER: Final = 300
_FIELDS: Final = 8


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection in the address of the page."""

    name: str | None = None
    """The recommendation whose targets are listed; None: no targets are."""
    filter: str = ""
    """A part of the target's namespace and name, of the status or of the message."""


@dataclass(frozen=True, slots=True)
class ShownTargets:
    """The targets that the page lists."""

    rows: tuple[Record, ...]
    """The worst first."""
    matching: int
    """How many there are that the filter finds."""
    filter: str


@dataclass(frozen=True, slots=True)
class TargetSums:
    """The sums over the targets of a recommendation."""

    summary: Summary
    counts: tuple[tuple[Status, int], ...]
    """How many targets have each status, of those that occur, the worst first."""
    targets: int
    load: float | None
    """None if no load is known."""
    predicted: float | None
    """The load that the capacity is for; None unless each target with a load has a forecast."""
    models: tuple[tuple[str, int], ...]
    """How many targets use each model, the most used first."""
    changing: int
    """Targets whose recommended size is not the present one."""


def selection_of(query: str) -> Selection:
    """Return what a query string asks for; anything unreadable asks for nothing."""
    try:
        fields = parse_qs(query, max_num_fields=_FIELDS)
    except ValueError:
        return Selection()
    return Selection(fields.get("show", [None])[0], fields.get("filter", [""])[0].strip()[:_LONGEST_FILTER])


def sums_of(records: Sequence[Record]) -> TargetSums:
    """Return the sums of the records of one name."""
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


def shown_targets(records: Sequence[Record], wanted: str) -> ShownTargets:
    """Return the worst of the targets that the filter finds: no value first, then refused, then the largest changes.

    A filter that is the namespace and name of a target finds that one alone.
    """
    text = wanted.casefold()
    named = [record for record in records if text and text == _place(record)]
    found = named or [record for record in records if not text or text in _search_text(record)]
    return ShownTargets(tuple(worst_first(found, MOST_SHOWN)), len(found), wanted)


def _search_text(record: Record) -> str:
    return f"{_place(record)}\n{record.status.value}\n{record.message.casefold()}"


def _place(record: Record) -> str:
    return "" if record.each is None else f"{record.each.namespace}/{record.each.name}".casefold()
