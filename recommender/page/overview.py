"""The content of the page for a publication: cards for recommendations and groups with one problem, or an index."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from recommender.decisions.summary import WORST_FIRST
from recommender.kinds.table import kind_named
from recommender.page.list_pages import ListPart, part_of
from recommender.page.load_chart import LoadChart, load_chart_of
from recommender.page.problem_groups import PageRow, problem_key, rows_of
from recommender.page.recommendation_list import PageLine, is_found, lines_of, sorted_lines
from recommender.page.size_chart import Chart, chart_of
from recommender.page.target_table import ShownTargets, TargetSums, shown_targets, sums_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recommender.decisions.history_point import HistoryPoint
    from recommender.decisions.record import Record, Status
    from recommender.page.selection import Selection

MOST_CARDS: Final = 60
"""With more recommendations than this, the page shows an index."""
INDEX_ROWS: Final = 100
"""At most this many rows of the index are in one answer."""
_MOST_OPEN: Final = 10
"""With more cards than this, only cards with a problem show their details at first."""
_MOST_CHARTED: Final = 20
"""At most this many cards have charts; the charts of other recommendations are on their own pages."""

Read: TypeAlias = "Callable[[str], Sequence[HistoryPoint]]"


@dataclass(frozen=True, slots=True)
class Card:
    """One recommendation in full."""

    name: str
    type: str
    record: Record | None
    """The record that is shown in full; with `forEach`, only if a single target is requested."""
    is_open: bool
    """Whether the card's details are shown at first."""
    sums: TargetSums | None = None
    """The sums over targets; only with `forEach`."""
    shown: ShownTargets | None = None
    """The targets that are shown; only with `forEach`, and if requested."""
    chart: Chart | None = None
    load_chart: LoadChart | None = None


@dataclass(frozen=True, slots=True)
class PageOverview:
    """Everything that the page shows: cards, or an index."""

    cards: tuple[Card | PageRow, ...]
    """The cards; a row is a group of recommendations with the same problem."""
    index: ListPart[PageRow] | None
    """The index; None if there are cards."""
    found: int
    """How many recommendations match the selection."""
    total: int
    statuses: tuple[tuple[Status, int], ...]
    """How many recommendations have each status, only statuses that occur, the worst first."""
    is_missing: bool = False
    """Whether the requested recommendation does not exist."""


def overview_of(records: Sequence[Record], read: Read, selection: Selection) -> PageOverview:
    """Return the content; `read` returns the history of a name, and is called only for cards."""
    lines = lines_of(records)
    counts = Counter(line.status for line in lines)
    statuses = tuple((status, counts[status]) for status in WORST_FIRST if counts[status])
    named = [line for line in lines if line.name == selection.name]
    if named:
        cards = tuple(_card(line, read, selection, is_open=True) for line in named[:MOST_CARDS])
        return PageOverview(cards, None, len(named), len(lines), statuses)
    found = sorted_lines(_matching_lines(lines, selection), selection.sort)
    rows = [PageRow((line,)) for line in found] if selection.search or selection.equals else rows_of(found)
    is_missing = selection.name is not None
    if len(found) > MOST_CARDS:
        index = part_of(rows, selection.page, INDEX_ROWS)
        return PageOverview((), index, len(found), len(lines), statuses, is_missing)
    few = len(rows) <= _MOST_OPEN
    shown = tuple(
        row
        if row.key
        else _card(
            row.first,
            read if place < _MOST_CHARTED else _no_history,
            selection,
            is_open=few or has_trouble(row.first),
        )
        for place, row in enumerate(rows)
    )
    return PageOverview(shown, None, len(found), len(lines), statuses, is_missing)


def has_trouble(line: PageLine) -> bool:
    """Return whether the line needs attention: its status is not the best one, or something else owns a target."""
    return line.is_refused or line.status is not WORST_FIRST[-1]


def _matching_lines(lines: Sequence[PageLine], selection: Selection) -> list[PageLine]:
    text = selection.search.casefold()
    return [
        line
        for line in lines
        if selection.status in {None, line.status}
        and (not selection.equals or problem_key(line) == selection.equals)
        and (not text or is_found(line, text))
    ]


def _no_history(_name: str) -> tuple[()]:
    return ()


def _noun(line: PageLine) -> str:
    kind = kind_named(line.type)
    return "replicas" if kind is None else kind.charted


def _card(line: PageLine, read: Read, selection: Selection, *, is_open: bool) -> Card:
    points = read(line.name)
    chart, load_chart = chart_of(points, _noun(line)), load_chart_of(points)
    if not line.has_targets_of_series:
        return Card(line.name, line.type, line.first, is_open, chart=chart, load_chart=load_chart)
    shown = shown_targets(line.records, selection) if selection.name == line.name else None
    single = shown.part.items[0] if shown is not None and shown.filter and len(shown.part.items) == 1 else None
    record = None if single is None else single.first.first
    return Card(line.name, line.type, record, is_open, sums_of(line.records), shown, chart, load_chart)
