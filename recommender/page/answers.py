"""The JSON of the last publication, encoded once however many clients ask for it."""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.web.http import Response, json_line
from adapter.web.rendering import GZIP_FORMAT, GZIP_FROM_BYTES, GZIP_LEVEL
from recommender.decisions.document import recommendation_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recommender.decisions.record import Record


@dataclass(frozen=True, slots=True)
class _Encoded:
    records: Sequence[Record]
    time: float
    body: bytes
    gzipped: bytes | None


class EncodedAnswers:
    """Keeps the last document. For any number of threads: while one encodes it, the others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: _Encoded | None = None

    def answer(self, records: Sequence[Record], time: float, headers: tuple[tuple[str, str], ...]) -> Response:
        """Return the answer with the records that were decided at `time`."""
        with self._lock:
            last = self._last
            if last is None or last.records is not records or last.time != time:
                body = json_line(recommendation_list(records, time))
                gzipped = zlib.compress(body, GZIP_LEVEL, GZIP_FORMAT) if len(body) > GZIP_FROM_BYTES else None
                last = self._last = _Encoded(records, time, body, gzipped)
        return Response(200, last.body, headers=headers, gzipped=last.gzipped)
