"""Prints a publication as HTML, a card for each recommendation. Everything that the page states is in the records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

from recommender.decisions.loads.prediction import forecast_of
from recommender.decisions.record import Status, TargetAction
from recommender.decisions.summary import WORST_FIRST, grouped
from recommender.decisions.texts.record_texts import message_without_notes, money_text
from recommender.kinds.table import kind_named
from recommender.page import axes
from recommender.page import target_table as targets
from recommender.page.history import chart_of
from recommender.page.load_chart import load_chart_of
from recommender.page.target_table import shown_targets, sums_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import BaseLoader
    from jinja2.environment import TemplateModule

    from recommender.decisions.publication import Publication
    from recommender.decisions.record import Record, TargetOutcome
    from recommender.kinds.kind import RecommendationKind
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


_STATUS_TEXTS = {
    Status.OK: "OK",
    Status.HELD: "Held",
    Status.STALE: "Stale",
    Status.ERROR: "Error",
}
_ACTION_TEXTS = {
    TargetAction.NONE: "no change",
    TargetAction.METRIC: "published as a metric",
    TargetAction.SCALE: "scale call",
    TargetAction.RESIZE: "resize",
    TargetAction.REFUSED: "refused",
}
_NOTHING = targets.Selection()


class PageRenderer:
    """Renders the page. Safe to use from many threads."""

    def __init__(
        self, version: str, templates: Sequence[BaseLoader] = (PackageLoader("recommender", "kinds"),)
    ) -> None:
        """`templates` include those of the kinds."""
        environment = Environment(
            loader=ChoiceLoader([PackageLoader("recommender.page"), *templates]),
            autoescape=select_autoescape(),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "utc": _utc,
            "number": _number,
            "money": money_text,
            "message_without_notes": _message,
            "forecast": forecast_of,
            "shown_by": self._shown_by,
            "status_text": _STATUS_TEXTS.__getitem__,
            "action_text": _ACTION_TEXTS.__getitem__,
            "change": _change,
            "when": _when,
            "ratio_text": _ratio_text,
        }
        environment.globals |= {"version": version, "axes": axes, "most_shown": targets.MOST_SHOWN}
        self._environment = environment
        self._template = environment.get_template("page.html")

    def _shown_by(self, record: Record) -> tuple[RecommendationKind[Any] | None, TemplateModule | None]:
        """Return the kind of a record, and the macros by which it shows its details."""
        kind = kind_named(record.type)
        if kind is None or not kind.page:
            return kind, None
        self._environment.filters |= kind.page_filters
        return kind, self._environment.get_template(kind.page).module

    def page(
        self,
        publication: Publication,
        points: Mapping[str, Sequence[ChartPoint]],
        selection: targets.Selection = _NOTHING,
    ) -> str:
        """Return the whole document; `points` are the history by name."""
        return self._template.render(
            publication=publication,
            cards=cards_of(publication.records, points, selection),
            counts=_counts(publication.records),
        )


def _message(record: Record) -> str:
    kind = kind_named(record.type)
    return message_without_notes(record, () if kind is None else kind.notes(record))


def _counts(records: Sequence[Record]) -> tuple[tuple[str, int], ...]:
    """Return how many recommendations have each status, of those that occur; with `forEach` the worst one counts."""
    statuses = [min((each.status for each in group), key=WORST_FIRST.index) for group in grouped(records).values()]
    return tuple((_STATUS_TEXTS[status], statuses.count(status)) for status in Status if status in statuses)


def _change(outcome: TargetOutcome, replicas: int | None) -> str:
    """Return the change of a target: `3 → 11`, or its size where nothing changes."""
    current = "unknown" if outcome.current_replicas is None else str(outcome.current_replicas)
    if replicas is None or replicas == outcome.current_replicas:
        return current
    return f"{current} → {replicas}"


def _ratio_text(ratio: float | None) -> str:
    """Return what a shortage divided by that of plain headroom means."""
    if ratio is None:
        return "neither had a shortage"
    # As it is shown beside the text.
    if round(ratio, 2) == 1:
        return "as plain headroom"
    return "less shortage than plain headroom" if ratio < 1 else "more shortage than plain headroom"


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _when(seconds: float, now: float | None) -> str:
    """Return a time of the day with its distance: `10:19 UTC, in 3 min`."""
    time = datetime.fromtimestamp(seconds, UTC).strftime("%H:%M UTC")
    if now is None or seconds <= now:
        return time
    minutes = (seconds - now) / 60
    distance = (
        f"{minutes * 60:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
    )
    return f"{time}, in {distance}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e5 else f"{value:,.6g}"
