"""Answers "the value of metric M for objects X" from memory.

Requests determine what is queried; the queries are refreshed in the background, one for many requesters; a request
reads the newest answer. Only the first request of its kind waits for Prometheus. This class puts the parts together:

    request ──> QueryScheduler ──> entry ──> query ──> reading ──> answer
    run_due ──> RefreshLoop ──> threads of the process ──> Refresher, SeriesLookUps ──> Prometheus
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, cast

from adapter.foundation.time.clock import Clock
from adapter.metrics.readings.answer_warnings import rule_warnings, usage_warnings
from adapter.metrics.readings.answering.current_readings import CurrentReadings
from adapter.metrics.readings.answering.metric_answers import MetricAnswers
from adapter.metrics.readings.answering.usage_answers import UsageAnswers
from adapter.metrics.readings.asking.demand import DemandedRequest
from adapter.metrics.readings.asking.query_upkeep import replan
from adapter.metrics.readings.asking.refresh_periods import long_refresh_warnings
from adapter.metrics.readings.backends import Backends, Connect, Source, only
from adapter.metrics.readings.catalogue.cataloguer import Cataloguer
from adapter.metrics.readings.catalogue.object_cataloguer import ObjectCataloguer
from adapter.metrics.readings.catalogue.object_catalogues import NamespaceObjects, states_of_objects
from adapter.metrics.readings.catalogue.rule_health import RuleHealthLog
from adapter.metrics.readings.explain.explainer import Explainer
from adapter.metrics.readings.explain.explanation_progress import HASTY
from adapter.metrics.readings.explain.served_memory import ServedMemory, refused_objects, serves
from adapter.metrics.readings.prometheus_uptime import PrometheusUptime
from adapter.metrics.readings.reading_sources import ReadingSources
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.refreshing.refresh_loop import RefreshLoop
from adapter.metrics.readings.rules_overview import overview
from adapter.metrics.readings.samples.no_data_and_sample_age import unknown_age_warnings
from adapter.metrics.readings.samples.silent_series import SilentSeries
from adapter.metrics.rulebook.model import Metric, RefusedRule, Rulebook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from adapter.foundation.objects.resources import Resource
    from adapter.foundation.objects.selectors import Selector
    from adapter.foundation.sources.objects import ObjectSource
    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.foundation.sources.prometheus.queries.budget import Prometheus
    from adapter.foundation.sources.prometheus.queries.runtime import Started
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.answers import (
        ByName,
        BySelector,
        ExternalAnswer,
        NamedBySelector,
        ObjectsAnswer,
        UsageAnswer,
    )
    from adapter.metrics.readings.asking.queries import Reading
    from adapter.metrics.readings.catalogue.catalogue import Catalogue
    from adapter.metrics.readings.catalogue.last_look_up import LookUp
    from adapter.metrics.readings.explain.explanation import Explanation, ExplanationStep, Question
    from adapter.metrics.readings.readings_telemetry import Overview, ReadingsTelemetry
    from adapter.metrics.readings.samples.external_reading import ExternalReading
    from adapter.metrics.readings.samples.object_reading import ObjectReading
    from adapter.metrics.rulebook.objects.rule_object import RuleObject

_log = logging.getLogger(__name__)


class Readings:
    """Answers the questions of the APIs. Any thread may call it."""

    def __init__(  # noqa: PLR0913 - the parts that it stands on, each named by its caller
        self,
        *,
        rulebook: Rulebook,
        objects: ObjectSource,
        prometheus: Prometheus,
        submit: Callable[[Callable[[], None]], object],
        pace: Pace,
        telemetry: ReadingsTelemetry,
        settings: ReadingSettings | None = None,
        clock: Clock | None = None,
        started: Callable[[float], Started] | None = None,
        connect: Connect | None = None,
    ) -> None:
        """Start with a rulebook; Prometheus is not queried yet.

        `submit` runs a function on a thread of the process; it needs four threads or more, since a slow query occupies
        one until its deadline. `run_due` must be called several times a second. `started` asks Prometheus when it
        started, within some seconds, and raises PrometheusError; None if it cannot. `connect` returns a client of a
        backend that rules name; None if no rule may name one.
        """
        self._settings = settings or ReadingSettings()
        self._clock = clock or Clock()
        self._states = RuleHealthLog(self._clock.monotonic)
        self._uptime = PrometheusUptime(self._clock, started)
        self._backends = Backends(Source(prometheus, self._uptime, submit), connect, self._clock)
        self._backends.open(rulebook)
        silent_series = SilentSeries(self._settings.look_back_seconds)
        self._sources = ReadingSources(self._backends, objects, self._settings, self._clock, pace, silent_series)
        self._cataloguer = Cataloguer(self._sources, rulebook)
        of_owners = replace(self._sources, backends=only(prometheus, PrometheusUptime(self._clock)))
        self._rule_objects = ObjectCataloguer(of_owners)
        self._number_of_unread_objects: Callable[[], int] = lambda: 0
        self._loop = RefreshLoop(self._sources, self._cataloguer, self._rule_objects, telemetry, self._states)
        self._scheduler = self._loop.scheduler
        self._current_readings = CurrentReadings(self._sources, self._scheduler)
        self._answering = MetricAnswers(self._sources, telemetry.count_dropped_samples, self._current_readings)
        self._usage = UsageAnswers(self._sources, self._scheduler, self._current_readings.current)
        self._usage.prepare(self.catalogue)
        self._explainer = Explainer(self._sources, HASTY)
        self._prepare(rulebook)
        telemetry.collect_from(self._overview)

    @property
    def catalogue(self) -> Catalogue:
        """The metrics that are served now."""
        return self._cataloguer.catalogue

    def has_looked_up_all(self) -> bool:
        """Return whether the series of every rule have been looked up once, with or without success."""
        return self._cataloguer.has_looked_up_all()

    def catalogue_of(self, namespace: str | None) -> Catalogue:
        """Return the metrics that the MetricRule objects of a namespace serve under names that `catalogue` lacks."""
        return self._rule_objects.catalogue_of(namespace)

    def complete_catalogue_of(self, namespace: str) -> Catalogue:
        """Return the same as `catalogue_of` once the objects have been read and their series looked up the first time.

        It is for requests for a metric that `catalogue_of` lacks. Raises FirstAnswerPendingError.
        """
        looked_up = partial(self._rule_objects.await_first_look_ups, namespace)
        self._current_readings.all_looked_up(namespace, looked_up)
        return self._rule_objects.catalogue_of(namespace)

    def rule_objects(self) -> Mapping[str, NamespaceObjects]:
        """Return the MetricRule objects by namespace, each an immutable value."""
        return self._rule_objects.namespaces

    def expect_rule_objects(self, number_unread: Callable[[], int] = lambda: 0) -> None:
        """Let requests wait for MetricRule objects until `replace_rule_objects` is called for the first time.

        `number_unread` returns how many objects are beyond the quota of their namespace, and so are not passed in.
        """
        self._number_of_unread_objects = number_unread
        self._rule_objects.expect()

    def complete_catalogue(self, namespace: str | None) -> Catalogue:
        """Return the metrics that are served once the series of all rules have been looked up, if that is under way.

        It is for a request from that namespace for a metric that `catalogue` lacks. Raises FirstAnswerPendingError.
        """
        self._current_readings.all_looked_up(namespace, self._cataloguer.await_all)
        return self.catalogue

    def objects(
        self, metric: Metric, namespace: str | None, which: ByName | BySelector, metric_selector: Selector
    ) -> ObjectsAnswer:
        """Return a custom metric's values for some objects. Raises ReadingError."""
        until = self._until()
        names = self._answering.names(metric, namespace, which, until)
        request = DemandedRequest(metric.qualified, namespace, which, metric_selector)
        found, warnings = self._reading(metric, request, until)
        answer = self._answering.objects(metric, namespace, which, names, cast("ObjectReading", found), until)
        return replace(answer, warnings=(*warnings, *answer.warnings)) if warnings else answer

    def external(self, metric: Metric, namespace: str | None, selector: Selector) -> ExternalAnswer:
        """Return an external metric's values. Raises ReadingError."""
        found, warnings = self._reading(
            metric, DemandedRequest(metric.qualified, namespace, None, selector), self._until()
        )
        answer = self._answering.external(metric, namespace, selector, cast("ExternalReading", found))
        return replace(answer, warnings=(*warnings, *answer.warnings)) if warnings else answer

    def usage(self, kind: Resource, namespace: str | None, which: ByName | BySelector | NamedBySelector) -> UsageAnswer:
        """Return what pods or nodes use; for pods, `namespace` None means all namespaces. Raises ReadingError."""
        catalogue, rulebook = self.catalogue, self._cataloguer.rulebook
        answer = self._usage.answer(catalogue, kind, namespace, which)
        warnings = tuple(usage_warnings(rulebook, catalogue.usage_of(kind)))
        return replace(answer, warnings=(*warnings, *answer.warnings)) if warnings else answer

    def explain(self, question: Question, notes: Iterable[ExplanationStep] = ()) -> Explanation:
        """Return why a metric has, or lacks, a value: from Prometheus's current answers and from memory.

        It takes a few seconds at most, on the calling thread. `notes` are further steps from the caller.
        """
        catalogue, rulebook, look_ups = self.catalogue, self._cataloguer.rulebook, self.look_ups()
        own = self._rule_objects.namespaces.get(question.namespace or "")
        if own is not None and not serves(catalogue, question):
            notes = (*notes, *refused_objects(own.judge(catalogue)))
            if serves(own.catalogue, question):
                catalogue, look_ups = own.catalogue, own.look_ups
                rulebook = Rulebook(tuple(each.rule for each in look_ups))
        memory = ServedMemory(
            catalogue, look_ups, self._scheduler.state.demand.entries(), self._clock, self._sources.pace
        )
        return self._explainer.explain(question, rulebook, notes, memory)

    def prometheus_of(self, backend: Backend | None) -> Prometheus:
        """Return the client of a backend of the rules in force, or of the Prometheus that the flags name."""
        return self._backends.of(backend).prometheus

    def look_ups(self) -> tuple[LookUp, ...]:
        """Return the result of the last look-up of each rule's series, in the order of the files."""
        return tuple(state.last_look_up for state in self._cataloguer.states)

    def refused(self) -> tuple[RefusedRule, ...]:
        """Return the rules that are refused in their current text."""
        return self._cataloguer.rulebook.refused

    def replace_rulebook(self, rulebook: Rulebook) -> None:
        """Put another rulebook in force, for a reload; takes seconds, during which the former one serves.

        Metrics that did not change keep their readings. Knowledge about refused plans is forgotten.
        """
        self._prepare(rulebook)
        self._backends.open(rulebook)
        self._cataloguer.replace(rulebook)
        self._states.forget_remarks()
        replan(self._scheduler, self._current, self._sources.pace)
        self._usage.prepare(self.catalogue)

    def replace_rule_objects(self, objects: Sequence[RuleObject], *, are_all: bool = True) -> None:
        """Put other MetricRule objects in force; only their series are looked up next.

        Unless these are all objects, requests for metrics that none of them serves wait for the others.
        """
        values_for_no_data = (each.rule.policy.no_data_value for each in objects if each.rule is not None)
        if any(value is not None for value in values_for_no_data):
            self._uptime.wanted = True
        self._rule_objects.replace(objects, are_all=are_all)
        if are_all:
            self._scheduler.state.keep_objects([each.rule for each in objects if each.rule is not None])

    def run_due(self) -> float:
        """Start what is due, without waiting for it; return the seconds until something is due again, at most five."""
        return self._loop.run_due()

    def _current(self, metric: Metric) -> Metric | None:
        """Return the current version of a metric; None if there is none."""
        confinement = metric.rule.confinement
        if confinement is None:
            return self.catalogue.current(metric)
        return self._rule_objects.catalogue_of(confinement.namespace).current(metric)

    def _until(self) -> float:
        """Return the time, in monotonic seconds, until which a request that begins now may wait."""
        return self._clock.monotonic() + self._settings.first_answer_wait_seconds

    def _prepare(self, rulebook: Rulebook) -> None:
        rules, settings = rulebook.rules, self._settings
        for warning in chain(long_refresh_warnings(rules, settings), unknown_age_warnings(rules, settings)):
            _log.warning("%s", warning)
        own = (rule for rule in rulebook.rules if rule.backend is None)
        self._uptime.wanted |= any(rule.policy.no_data_value is not None for rule in own)

    def _reading(self, metric: Metric, request: DemandedRequest, until: float) -> tuple[Reading, tuple[str, ...]]:
        """Return the reading that answers a request, and warnings about it. Raises ReadingError."""
        entry = self._scheduler.entry(metric, request)
        reading = self._current_readings.current(entry, until)
        retained, failure = self._cataloguer.rulebook.retained, entry.scope.query.failure
        if not retained and failure is None:
            return reading, ()
        return reading, tuple(rule_warnings(metric.rule, retained, failure, self._current_readings.age(reading)))

    def _overview(self) -> Overview:
        asked, unread = self._scheduler.state, self._number_of_unread_objects()
        states = states_of_objects(self._rule_objects.namespaces, unread, self.catalogue, self._sources.pace)
        of_files = overview(
            self._cataloguer.rulebook,
            self._cataloguer.states,
            asked.groups(),
            successes=dict(asked.outcomes.last_success),
            failing=self._states.failing,
        )
        held = asked.holdings.total
        return replace(of_files, objects=states, distrusted=asked.count_distrusted_plans(), values_held=held)
