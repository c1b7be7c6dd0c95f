"""Rare calls: a check that Prometheus answers, and history for a backtest.

Each uses a connection of its own. They use prometheus-api-client (`library`), which is imported by the first call,
since it takes 30 MiB.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.prometheus.answers.ranges import MOST_MOVES, RangePart, range_parts
from adapter.foundation.sources.prometheus.errors import (
    NotAVectorError,
    PrometheusError,
    UnexpectedAnswerError,
    refuse_partial,
    shorten_message,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.foundation.sources.prometheus.queries.library import Library


_CHECKED_BY: Final = "vector(1)"
"""A query that any server answers without reading data."""


def check_connection(settings: PrometheusSettings, timeout_seconds: float) -> str:
    """Return the version of the server, or `unknown` if it answers queries but does not state its version.

    Raises PrometheusError if it does not answer queries, and SettingsError.
    """
    with _library(settings, timeout_seconds, _CHECKED_BY) as library:
        # The version alone proves nothing: Mimir states it even where a query lacks its path or tenant.
        library.custom_query(_CHECKED_BY, {"time": f"{time.time():.0f}"})
        try:
            return library.version()
        except (PrometheusError, LookupError, TypeError, ValueError):
            # Some servers implement the query API without this part of the status API.
            return "unknown"


def range_values(
    settings: PrometheusSettings, query: str, start: float, end: float, step_seconds: int, timeout_seconds: float
) -> list[list[tuple[float, float]]]:
    """Return the points of each series of a range query, as Unix seconds and values; both ends are whole seconds.

    A step without a value is absent. The range may have at most 11,000 steps, as one request asks for all of them. If
    the server does not keep the first steps, another request asks for the others. Raises PrometheusError, also for an
    answer with warnings, since it may be incomplete, and SettingsError.
    """
    (asked,) = range_parts(start, end, step_seconds)
    with _library(settings, timeout_seconds, query) as library:
        found = _series_points(library, query, asked)
        for _ in range(MOST_MOVES):
            kept = asked.kept_steps(points[0][0] for points in found if points)
            if kept is None:
                break
            asked, found = kept, _series_points(library, query, kept)
        return found


def _series_points(library: Library, query: str, part: RangePart) -> list[list[tuple[float, float]]]:
    begin, until = (datetime.fromtimestamp(moment / 1000, UTC) for moment in (part.start, part.end))
    found = library.custom_query_range(query, begin, until, str(part.step // 1000))
    refuse_partial(query, library.warnings)
    if not all(isinstance(series, dict) and series.keys() & {"values", "histograms"} for series in found):
        raise UnexpectedAnswerError(query, "the answer to the range query is not a matrix")
    if any("histograms" in series for series in found):
        fix = "write an expression that has numbers, such as histogram_count(…)"
        raise NotAVectorError(query, f"its values are native histograms: {fix}")
    return [[(float(at), float(value)) for at, value in series["values"]] for series in found]


@contextmanager
def _library(settings: PrometheusSettings, timeout_seconds: float, what: str) -> Iterator[Library]:
    """Open the library, and convert its errors about an answer's content to UnexpectedAnswerError."""
    from adapter.foundation.sources.prometheus.queries.library import Library  # noqa: PLC0415 - large, and needed rarely

    with Library(settings, timeout_seconds) as library:
        try:
            yield library
        except (LookupError, TypeError, AttributeError, ValueError) as e:
            raise UnexpectedAnswerError(
                what, f"the answer is not in the format of Prometheus's API: {shorten_message(str(e))}"
            ) from e
