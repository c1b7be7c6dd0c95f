"""Renders a publication as HTML, with a card for each recommendation. All that the page states is in the records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

from recommender.decisions.loads.prediction import forecast_of
from recommender.decisions.record import Record, Status, TargetOutcome
from recommender.decisions.texts.record_texts import action_text, message_without_notes, money_text
from recommender.kinds.table import kind_named
from recommender.page import axes
from recommender.page.overview import Read, overview_of
from recommender.page.selection import EVERYTHING, Selection, SortOrder, address_of
from recommender.page.target_table import MOST_SHOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2.environment import TemplateModule

    from recommender.decisions.publication import Publication
    from recommender.kinds.kind import RecommendationKind
    from recommender.page.recommendation_list import PageLine


_STATUS_TEXTS = {
    Status.OK: "OK",
    Status.HELD: "Held",
    Status.STALE: "Stale",
    Status.ERROR: "Error",
}
_SORT_TEXTS = {
    SortOrder.STATUS: "status, errors first",
    SortOrder.NAME: "name",
    SortOrder.CHANGE: "largest change",
    SortOrder.REPLICAS: "largest size",
}
_NO_SIZE = "\N{EN DASH}"
_LISTED = 20
"""At most this many names of a group with the same problem are listed; a link shows all of them."""


class PageRenderer:
    """Renders the page. Safe to use from many threads."""

    def __init__(
        self, version: str, templates: Sequence[BaseLoader] = (PackageLoader("recommender", "kinds"),)
    ) -> None:
        """`templates` are loaders of further templates, such as those of the kinds."""
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
            "action_text": action_text,
            "change": _change,
            "size": self._size,
            "when": _when,
            "ratio_text": _ratio_text,
        }
        environment.globals |= {"version": version, "axes": axes, "most_shown": MOST_SHOWN}
        environment.globals |= {"address": address_of, "sort_texts": _SORT_TEXTS, "most_listed": _LISTED}
        self._environment = environment
        self._template = environment.get_template("page.html")

    def _shown_by(self, record: Record) -> tuple[RecommendationKind[Any] | None, TemplateModule | None]:
        """Return the kind of a record, and the macros by which it shows its details."""
        kind = kind_named(record.type)
        if kind is None or not kind.page:
            return kind, None
        self._environment.filters |= kind.page_filters
        return kind, self._environment.get_template(kind.page).module

    def _size(self, line: PageLine) -> str:
        """Return the size for the index: its change, or the value of a kind that recommends no number of replicas."""
        if line.replicas is not None or line.current is not None:
            return _change_text(line.current, line.replicas)
        kind = kind_named(line.type)
        return (kind.value_text(line.first) if kind is not None else "") or _NO_SIZE

    def page(self, publication: Publication, read: Read, selection: Selection = EVERYTHING) -> str:
        """Return the whole document; `read` returns the history of the recommendation that it is given by name."""
        return self._template.render(
            publication=publication,
            overview=overview_of(publication.records, read, selection),
            selection=selection,
        )


def _message(record: Record) -> str:
    kind = kind_named(record.type)
    return message_without_notes(record, () if kind is None else kind.notes(record))


def _change(outcome: TargetOutcome, replicas: int | None) -> str:
    """Return the change of a target: `3 → 11`, or its size if nothing changes."""
    return _change_text(outcome.current_replicas, replicas)


def _change_text(current: int | None, replicas: int | None) -> str:
    before = "unknown" if current is None else _number(current)
    return before if replicas is None or replicas == current else f"{before} → {_number(replicas)}"


def _ratio_text(ratio: float | None) -> str:
    """Return in words how a shortage compares with that of plain headroom, by the quotient of both."""
    if ratio is None:
        return "neither had a shortage"
    # The number is rounded as it is shown beside the text.
    if round(ratio, 2) == 1:
        return "as plain headroom"
    return "less shortage than plain headroom" if ratio < 1 else "more shortage than plain headroom"


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _when(seconds: float, now: float | None) -> str:
    """Return a time of day and how far ahead it is, such as `10:19 UTC, in 3 min`."""
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
