"""Sends one query and turns the answer into a reading, or into the reason why there is none."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from adapter.foundation.sources.objects import ObjectsError
from adapter.foundation.sources.prometheus.answers.annotations import is_of_engine
from adapter.foundation.sources.prometheus.errors import PrometheusError, shorten_message
from adapter.foundation.sources.prometheus.public_errors import without_series
from adapter.metrics.readings.asking.queries import Query, Reading, render
from adapter.metrics.readings.errors import (
    ObjectsNotKnownError,
    PartialAnswerError,
    QueryRefusedByPrometheusError,
    ReadingError,
)
from adapter.metrics.readings.failure import Failure
from adapter.metrics.readings.prometheus_uptime import ASK_SECONDS
from adapter.metrics.readings.refreshing.query_failures import failure_of
from adapter.metrics.readings.samples.assignment import Assignment
from adapter.metrics.readings.samples.external_reading import ExternalReading
from adapter.metrics.readings.samples.external_reading_builder import ExternalReadingBuilder
from adapter.metrics.readings.samples.foreign_samples import MOST_FOREIGN_OBJECTS
from adapter.metrics.readings.samples.no_data_and_sample_age import allows_foreign
from adapter.metrics.readings.samples.object_reading import Dropped, Evaluation, ObjectReading
from adapter.metrics.readings.samples.object_reading_builder import HISTOGRAMS, ObjectReadingBuilder
from adapter.metrics.readings.samples.sample_times import SampleTimes
from adapter.metrics.readings.samples.silent_series import SilentSeries
from adapter.metrics.rulebook.model import PlanKind, Rule
from adapter.metrics.rulebook.query_rendering import RenderError

if TYPE_CHECKING:
    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer
    from adapter.foundation.sources.prometheus.queries.budget import Prometheus
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.readings.samples.shared_names import SharedNames
    from adapter.metrics.rulebook.requests import PlannedQuery

_DETAILS = re.compile('[",(]')
"""Matches where the particulars of a remark begin: the series that Prometheus saw first, and numbers."""
_LEAST_RATIO = 0.1
"""The least share of the deadline that the second of two queries gets, however long the first one took."""


class Remarks(Protocol):
    """Receives remarks on an answer besides its values. `RuleHealthLog` logs each of them once for a rule."""

    def remark(self, rule: Rule, kind: str, message: str, *args: object) -> None:
        """Record a remark, with arguments as in `logging`. Remarks of one `kind` say the same thing."""


class Tally(Protocol):
    """Counts samples. `ReadingsTelemetry` implements it."""

    def count_dropped_samples(self, tally: Counter[Dropped]) -> None:
        """Count samples that belong to no object."""


class Presence(Protocol):
    """Knows how long Prometheus has been up. `PrometheusUptime` implements it."""

    def note_answer(self) -> None:
        """Note that Prometheus has answered just now."""

    def note_failure(self, error: PrometheusError, began: float) -> None:
        """Note that a request failed; it was sent at `began`, in monotonic seconds."""

    def ask_start(self, seconds: float) -> None:
        """Ask Prometheus when it started, if that may have changed; gives up after that many seconds."""

    def seconds_at(self, moment: float) -> float:
        """Return for how many seconds Prometheus had been up at a moment, which is in monotonic seconds."""


class _LeftOutError(PartialAnswerError):
    """The query engine ignored samples that it could not evaluate; a narrower query may not select them."""


class Refresher:
    """Turns queries into readings."""

    def __init__(
        self,
        sources: ReadingSources,
        prometheus: Prometheus,
        uptime: Presence,
        names: SharedNames,
        telemetry: Tally,
        remarks: Remarks,
    ) -> None:
        """Ask `prometheus`, whose `uptime` learns how each query ends; the servers of `sources` are not asked."""
        self._settings = sources.settings
        self._silent_series = sources.silent_series or SilentSeries(sources.settings.look_back_seconds)
        self._uptime = uptime
        self._prometheus = prometheus
        self._objects = sources.objects
        self._clock = sources.clock
        self._pace = sources.pace
        self._names = names
        self._telemetry = telemetry
        self._remarks = remarks

    def ask(self, query: Query, second: float | None = None) -> Reading | Failure:
        """Send the query and return its reading; `second` (Unix seconds) is the evaluation time if it is not now."""
        try:
            outcome = self._ask(query, second)
            return outcome if isinstance(outcome, Failure) else self._steady(outcome)
        except PrometheusError as error:
            return failure_of(error)
        except _LeftOutError as error:
            # A fault in one namespace's series must not make the query of all namespaces fail permanently.
            return replace(Failure.of(error), error=PartialAnswerError, narrows=query.kind is PlanKind.WIDE)
        except ReadingError as error:
            return Failure.of(error)
        except ObjectsError as error:
            return Failure(ObjectsNotKnownError, str(error))
        except RenderError as error:
            return Failure(QueryRefusedByPrometheusError, f"{query.metric.qualified}: {error}")

    def _ask(self, query: Query, at: float | None) -> Reading | Failure:
        wall, monotonic = self._clock.wall(), self._clock.monotonic()
        second = float(math.floor(wall if at is None else at))
        evaluated = Evaluation(second, monotonic - (wall - second))
        names = self._names_for(query)
        if names is not None and not names:
            # The query names the objects that exist, but there are none.
            containers: dict[str, dict[str, str]] | None = None if query.metric.container_label is None else {}
            return ObjectReading(evaluated, containers=containers, asked=frozenset())
        planned, asking_times = render(query, names or ())
        deadline = self._settings.query_deadline_seconds
        if asking_times is None:
            return self._read(query, planned, names, evaluated, deadline)
        # The times are queried first: samples that arrive between the two queries may make the values younger, never
        # older.
        times = self._times(query, asking_times, names, evaluated)
        if isinstance(times, Failure):
            return times
        left = max(_LEAST_RATIO * deadline, monotonic + deadline - self._clock.monotonic())
        reading = with_times(self._read(query, planned, names, evaluated, left), times)
        if at is None:
            self._count_aged(query, reading)
            if isinstance(reading, ExternalReading) and isinstance(times, ExternalReading):
                rows, hold = times.all_rows(), query.hold_silent_seconds
                reading.silent = self._silent_series.after(query.metric, rows, second, hold, self._pace)
        return reading

    def _steady(self, reading: Reading) -> Reading:
        """Return the reading together with the time for which Prometheus had been up."""
        self._uptime.ask_start(min(ASK_SECONDS, self._settings.query_deadline_seconds))
        seconds = self._uptime.seconds_at(reading.evaluated.monotonic)
        if isinstance(reading, ObjectReading):
            return replace(reading, steady_seconds=seconds)
        reading.steady_seconds = seconds
        return reading

    def _times(
        self, query: Query, planned: PlannedQuery, names: tuple[str, ...] | None, evaluated: Evaluation
    ) -> Reading | Failure:
        """Return the times of the samples of the query's series, or why they are unknown."""
        try:
            return self._read(query, planned, names, evaluated, self._settings.query_deadline_seconds)
        except PrometheusError as error:
            failure = failure_of(error)
        except ReadingError as error:
            failure = Failure.of(error)
        unknown = "the age of its samples (maxSampleAge) is not known: "
        public_message = None if failure.public_message is None else f"{unknown}{failure.public_message}"
        return replace(failure, message=f"{unknown}{failure.message}", public_message=public_message)

    def _read(
        self, query: Query, planned: PlannedQuery, names: tuple[str, ...] | None, evaluated: Evaluation, seconds: float
    ) -> Reading:
        """Send one query and read the answer within that many seconds. Raises PrometheusError and ReadingError."""
        began = self._clock.monotonic()
        try:
            answer = self._prometheus.instant(planned.text, timeout_seconds=seconds, at=evaluated.wall)
        except PrometheusError as error:
            self._uptime.note_failure(error, began)
            raise
        self._uptime.note_answer()
        self._check_remarks(query, answer)
        times = SampleTimes(evaluated, self._settings.max_answer_age_seconds)
        if planned.object_label is None:
            return self._file_rows(query, planned, answer, times)
        label = planned.namespace_label or query.key.namespace_label
        known = None if names is None else frozenset(names)
        assignment = Assignment(
            planned.object_label,
            label,
            query.key.namespace,
            known,
            container_label=planned.container_label,
            non_negative=planned.non_negative,
        )
        return self._file_objects(query, assignment, answer, times)

    def _count_aged(self, query: Query, reading: Reading) -> None:
        """Count the values whose samples are older than the rule allows; rows are counted when they are requested."""
        limit = query.metric.rule.policy.max_sample_age_seconds
        if limit is not None and isinstance(reading, ObjectReading):
            aged = sum(sum(part) for part in self._pace.timed(reading.flag_stale_values(limit)))
            self._telemetry.count_dropped_samples(Counter({Dropped.STALE: aged}))

    def _names_for(self, query: Query) -> tuple[str, ...] | None:
        """Return the objects to query; None if the query's text is fixed."""
        which, resource = query.key.which, query.key.resource
        if which is None or resource is None:
            return None
        return tuple(self._objects.names(resource, query.key.namespace, which.selector))

    def _check_remarks(self, query: Query, answer: InstantAnswer) -> None:
        """Log each kind of remark once for a rule. Raises PartialAnswerError if parts of the answer are missing."""
        for remark in answer.remarks:
            self._remark(query, _DETAILS.split(remark, maxsplit=1)[0], remark)
        for warning in answer.warnings:
            what = shorten_message(query.key.planned.text)
            if is_of_engine(warning):
                message = f"Prometheus left something out of {what}: "
                raise _LeftOutError(message + warning, public_message=message + without_series(warning))
            message = f"Prometheus answered only a part of {what}: "
            raise PartialAnswerError(message + warning, public_message=message + without_series(warning))

    def _remark(self, query: Query, kind: str, text: str) -> None:
        rule = query.metric.rule
        self._remarks.remark(rule, kind, "%s (%s): %s", query.metric.qualified, rule.id, text)

    def _file_objects(
        self, query: Query, assignment: Assignment, answer: InstantAnswer, times: SampleTimes
    ) -> ObjectReading:
        # If samples of other namespaces may be served, all of them are kept.
        most = None if allows_foreign(query.metric, self._settings) else MOST_FOREIGN_OBJECTS
        builder = ObjectReadingBuilder(assignment, self._names, times, most)
        for samples in answer.batches(self._pace):
            builder.add(samples, answer.histograms)
        builder.end(self._pace)
        if builder.has_rivals:
            for samples in answer.batches(self._pace):
                builder.compare(samples, answer.histograms)
        self._names.rotate()
        self._heed_histograms(query, answer)
        self._telemetry.count_dropped_samples(builder.dropped)
        reading = builder.finish(self._pace, is_exact=query.kind is PlanKind.EXACT)
        for kind, text in (("ambiguous", builder.ambiguous_example), ("nameless", reading.note or reading.caution)):
            if text is not None:
                self._remark(query, kind, text)
        return reading

    def _file_rows(
        self, query: Query, planned: PlannedQuery, answer: InstantAnswer, times: SampleTimes
    ) -> ExternalReading:
        builder = ExternalReadingBuilder(planned, query.key.namespace_label, times, query.labels)
        for samples in answer.batches(self._pace):
            builder.add(samples, answer.histograms)
        self._heed_histograms(query, answer)
        reading = builder.finish()
        self._telemetry.count_dropped_samples(builder.dropped)
        return reading

    def _heed_histograms(self, query: Query, answer: InstantAnswer) -> None:
        if answer.histograms_skipped:
            self._remark(query, "histograms", HISTOGRAMS)


def with_times(reading: Reading, times: Reading) -> Reading:
    """Return the reading together with the times of its samples."""
    if isinstance(reading, ObjectReading) and isinstance(times, ObjectReading):
        return replace(reading, times=times.values)
    if isinstance(reading, ExternalReading) and isinstance(times, ExternalReading):
        reading.times = times
        return reading
    raise TypeError("values and their times are of one kind")
