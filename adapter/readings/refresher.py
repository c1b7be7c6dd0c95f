"""Asks one query and makes its reading, or the reason why there is none. Runs on a thread that the process gives."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Protocol

from adapter.readings.errors import (
    ObjectsNotKnownError,
    PartialAnswerError,
    QueryRefusedByPrometheusError,
    ReadingError,
    SourceSlowError,
    SourceUnreachableError,
)
from adapter.readings.filing import Assignment, Filing
from adapter.readings.planning import render
from adapter.readings.queries import Failure
from adapter.readings.rows import ExternalReading, ExternalReadingBuilder
from adapter.readings.snapshot import Evaluation, ObjectReading
from adapter.rulebook.render import RenderError
from adapter.sources.objects import ObjectsError
from adapter.sources.prometheus.errors import (
    AnswerTooLargeError,
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sized

    from adapter.readings.names import SharedNames
    from adapter.readings.queries import Query, Reading
    from adapter.readings.settings import Clock, ReadingSettings
    from adapter.readings.telemetry import ReadingsTelemetry
    from adapter.rulebook.requests import PlannedQuery
    from adapter.sources.objects import ObjectSource
    from adapter.sources.pace import Pace
    from adapter.sources.prometheus.decoding import InstantAnswer, SeriesAnswer

_log = logging.getLogger(__name__)

_MEANINGS: tuple[tuple[type[PrometheusError], type[ReadingError]], ...] = (
    (PrometheusUnreachableError, SourceUnreachableError),
    (PrometheusTimeoutError, SourceSlowError),
    (QueryRefusedError, QueryRefusedByPrometheusError),
    (AuthenticationRefusedError, SourceUnreachableError),
    (AnswerTooLargeError, PartialAnswerError),
    (UnexpectedAnswerError, SourceUnreachableError),
)
_OF_SOURCE = (PrometheusUnreachableError, AuthenticationRefusedError, UnexpectedAnswerError)
_MOST_WARNINGS = 50
_FREED_A_SLICE = 2000


class Prometheus(Protocol):
    """What readings ask of Prometheus."""

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        """Evaluate an expression at one moment (unix seconds). Raises PrometheusError."""
        ...

    def series(self, selector: str, *, start: float, timeout_seconds: float) -> SeriesAnswer:
        """Look up the label sets of series that had samples since `start` (unix seconds). Raises PrometheusError."""
        ...


class Refresher:
    """Turns queries into readings."""

    def __init__(
        self,
        *,
        prometheus: Prometheus,
        objects: ObjectSource,
        settings: ReadingSettings,
        clock: Clock,
        pace: Pace,
        names: SharedNames,
        telemetry: ReadingsTelemetry,
    ) -> None:
        self._prometheus = prometheus
        self._objects = objects
        self._settings = settings
        self._clock = clock
        self._pace = pace
        self._names = names
        self._telemetry = telemetry

    def ask(self, query: Query, second: float | None = None) -> Reading | Failure:
        """Send the query and return what its answer says; `second` (unix seconds) asks for another time than now."""
        try:
            return self._ask(query, second)
        except PrometheusError as error:
            return failure_of(error)
        except ReadingError as error:
            return Failure(type(error), error.message)
        except ObjectsError as error:
            return Failure(ObjectsNotKnownError, str(error))
        except RenderError as error:
            return Failure(QueryRefusedByPrometheusError, f"{query.metric.qualified}: {error}")

    def _ask(self, query: Query, at: float | None) -> Reading:
        wall, monotonic = self._clock.wall(), self._clock.monotonic()
        second = float(math.floor(wall if at is None else at))
        evaluated = Evaluation(second, monotonic - (wall - second))
        names = self._names_for(query)
        if names is not None and not names:
            # Only objects that exist are asked for, and none does.
            return ObjectReading(evaluated)
        planned = render(query, names or ())
        answer = self._prometheus.instant(
            planned.text, timeout_seconds=self._settings.query_deadline_seconds, at=second
        )
        self._heed(query, answer.warnings)
        oldest = second - self._settings.max_answer_age_seconds
        if planned.object_label is None:
            return self._file_rows(query, planned, answer, evaluated, oldest)
        label = planned.namespace_label or query.key.namespace_label
        known = None if names is None else frozenset(names)
        assignment = Assignment(planned.object_label, label, query.key.namespace, known)
        return self._file_objects(query, assignment, answer, evaluated, oldest)

    def _names_for(self, query: Query) -> tuple[str, ...] | None:
        """Return the objects to ask for, None where the query's text is fixed."""
        which, resource = query.key.which, query.key.resource
        if which is None or resource is None:
            return None
        return tuple(self._objects.names(resource, query.key.namespace, which.selector))

    def _heed(self, query: Query, warnings: Iterable[str]) -> None:
        """Log each of PromQL's own warnings once; any other says that parts of the answer are missing."""
        for warning in warnings:
            if not warning.startswith("PromQL"):
                raise PartialAnswerError(
                    f"Prometheus answered only a part of {shortened(query.key.planned.text)}: {warning}"
                )
            _warn_once(query, warning, warning)

    def _file_objects(
        self, query: Query, assignment: Assignment, answer: InstantAnswer, evaluated: Evaluation, oldest: float
    ) -> ObjectReading:
        filing = Filing(assignment, self._names, oldest)
        for samples in answer.batches(self._pace):
            filing.add(samples)
        if filing.has_rivals:
            for samples in answer.batches(self._pace):
                filing.compare(samples)
        self._names.rotate()
        self._heed_histograms(query, answer)
        self._telemetry.dropped(filing.dropped)
        reading = filing.finish(evaluated)
        for kind, text in (("ambiguous", filing.ambiguous_example), ("nameless", reading.note)):
            if text is not None:
                _warn_once(query, kind, text)
        return reading

    def _file_rows(
        self, query: Query, planned: PlannedQuery, answer: InstantAnswer, evaluated: Evaluation, oldest: float
    ) -> ExternalReading:
        restricted_to = (query.key.namespace_label, query.key.namespace)
        builder = ExternalReadingBuilder(planned, restricted_to, oldest, query.labels)
        for samples in answer.batches(self._pace):
            builder.add(samples)
        self._heed_histograms(query, answer)
        self._telemetry.dropped(builder.dropped)
        return builder.finish(evaluated)

    @staticmethod
    def _heed_histograms(query: Query, answer: InstantAnswer) -> None:
        if answer.histograms_skipped:
            _warn_once(
                query, "histograms", "native histograms have no single value: use histogram_quantile() or the like"
            )


def let_go(parts: list[Sized], pace: Pace) -> None:
    """Free the parts of a reading in slices: 50,000 values at once would hold the interpreter for 3 ms.

    Requests that still read it keep what they need.
    """
    while parts:
        with pace.slice():
            freed = 0
            while parts and freed < _FREED_A_SLICE:
                freed += len(parts.pop())


def failure_of(error: PrometheusError) -> Failure:
    """Return what an error of Prometheus means to an asker."""
    meaning = next((meaning for kind, meaning in _MEANINGS if isinstance(error, kind)), SourceUnreachableError)
    # A status without an error of Prometheus's own tells about the way to it, which is the same for narrower queries.
    refused = isinstance(error, QueryRefusedError) and not error.error_type.startswith("http_")
    narrows = refused or isinstance(error, AnswerTooLargeError)
    return Failure(meaning, str(error), narrows=narrows, of_source=isinstance(error, _OF_SOURCE))


def _warn_once(query: Query, kind: str, text: str) -> None:
    """Log a warning unless one of its kind was logged about the query."""
    if kind not in query.warned and len(query.warned) < _MOST_WARNINGS:
        query.warned.add(kind)
        _log.warning("%s (%s): %s", query.metric.qualified, query.metric.rule.id, text)
