"""With many recommendations, errors come first, equal ones share a card, and an index is sorted without a script."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.web.http import Request
from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status, TargetAction, TargetOutcome, TargetReference
from recommender.page.handler import PageHandler
from recommender.page.list_pages import part_of
from recommender.page.overview import INDEX_ROWS, MOST_CARDS, PageOverview, overview_of
from recommender.page.problem_groups import PageRow
from recommender.page.selection import Selection, SortOrder, address_of, selection_of

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW = 1_000_000.0


def entry(
    name: str, status: Status = Status.OK, message: str = "", replicas: int | None = 5, action: str = "metric"
) -> Record:
    has_value = status in {Status.OK, Status.HELD}
    target = TargetReference("apps/v1", "Deployment", f"ns-{name}", name)
    outcome = TargetOutcome(target, 5, TargetAction(action), message="" if action == "metric" else message)
    shown = "" if action == "refused" else message
    return Record(name, "proportional", NOW, status, shown, replicas if has_value else None, targets=(outcome,))


def failing(names: Iterable[str], message: str = "no series of {name} since 12 s") -> list[Record]:
    return [entry(name, Status.ERROR, message.format(name=name)) for name in names]


def seen(records: Iterable[Record], **wanted: object) -> PageOverview:
    return overview_of(tuple(records), lambda _: (), Selection(**wanted))  # type: ignore[arg-type]


def names(overview: PageOverview) -> list[str | list[str]]:
    """Return what is shown, in order; groups of equal recommendations are lists."""
    items = overview.cards if overview.index is None else overview.index.items
    return [
        item.name
        if not isinstance(item, PageRow)
        else [line.name for line in item.lines]
        if item.key
        else item.first.name
        for item in items
    ]


def page(records: Iterable[Record], query: str = "") -> str:
    shown = Publication(leads=True, time=NOW, valid_until=NOW + 60.0, records=tuple(records))
    handler = PageHandler(lambda: shown, lambda _name, _since: (), "1.0")
    route = next(route for route in handler.routes() if route.path == "/")
    return route.handle(Request("GET", "/", query)).body.decode()


class CountedHistory:
    """A history without points that records what was read."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def read(self, name: str, since: float = 0.0) -> tuple[()]:
        del since
        self.names.append(name)
        return ()


def test_the_worst_recommendation_is_first() -> None:
    records = (
        entry("fine"),
        entry("grows", replicas=9),
        entry("owned", action="refused", message="an HPA sets its size"),
        entry("paused", Status.HELD, "paused"),
        entry("old", Status.STALE, "no data"),
        entry("wrong", Status.ERROR, "no such key"),
    )
    found = seen(records)
    assert names(found) == ["wrong", "old", "paused", "owned", "grows", "fine"]
    assert [status for status, _ in found.statuses] == [Status.ERROR, Status.STALE, Status.HELD, Status.OK]


@pytest.mark.parametrize(
    ("order", "shown"),
    [
        (SortOrder.NAME, ["web-2", "web-10", "web-11"]),
        (SortOrder.CHANGE, ["web-11", "web-2", "web-10"]),
        (SortOrder.REPLICAS, ["web-10", "web-2", "web-11"]),
        (SortOrder.STATUS, ["web-11", "web-2", "web-10"]),
    ],
)
def test_the_order_can_be_selected(order: SortOrder, shown: list[str]) -> None:
    records = (entry("web-10", replicas=6), entry("web-2", replicas=3), entry("web-11", replicas=1))
    assert names(seen(records, sort=order)) == shown


def test_equal_problems_share_one_card_whatever_names_and_times_they_contain() -> None:
    records = [*failing(["a", "b"]), entry("c", Status.ERROR, "no series of c since 999 s"), entry("d"), entry("e")]
    assert names(seen(records)) == [["a", "b", "c"], "d", "e"]


def test_equal_mistakes_share_one_card_per_file() -> None:
    places = {"a": "own.yaml:7", "b": "own.yaml:70", "c": "other.yaml:7", "d": "other.yml:8"}
    records = [entry(name, Status.ERROR, f"{place}: unknown key 'linaer'") for name, place in places.items()]
    assert names(seen(records)) == [["a", "b"], "c", "d"]


def test_reasons_with_different_numbers_are_different() -> None:
    records = [entry(name, Status.ERROR, f"server:{port}: no answer") for name, port in (("a", 9090), ("b", 9091))]
    assert names(seen(records)) == ["a", "b"]


@pytest.mark.parametrize(
    "other",
    [
        entry("b", Status.ERROR, "Prometheus answered 500"),
        entry("b", Status.STALE, "Prometheus answered 403"),
        replace(entry("b", Status.ERROR, "Prometheus answered 403"), type="predictive"),
    ],
    ids=["another reason", "another status", "another kind"],
)
def test_entries_that_differ_in_more_than_names_and_times_are_not_equal(other: Record) -> None:
    assert names(seen([entry("a", Status.ERROR, "Prometheus answered 403"), other])) != [["a", "b"]]


