"""Makes each answer from the last publication once, however many clients request it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.web.http import Response, json_line
from adapter.foundation.web.rendering import compressed_in_advance
from recommender.printed.document import recommendation_list

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recommender.decisions.publication import Publication
    from recommender.decisions.record import Record
    from recommender.page.selection import Selection


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


class EncodedAnswers:
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
