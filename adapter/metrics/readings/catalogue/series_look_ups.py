"""Looks up the series of rules in Prometheus, and makes the metrics that the rules provide from them.

Each rule is looked up by itself, so that one that fails does not affect others. Rules with the same series query and
Prometheus share a look-up.

Answers are reduced to names and labels while they arrive, so the size of Prometheus decides how long a look-up takes,
but not how much memory it needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from adapter.foundation.sources.prometheus.backends.backend import Backend, with_backend_name
from adapter.foundation.sources.prometheus.errors import (
    ERRORS_OF_SERVER,
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusUnreachableError,
    UnexpectedAnswerError,
    shorten_message,
)
from adapter.foundation.sources.prometheus.public_errors import public_text, without_series
from adapter.metrics.readings.catalogue.discovered_rule import by_id
from adapter.metrics.rulebook.provided_metrics import SeriesShapes, metrics_by_name, namespace_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from adapter.foundation.sources.prometheus.queries.budget import Prometheus
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.catalogue.discovered_rule import DiscoveredRule, MetricId
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.rulebook.model import Metric, Rule

_ABORTED: Final = "it was aborted by an internal error"
_SIMPLIFY = "simplify those of `seriesFilters` and `name.matches`, or narrow the query"
_FIRST_PAUSE_SECONDS = 0.001
"""Pause between slices of a rule's first look-up; the rule's metrics are missing until it ends."""


class LookUpKey(NamedTuple):
    """Identifies a look-up of series, which all rules with the same key share."""

    series_query: str
    backend: Backend | None = None
    """The Prometheus that is asked; None for that of the flags."""


def look_up_key(rule: Rule) -> LookUpKey:
    """Return what is looked up for a rule."""
    return LookUpKey(rule.series_query, rule.backend)


@dataclass(frozen=True, slots=True)
class LookUpResult:
    """The result of a look-up: metrics by rule, the reason for having none, or both for a partial answer."""

    key: LookUpKey
    metrics: tuple[tuple[Rule, dict[MetricId, Metric]], ...] = ()
    failure: str | None = None
    """Why there may be more series, so that missing ones need not have vanished."""
    public_failure: str | None = None
    """The part of it that any client may read; None if that is all of it."""
    unreachable: bool = False
    """Whether nothing answered, or the credentials were refused, so that an early retry costs nothing."""
    of_source: bool = False
    """Whether Prometheus could not be asked, so that the rules need not be at fault."""
    answered_at: float | None = None
    """Unix seconds of the last answer that Prometheus gave before the look-up; None if it was away then."""
    series: int = 0
    """Number of series in the answer."""


def internal_error_result(key: LookUpKey, error: Exception | None = None) -> LookUpResult:
    """Return the result of a look-up that an internal error has ended, which only the log names."""
    failure = _ABORTED if error is None else ": ".join(filter(None, (type(error).__name__, str(error))))
    return LookUpResult(key, failure=failure, public_failure=f"{_ABORTED} (see the adapter's log)")


def shapes_of_all(labels: Collection[str]) -> SeriesShapes:
    """Return the collector for the series of all namespaces; `labels` contain the namespace."""
    return SeriesShapes(namespace_labels=labels)


class SeriesLookUps:
    """Looks up the series of rules. Changes nothing, and may be used on any thread."""

    def __init__(
        self,
        sources: ReadingSources,
        shapes: Callable[[Collection[str]], SeriesShapes] = shapes_of_all,
        *,
        most_naming_seconds: float = math.inf,
        most_metrics: float = math.inf,
    ) -> None:
        """`shapes` makes the collector for the series of one look-up, given the labels that contain their namespace.

        No more metrics are made for a rule that has more than `most_metrics`, which the caller refuses.

        `most_naming_seconds` limits the time that the patterns of a rule may take for all names together. With a limit,
        no other bulk work waits for them: RE2 leaves the interpreter to other threads, but a name may take a second.
        """
        self._new_shapes = shapes
        self._backends = sources.backends
        self._resolve = sources.objects.resource
        self._settings = sources.settings
        self._clock = sources.clock
        self._pace = sources.pace
        self._first_pace = self._pace.with_pause(_FIRST_PAUSE_SECONDS)
        self._most_naming_seconds = most_naming_seconds
        self._most_metrics = most_metrics
        self._naming_pace = self._pace.with_pause(math.inf) if math.isfinite(most_naming_seconds) else None

    def look_up(self, key: LookUpKey, states: Iterable[DiscoveredRule], timeout_seconds: float) -> LookUpResult:
        """Ask for the series and return the metrics that each of these rules provides from them."""
        source = self._backends.of(key.backend)
        asking = tuple(states)
        pace = self._pace if all(state.looked_up for state in asking) else self._first_pace
        shapes = self._new_shapes(namespace_labels(state.rule for state in asking))
        unreachable = of_source = False
        public: str | None = None
        answered_at = source.uptime.last_answer()
        began = self._clock.monotonic()
        try:
            failure = self._fold(source.prometheus, key.series_query, timeout_seconds, shapes, pace)
            source.uptime.note_answer()
            public = None if failure is None else without_series(failure)
        except PrometheusError as error:
            source.uptime.note_failure(error, began)
            failure, of_source = with_backend_name(key.backend, str(error)), isinstance(error, ERRORS_OF_SERVER)
            public = with_backend_name(key.backend, public_text(error) or str(error))
            unreachable = isinstance(error, PrometheusUnreachableError | AuthenticationRefusedError)
            if isinstance(error, UnexpectedAnswerError) or not shapes:
                return LookUpResult(key, (), failure, public, unreachable, of_source, answered_at)
        metrics: list[tuple[Rule, dict[MetricId, Metric]]] = []
        for state in asking:
            found, is_late = self._metrics_of(state.rule, shapes, self._naming_pace or pace)
            metrics.append((state.rule, found))
            if is_late and failure is None:
                failure = f"its patterns took more than {self._most_naming_seconds:g} s: {_SIMPLIFY}"
        return LookUpResult(key, tuple(metrics), failure, public, unreachable, of_source, answered_at, shapes.series)

    def _fold(
        self, prometheus: Prometheus, series_query: str, timeout_seconds: float, shapes: SeriesShapes, pace: Pace
    ) -> str | None:
        """Put the series into the shapes; return why some may be missing. Raises PrometheusError."""
        start = self._clock.wall() - self._settings.metrics_max_age_seconds
        answer = prometheus.series(series_query, start=start, timeout_seconds=timeout_seconds)
        for series in answer.batches(pace):
            shapes.add(series)
        return what_is_missing(shapes, answer.warnings)

    def _metrics_of(self, rule: Rule, shapes: SeriesShapes, pace: Pace) -> tuple[dict[MetricId, Metric], bool]:
        """Return the metrics that the rule provides from the series, and whether that took too long to try all names.

        They are made a few names at a time.
        """
        found: dict[MetricId, Metric] = {}
        until = self._clock.monotonic() + self._most_naming_seconds
        for part in pace.timed(metrics_by_name(rule, shapes, self._resolve)):
            for metrics in part:
                found.update(by_id(metrics))
            if len(found) > self._most_metrics:
                break
            if self._clock.monotonic() > until:
                return found, True
        return found, False


def what_is_missing(shapes: SeriesShapes, warnings: Sequence[str]) -> str | None:
    """Return why there may be more series than those that were read; None if all arrived."""
    if shapes.left_out:
        return f"it has too many or too long names or labels, {shapes.left_out:,} series are left out: narrow the query"
    return f"Prometheus warns: {shorten_message(warnings[0])}" if warnings else None
