"""The cards of the page, one for each recommendation: a record, or with `forEach` the sums of many, with the charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.page.history import chart_of
from recommender.page.load_chart import load_chart_of
from recommender.page.target_table import shown_targets, sums_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.decisions.record import Record
    from recommender.page.history import Chart, ChartPoint
    from recommender.page.load_chart import LoadChart
    from recommender.page.target_table import Selection, ShownTargets, TargetSums


@dataclass(frozen=True, slots=True)
class Card:
    """One article of the page."""

    name: str
    type: str
    record: Record | None
    """The record that is shown in full; with `forEach` only if a single target is asked for."""
    sums: TargetSums | None = None
    """With `forEach` alone."""
    shown: ShownTargets | None = None
    """With `forEach`, if they are asked for."""
    chart: Chart | None = None
    load_chart: LoadChart | None = None


def cards_of(
    records: Sequence[Record], points: Mapping[str, Sequence[ChartPoint]], selection: Selection
) -> tuple[Card, ...]:
    """Return the articles in the order of the configuration."""
    groups: dict[tuple[str, bool, int], list[Record]] = {}
    for place, record in enumerate(records):
        # Two entries that share a name by mistake are two articles.
        key = (record.name, record.each is not None, 0 if record.each is not None else place)
        groups.setdefault(key, []).append(record)
    return tuple(_card(group, points.get(group[0].name, ()), selection) for group in groups.values())


def _card(group: Sequence[Record], points: Sequence[ChartPoint], selection: Selection) -> Card:
    first = group[0]
    chart, load_chart = chart_of(points), load_chart_of(points)
    if first.each is None:
        return Card(first.name, first.type, first, chart=chart, load_chart=load_chart)
    shown = shown_targets(group, selection.filter) if selection.name == first.name else None
    single = shown.rows[0] if shown is not None and shown.filter and len(shown.rows) == 1 else None
    return Card(first.name, first.type, single, sums_of(group), shown, chart, load_chart)
