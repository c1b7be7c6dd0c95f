"""Ten thousand targets of one recommendation are one line, and some of them are shown on request."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import cache

import pytest

from adapter.foundation.web.http import Request, Response
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status, Step, TargetAction, TargetOutcome, TargetReference
from recommender.page.handler import PageHandler
from recommender.page.selection import Selection, selection_of
from recommender.page.target_table import MOST_SHOWN, shown_targets, sums_of
from tests.recommender.page.test_handler import no_history

NOW = 1_000_000.0


def target(number: int, status: Status = Status.OK, replicas: int | None = 5, current: int = 5) -> Record:
    each = TargetReference("apps/v1", "Deployment", "shop", f"web-{number}")
    load = PredictedLoad(10.0, 12.0, NOW + 120, {"0.5": 11.0, "0.95": 12.0})
    has_value = status in {Status.OK, Status.HELD}
    return Record(
        "tenants",
        "predictive",
        NOW,
        status,
        "" if has_value else "no series",
        replicas if has_value else None,
        steps=(Step("headroom/load", 5.0, "ceil(12 / 2.5)"),) if has_value else (),
        binding="headroom/load" if has_value else None,
        targets=(TargetOutcome(each, current, TargetAction.METRIC),),
        details=Prediction(load, "headroom", "it is configured", {"linear": 1.5}) if has_value else None,
        each=each,
    )


@cache
def ten_thousand() -> tuple[Record, ...]:
    return tuple(target(number, Status.STALE if number % 1000 == 7 else Status.OK) for number in range(10_000))


def handler(*records: Record) -> PageHandler:
    shown = Publication(leads=True, time=NOW, valid_until=NOW + 60.0, records=records)
    return PageHandler(lambda: shown, no_history, "1.0")


@cache
def many() -> PageHandler:
    return handler(*ten_thousand())


def answer(handled: PageHandler, query: str = "", path: str = "/") -> Response:
    route = next(route for route in handled.routes() if route.path == path)
    return route.handle(Request("GET", path, query))


def test_the_sums_cover_all_targets() -> None:
    refused = TargetOutcome(ten_thousand()[0].targets[0].target, 5, TargetAction.REFUSED)
    records = (target(1, replicas=9), target(2), target(3, Status.ERROR), replace(target(4), targets=(refused,)))
    found = sums_of(records)
    assert (found.summary.replicas, found.summary.current, found.summary.refused) == (19, 20, 1)
    assert (found.targets, found.changing, found.models) == (4, 1, (("headroom", 3),))
    assert (found.load, found.predicted) == (30.0, 36.0)
    assert found.counts == ((Status.ERROR, 1), (Status.OK, 3))


def test_the_worst_targets_are_listed_first() -> None:
    refused = replace(target(5), targets=(replace(target(5).targets[0], action=TargetAction.REFUSED),))
    records = (
        target(1),
        target(2, replicas=9),
        target(3, Status.STALE),
        target(4, Status.HELD),
        refused,
        target(6, Status.ERROR),
    )
    names = [row.first.name for row in shown_targets(records, Selection()).part.items]
    assert names == [f"shop/web-{number}" for number in (6, 3, 4, 5, 2, 1)]


@pytest.mark.parametrize(
    ("wanted", "matching"),
    [("", 10_000), ("STALE", 10), ("no series", 10), ("shop/web-99", 1), ("op/web-99", 111), ("no such thing", 0)],
)
def test_the_filter_finds_names_statuses_and_messages(wanted: str, matching: int) -> None:
    found = shown_targets(ten_thousand(), Selection("tenants", wanted))
    assert (found.matching, len(found.part.items)) == (matching, min(matching, MOST_SHOWN))


@pytest.mark.parametrize(
    ("query", "selection"),
    [
        ("", Selection()),
        ("show=tenants", Selection("tenants")),
        ("show=a%20b&filter=+shop%2Fweb+", Selection("a b", "shop/web")),
        ("filter=web", Selection(None, "web")),
        ("&".join(f"a{number}=1" for number in range(100)), Selection()),
        ("show=%ff%00", Selection("\ufffd\x00")),
        (f"show=a&filter={'x' * 1000}", Selection("a", "x" * 300)),
    ],
)
def test_the_address_determines_what_is_listed(query: str, selection: Selection) -> None:
    assert selection_of(query) == selection


@pytest.mark.parametrize("query", ["", "show=tenants", "show=tenants&filter=web-1", "show=tenants&filter=shop/web-17"])
def test_the_page_stays_small_with_ten_thousand_targets(query: str) -> None:
    body = answer(many(), query).body
    assert len(body) < 100 * 1024
    assert body.count(b"<article") == 1
    assert b"10,000 targets" in body


def test_targets_are_listed_only_on_request() -> None:
    handled = many()
    assert b"web-1234" not in answer(handled).body
    assert b"10,000 targets</caption>" in answer(handled, "show=tenants").body
    assert b"There is no recommendation other" in answer(handled, "show=other").body


def test_a_single_target_is_explained_in_full() -> None:
    body = answer(many(), "show=tenants&filter=shop/web-1234").body
    assert b"ceil(12 / 2.5)" in body
    assert b"more shortage than plain headroom" in body


def test_a_filter_cannot_become_markup() -> None:
    body = answer(handler(target(1)), "show=tenants&filter=%22%3E%3Cscript%3E").body
    assert b"<script" not in body


def test_the_api_has_every_target_and_encodes_them_once() -> None:
    handled = many()
    first, second = (answer(handled, path="/api/v1/recommendations") for _ in range(2))
    assert first.body is second.body
    assert first.gzipped is not None
    assert gzip.decompress(first.gzipped) == first.body
    assert len(json.loads(first.body)["items"]) == 10_000


def test_the_api_answers_a_new_decision_with_a_new_document() -> None:
    shown = [Publication(leads=True, time=NOW, records=(target(1),))]
    handled = PageHandler(lambda: shown[-1], no_history, "1.0")
    before = answer(handled, path="/api/v1/recommendations").body
    shown.append(Publication(leads=True, time=NOW + 10, records=(target(1, replicas=6),)))
    after = answer(handled, path="/api/v1/recommendations").body
    assert [json.loads(body)["items"][0]["replicas"] for body in (before, after)] == [5, 6]
