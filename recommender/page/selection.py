"""The selection in the address of the page, and the addresses of other selections. With these, no script is needed."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from recommender.decisions.record import Status

_LONGEST_TEXT: Final = 300
_MOST_FIELDS: Final = 12
_LONGEST_PAGE_NUMBER: Final = 6


class SortOrder(StrEnum):
    """The order of recommendations and of targets."""

    STATUS = "status"
    """The worst status first; within a status, lines with a refused target, then the largest changes."""
    NAME = "name"
    CHANGE = "change"
    """The largest change first."""
    REPLICAS = "replicas"
    """The largest size first."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection in the address of the page."""

    name: str | None = None
    """The recommendation that is shown alone, with its targets; None for all recommendations."""
    filter: str = ""
    """Only targets that have this text in their namespace and name, status or message."""
    search: str = ""
    """Only recommendations that have this text in their names, types, targets, statuses or messages."""
    status: Status | None = None
    """Only recommendations with this status; None for any."""
    equals: str = ""
    """The key of a group with the same problem, whose lines are shown singly; empty if groups are summed up."""
    sort: SortOrder = SortOrder.STATUS
    page: int = 1
    """The page of a list that does not fit into one answer; the first one is 1."""


_NAMES: Final = {field.name: "show" if field.name == "name" else field.name for field in fields(Selection)}
"""The name of each field in an address."""
EVERYTHING: Final = Selection()


def selection_of(query: str) -> Selection:
    """Return the selection in a query string; unreadable parts are ignored."""
    try:
        given = parse_qs(query, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return EVERYTHING
    texts = {name: values[0] for name, values in given.items()}
    number = texts.get("page", "")
    return Selection(
        name=texts.get("show"),
        filter=_text(texts, "filter"),
        search=_text(texts, "search"),
        status=next((status for status in Status if status.value == texts.get("status")), None),
        equals=_text(texts, "equals"),
        sort=next((order for order in SortOrder if order.value == texts.get("sort")), SortOrder.STATUS),
        page=max(1, int(number)) if number.isdecimal() and len(number) <= _LONGEST_PAGE_NUMBER else 1,
    )


def address_of(selection: Selection, **changes: Any) -> str:  # noqa: ANN401 - the values of its fields
    """Return the relative address of a changed selection; it begins with the first page unless `page` is given."""
    wanted = replace(selection, **({"page": 1} | changes))
    given = [
        (_NAMES[field.name], str(value))
        for field in fields(Selection)
        if (value := getattr(wanted, field.name)) != getattr(EVERYTHING, field.name)
    ]
    return f"?{urlencode(given)}" if given else "./"


def _text(texts: dict[str, str], name: str) -> str:
    return texts.get(name, "").strip()[:_LONGEST_TEXT]
