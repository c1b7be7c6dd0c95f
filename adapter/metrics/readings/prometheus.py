"""The part of a Prometheus client that readings use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer, SeriesAnswer


class Prometheus(Protocol):
    """The interface that readings need from Prometheus."""

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        """Evaluate an expression at one moment (unix seconds). Raises PrometheusError."""
        ...

    def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
        """Look up the label sets of series that had samples since `start` (unix seconds). Raises PrometheusError."""
        ...
