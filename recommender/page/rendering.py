"""Prints a publication as HTML. Everything that the page states comes from the records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from recommender.decisions.record import Status, TargetAction
from recommender.page import history

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.decisions.publication import Publication
    from recommender.decisions.record import Record, TargetOutcome

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
    TargetAction.REFUSED: "refused",
}


class PageRenderer:
    """Renders the page. Safe to use from many threads."""

    def __init__(self, version: str) -> None:
        environment = Environment(
            loader=PackageLoader("recommender.page"),
            autoescape=select_autoescape(),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "utc": _utc,
            "number": _number,
            "status_text": _STATUS_TEXTS.__getitem__,
            "action_text": _ACTION_TEXTS.__getitem__,
            "change": _change,
        }
        environment.globals |= {"version": version, "chart": history}
        self._template = environment.get_template("page.html")

    def page(self, publication: Publication, points: Mapping[str, Sequence[history.ChartPoint]]) -> str:
        """Return the whole document."""
        names = dict.fromkeys(record.name for record in publication.records)
        charts = {name: history.chart_of(points.get(name, ())) for name in names}
        return self._template.render(
            publication=publication,
            records=publication.records,
            charts=charts,
            counts=_counts(publication.records),
        )


def _counts(records: Sequence[Record]) -> tuple[tuple[str, int], ...]:
    """Return how many recommendations have each status, of those that occur."""
    statuses = [record.status for record in records]
    return tuple((_STATUS_TEXTS[status], statuses.count(status)) for status in Status if status in statuses)


def _change(outcome: TargetOutcome, replicas: int | None) -> str:
    """Return the change of a target: `3 → 11`, or its size where nothing changes."""
    current = "unknown" if outcome.current_replicas is None else str(outcome.current_replicas)
    if replicas is None or replicas == outcome.current_replicas:
        return current
    return f"{current} → {replicas}"


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"
