"""The page and the API show what is in force now, whatever the texts contain."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from adapter.foundation.web.http import Request, Response
from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status
from recommender.page.handler import KeptPages, PageHandler
from recommender.page.selection import Selection

DECIDED = Record("coredns", "proportional", 1_000_000.0, Status.OK, "", 11)
LEADING = Publication(leads=True, leader="pod-1", time=1_000_000.0, valid_until=1_000_060.0, records=(DECIDED,))


def no_history(_name: str, _since: float) -> tuple[()]:
    """Return no points."""
    return ()


def answer(publication: Publication, path: str) -> Response:
    handler = PageHandler(lambda: publication, no_history, "1.0")
    route = next(route for route in handler.routes() if route.path == path)
    return route.handle(Request("GET", path))


def test_decisions_are_served_while_they_are_current() -> None:
    shown = LEADING.as_of(1_000_060.0, leads=True)
    assert json.loads(answer(shown, "/api/v1/recommendations").body)["items"][0]["replicas"] == 11


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (LEADING.as_of(1_000_060.5, leads=True), b"too old to be used"),
        (LEADING.as_of(1_000_001.0, leads=False), b"that lasts, its log says why"),
        (Publication(leads=True).as_of(1_000_001.0, leads=True), b"not made its first decision yet"),
    ],
    ids=["polls have ended", "the leadership has ended", "no poll yet"],
)
def test_outdated_decisions_are_not_served(shown: Publication, text: bytes) -> None:
    api, page = answer(shown, "/api/v1/recommendations"), answer(shown, "/")
    assert (api.status, text in api.body, b"coredns" in api.body) == (503, True, False)
    assert (page.status, text in page.body, b"coredns" in page.body) == (200, True, False)


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "a\x00b\x1b[31m", '"><img src=x>'])
def test_no_text_breaks_the_page_or_the_api(hostile: str) -> None:
    shown = replace(LEADING, records=(DECIDED, replace(DECIDED, name=hostile, message=hostile, binding=hostile)))
    api, page = answer(shown, "/api/v1/recommendations"), answer(shown, "/")
    assert len(json.loads(api.body)["items"]) == 2
    assert b"<script>" not in page.body
    assert b"<img" not in page.body


def test_a_page_is_rendered_once_for_all_requests_within_a_second() -> None:
    rendered: list[tuple[float | None, str | None]] = []
    now = [0.0]

    def render(publication: Publication, selection: Selection) -> bytes:
        rendered.append((publication.time, selection.name))
        return str(len(rendered)).encode()

    pages = KeptPages(render, lambda: now[0])
    later = replace(LEADING, time=1_000_010.0)
    first, other = Selection(), Selection("coredns")
    assert [pages.page(LEADING, first), pages.page(LEADING, other), pages.page(LEADING, first)] == [b"1", b"2", b"1"]
    assert pages.page(later, first) == b"3"
    now[0] += 1.0
    assert pages.page(later, first) == b"4"
    for number in range(100):
        pages.page(later, Selection(str(number)))
    assert pages.page(later, first) == b"105"
    assert rendered[:3] == [(1_000_000.0, None), (1_000_000.0, "coredns"), (1_000_010.0, None)]
