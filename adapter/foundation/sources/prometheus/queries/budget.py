"""The time limits of a command's queries: one for each, and one for all, so that it does not hang rule by rule."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from adapter.foundation.sources.deadlines import Deadline, DeadlinePassedError
from adapter.foundation.sources.prometheus.errors import PrometheusTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer, SeriesAnswer

QUERY_SECONDS: Final = 30.0
"""The time limit of one query of a command that runs once."""


class Prometheus(Protocol):
    """The queries that readings and one-shot commands need from a client."""

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        """Evaluate an expression at one moment (Unix seconds). Raises PrometheusError."""

    def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
        """Look up the label sets of series that had samples since `start` (Unix seconds). Raises PrometheusError."""


class Budgeted:
    """A client that sends queries for a number of seconds from its creation; after that, every query fails at once."""

    def __init__(self, prometheus: Prometheus, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._prometheus = prometheus
        self._deadline = Deadline(seconds, monotonic)

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        """Evaluate an expression within the remaining time. Raises PrometheusError."""
        return self._prometheus.instant(query, timeout_seconds=self._seconds_left(query, timeout_seconds), at=at)

    def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
        """Look up series within the remaining time. Raises PrometheusError."""
        return self._prometheus.series(
            selector, start=start, timeout_seconds=self._seconds_left(selector, timeout_seconds)
        )

    def _seconds_left(self, query: str, timeout_seconds: float) -> float:
        try:
            return min(self._deadline.remaining(), timeout_seconds)
        except DeadlinePassedError as error:
            taken = f"the queries before it took {self._deadline.seconds:g} s"
            raise PrometheusTimeoutError(query, f"not sent: {taken}") from error