def test_the_members_of_a_group_are_shown_one_by_one_on_demand() -> None:
    records = [*failing(["a", "b"]), entry("c")]
    (group, _) = seen(records).cards
    assert isinstance(group, PageRow)
    assert names(seen(records, equals=group.key)) == ["a", "b"]


@pytest.mark.parametrize(("count", "is_index"), [(MOST_CARDS, False), (MOST_CARDS + 1, True)])
def test_more_than_sixty_recommendations_have_an_index(count: int, *, is_index: bool) -> None:
    records = [entry(f"web-{number}") for number in range(count)]
    assert ((found := seen(records)).index is not None, len(names(found))) == (is_index, count)
    text = page(records)
    assert (text.count("<article"), "Index of recommendations" in text) == ((0, True) if is_index else (count, False))


def test_an_index_reads_no_history_and_cards_read_only_some() -> None:
    history = CountedHistory()
    overview_of([entry(f"web-{number}") for number in range(61)], history.read, Selection())
    assert history.names == []
    overview_of([entry(f"web-{number}") for number in range(60)], history.read, Selection())
    assert len(history.names) == 20
    overview_of([entry(f"web-{number}") for number in range(5000)], history.read, Selection("web-7"))
    assert history.names[20:] == ["web-7"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("WEB-1", ["web-1"]),
        ("ns-web-2", ["web-2"]),
        ("error", ["wrong"]),
        ("such key", ["wrong"]),
        ("proportional", ["wrong", "web-1", "web-2"]),
        ("nothing has this", []),
    ],
)
def test_a_search_finds_names_targets_statuses_types_and_reasons(text: str, shown: list[str]) -> None:
    records = (entry("web-1"), entry("web-2"), entry("wrong", Status.ERROR, "no such key"))
    assert names(seen(records, search=text)) == shown
    assert names(seen(records, status=Status.ERROR)) == ["wrong"]


def test_a_recommendation_that_does_not_exist_is_reported_as_missing() -> None:
    assert "There is no recommendation gone" in page([entry("web")], "show=gone")
    assert "There is no recommendation" not in page([entry("web")], "show=web")


@pytest.mark.parametrize("query", ["", "page=3", "sort=name", "search=web-1", "show=web-7", "status=ok&page=999999"])
def test_the_page_of_five_thousand_recommendations_stays_small(query: str) -> None:
    records = [
        entry(f"web-{number}", Status.ERROR if number % 2 else Status.OK, f"{number} " + 2000 * "x")
        for number in range(5000)
    ]
    text = page(records, query)
    assert len(text) < 100 * 1024
    assert text.count("<tr") <= 2 * INDEX_ROWS + 1


def test_texts_of_tenants_cannot_become_markup_in_an_index_or_a_card() -> None:
    hostile = "\"'><script>alert(1)</script>"
    for count in (2, 70):
        records = [entry(f"{hostile}{number}", Status.ERROR, f"{hostile} {number}") for number in range(count)]
        for query in ("", "search=%22%3E%3Cscript%3E", "show=%22%3E%3Cscript%3E", "equals=%22%3E%3Cscript%3E"):
            assert "<script" not in page(records, query)


SELECTIONS = st.builds(
    Selection,
    name=st.none() | st.text(min_size=1, max_size=20),
    filter=st.text(max_size=20).map(str.strip),
    search=st.text(max_size=20).map(str.strip),
    status=st.none() | st.sampled_from(Status),
    equals=st.text("0123456789abcdef", max_size=16),
    sort=st.sampled_from(SortOrder),
    page=st.integers(1, 999_999),
)


@given(SELECTIONS)
def test_a_selection_is_restored_from_its_address(selection: Selection) -> None:
    address = address_of(selection, page=selection.page)
    assert selection_of(address.removeprefix("./").removeprefix("?")) == selection


@pytest.mark.parametrize("query", ["page=0", "page=-1", "page=x", "page=9999999", "page=%E2%91%A0", "sort=x&status=x"])
def test_invalid_parts_of_an_address_select_nothing(query: str) -> None:
    assert selection_of(query) == Selection()


@given(st.integers(0, 500), st.integers(-5, 100), st.integers(1, 50))
def test_the_parts_of_a_list_add_up_to_the_list(count: int, number: int, most: int) -> None:
    items = range(count)
    parts = [part_of(items, each + 1, most) for each in range(part_of(items, 1, most).parts)]
    assert [item for part in parts for item in part.items] == list(items)
    assert part_of(items, number, most) in parts


def test_the_link_of_a_group_leads_to_its_members() -> None:
    records = [*failing([f"bad-{number}" for number in range(30)]), *(entry(f"web-{number}") for number in range(60))]
    (link,) = re.findall(r'href="\?(equals=[0-9a-f]+)">30 alike', page(records))
    assert page(records, link).count("<article") == 30


def test_a_recommendation_without_a_size_is_last_if_the_largest_are_first() -> None:
    zero, none = entry("zero", replicas=0), entry("none", Status.ERROR, "no data")
    assert names(seen([none, zero], sort=SortOrder.REPLICAS)) == ["zero", "none"]
