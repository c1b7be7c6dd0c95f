"""The routes of the page and of `/api/v1/recommendations`."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from adapter.foundation.web.http import JSON, TEXT, Request, Response, json_line
from adapter.foundation.web.rendering import compressed_in_advance
from adapter.foundation.web.routes import Route
from recommender.decisions.texts.times import rfc3339
from recommender.page.rendering import PageRenderer
from recommender.page.selection import Selection, selection_of
from recommender.printed.document import API_VERSION, recommendation_list

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recommender.decisions.history_point import HistoryPoint
    from recommender.decisions.publication import Publication
    from recommender.decisions.record import Record

_MOST_PAGES = 8
_KEPT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Page:
    publication: Publication
    until: float
    body: bytes


@dataclass(frozen=True, slots=True)
class _Encoded:
    records: Sequence[Record]
    time: float
    body: bytes
    gzipped: bytes | None


class _EncodedAnswers:
    """Keeps the last document. Any number of threads may use it: while one encodes it, the others wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: _Encoded | None = None

    def answer(self, records: Sequence[Record], decided: float, headers: tuple[tuple[str, str], ...]) -> Response:
        """Return the answer with the records that were decided at that time."""
        with self._lock:
            last = self._last
            if last is None or last.records is not records or last.time != decided:
                body = json_line(recommendation_list(records, decided))
                last = self._last = _Encoded(records, decided, body, compressed_in_advance(body))
        return Response(200, last.body, headers=headers, gzipped=last.gzipped)


class KeptPages:
    """Keeps some pages of the last publication for a moment. Safe to use from any number of threads."""

    def __init__(
        self, render: Callable[[Publication, Selection], bytes], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._render = render
        self._clock = clock
        self._lock = threading.Lock()
        self._pages: dict[Selection, _Page] = {}

    def page(self, publication: Publication, selection: Selection) -> bytes:
        """Return the page; while one thread renders a page, the others wait for it."""
        with self._lock:
            now = self._clock()
            page = self._pages.get(selection)
            if page is None or now >= page.until or not _shows(page.publication, publication):
                self._pages.pop(selection, None)
                if len(self._pages) >= _MOST_PAGES:
                    del self._pages[next(iter(self._pages))]
                # The history of the last poll may be written a moment after it, so no page is kept for longer.
                page = _Page(publication, now + _KEPT_SECONDS, self._render(publication, selection))
                self._pages[selection] = page
            return page.body


def _shows(one: Publication, other: Publication) -> bool:
    """Return whether two publications are the same for a reader, without comparing their records one by one."""
    facts = (one.leads, one.leader, one.time, one.has_expired)
    return one.records is other.records and facts == (other.leads, other.leader, other.time, other.has_expired)


HTML = "text/html; charset=utf-8"
_SHOWN_SECONDS = 86_400.0
CSS = "text/css; charset=utf-8"
_SAFE = (
    ("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
)
"""Headers with which the page runs no script, and neither loads from nor sends to other servers, whatever the names on
the page contain."""


class PageHandler:
    """Answers requests for the page and for the JSON."""

    def __init__(
        self, latest: Callable[[], Publication], history: Callable[[str, float], Sequence[HistoryPoint]], version: str
    ) -> None:
        """`history` returns the points of a recommendation from the given time on, the oldest first; never raises."""
        self._latest = latest
        self._history = history
        self._answers = _EncodedAnswers()
        self._pages = KeptPages(self._render)
        self._renderer = PageRenderer(version)
        self._style = resources.files("recommender.page").joinpath("templates", "style.css").read_bytes()

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of the recommender's application."""
        methods = ("GET", "HEAD")
        return (
            Route("/", self._page, methods),
            Route("/style.css", lambda _: Response(200, self._style, CSS, _SAFE), methods),
            Route("/api/v1/recommendations", self._recommendations, methods),
        )

    def not_found(self, request: Request) -> Response:
        """Answer a path that has no route."""
        paths = "the page is at /, the JSON at /api/v1/recommendations; metrics and health have a port of their own"
        return Response(404, f"there is nothing at {request.path}: {paths}\n".encode(), TEXT, _SAFE)

    def _page(self, request: Request) -> Response:
        return Response(200, self._pages.page(self._latest(), selection_of(request.query)), HTML, _SAFE)

    def _render(self, publication: Publication, selection: Selection) -> bytes:
        since = (publication.time or 0.0) - _SHOWN_SECONDS
        return self._renderer.page(publication, lambda name: self._history(name, since), selection).encode()

    def _recommendations(self, _request: Request) -> Response:
        publication = self._latest()
        if publication.leads and publication.time is not None and not publication.has_expired:
            return self._answers.answer(publication.records, publication.time, _SAFE)
        return Response(503, json_line(_unavailable(publication)), JSON, (*_SAFE, ("Retry-After", "5")))


def _unavailable(publication: Publication) -> dict[str, object]:
    """Return why there are no recommendations here, and where they are."""
    if publication.has_expired and publication.time is not None:
        decided = rfc3339(publication.time)
        message = (
            f"the last decisions, made at {decided}, are too old to be used: the log says what the polls are waiting "
            "for"
        )
    elif publication.leads:
        message = "this process has not made its first decision yet: try again in a few seconds"
    elif publication.leader:
        message = f"this process does not lead: ask {publication.leader}, which holds the Lease"
    else:
        message = (
            "this process does not lead, and does not know who holds the Lease: try again in a few seconds; if that "
            "lasts, its log says why"
        )
    return {
        "apiVersion": API_VERSION,
        "kind": "Unavailable",
        "message": message,
        "leader": publication.leader or None,
    }
