"""One client on one kept connection, which sends the next request when it has the whole answer of the last one.

kube-scheduler is such a client of its extenders, and each of Trimaran's plugins one of `/watcher`.
"""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.tally import quantile

if TYPE_CHECKING:
    from benchmarks.report import Cell

_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a number of requests took."""

    milliseconds: tuple[float, ...]
    """Of good answers, ascending."""
    errors: int
    seconds: float
    answer_bytes: int
    """Size of the last good answer."""

    def row(self, what: str) -> dict[str, Cell]:
        """Return the usual cells of a report."""
        return {
            "what": what,
            "requests": len(self.milliseconds) + self.errors,
            "p50_ms": _rounded(quantile(self.milliseconds, 0.5)),
            "p99_ms": _rounded(quantile(self.milliseconds, 0.99)),
            "rate_per_second": round(len(self.milliseconds) / self.seconds, 1),
            "answer_bytes": self.answer_bytes,
            "errors": self.errors,
        }


def ask(port: int, path: str, times: int, *, body: bytes | None = None, packed: bool = False) -> Asked:
    """Ask so many times, after a tenth as many requests that are not counted."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    headers = {"Accept-Encoding": "gzip"} if packed else {}
    taken: list[float] = []
    errors = size = 0
    began = time.perf_counter()
    for number in range(-max(1, times // 10), times):
        if number == 0:
            taken, errors, began = [], 0, time.perf_counter()
        sent = time.perf_counter()
        try:
            connection.request("GET" if body is None else "POST", path, body, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            errors += 1
            continue
        if response.status != 200:
            errors += 1
            continue
        taken.append(1000 * (time.perf_counter() - sent))
        size = len(content)
    seconds = time.perf_counter() - began
    connection.close()
    return Asked(tuple(sorted(taken)), errors, seconds, size)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
