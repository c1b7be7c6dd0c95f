"""Answers "the value of metric M for objects X" from memory.

Requests say what is asked for; queries for it are refreshed in the background, one for many askers; a request reads
the newest answer. It waits for Prometheus only at the first request of its kind. This class puts the parts
together:

    request ──> QueryScheduler ──> entry ──> query ──> reading ──> answer
    run_due ──> RefreshLoop ──> threads of the process ──> Refresher, SeriesDiscovery ──> Prometheus
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from adapter.readings.answering import Answering
from adapter.readings.asking.cross_check import CrossCheck
from adapter.readings.asking.demand import DemandedRequest
from adapter.readings.asking.first_answers import FirstAnswers
from adapter.readings.asking.periods import long_refresh_warnings
from adapter.readings.asking.query_scheduler import QueryScheduler
from adapter.readings.asking.refresher import Refresher
from adapter.readings.asking.usage import UsageReadings
from adapter.readings.catalogue.cataloguer import Cataloguer
from adapter.readings.catalogue.discovery import SeriesDiscovery
from adapter.readings.catalogue.look_ups import LookUp
from adapter.readings.catalogue.rule_health import RuleHealthLog
from adapter.readings.explain.explainer import Explainer
from adapter.readings.explain.served_memory import ServedMemory
from adapter.readings.explain.way import HASTY
from adapter.readings.notices import notices, usage_notices
from adapter.readings.overview import overview
from adapter.readings.prometheus_uptime import PrometheusUptime
from adapter.readings.refresh_loop import RefreshLoop
from adapter.readings.samples.shared_names import SharedNames
from adapter.readings.samples.silent_series import SilentSeries
from adapter.readings.settings import ReadingSettings
from adapter.timing.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapter.objects.resources import Resource
    from adapter.objects.selectors import Selector
    from adapter.readings.answers import ByName, BySelector, ExternalAnswer, NamedBySelector, ObjectsAnswer, UsageAnswer
    from adapter.readings.asking.queries import Reading
    from adapter.readings.catalogue.catalogue import Catalogue
    from adapter.readings.explain.explanation import Explanation, ExplanationStep, Question
    from adapter.readings.prometheus import Prometheus
    from adapter.readings.samples.external_reading import ExternalReading
    from adapter.readings.samples.object_reading import ObjectReading
    from adapter.readings.telemetry import Overview, ReadingsTelemetry
    from adapter.rulebook.model import Metric, RefusedRule, Rulebook
    from adapter.sources.objects import ObjectSource
    from adapter.sources.prometheus.runtime import Started
    from adapter.timing.pace import Pace

_log = logging.getLogger(__name__)


class Readings:
    """What the APIs ask. Any thread may call it."""

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
    ) -> None:
        """Start with a rulebook; nothing is asked of Prometheus yet.

        `submit` runs a function on a thread of the process; four threads or more, since a slow query holds one for
        its deadline. `run_due` is to be called several times a second. `started` asks Prometheus when it started,
        within some seconds, and raises PrometheusError; None if it cannot.
        """
        self._settings = settings or ReadingSettings()
        self._clock = clock or Clock()
        self._objects = objects
        self._pace = pace
        self._telemetry = telemetry
        self._states = RuleHealthLog(self._clock.monotonic)
        self._uptime = PrometheusUptime(self._clock, started)
        self._silent_series = SilentSeries(self._settings.look_back_seconds)
        self._cataloguer = self._new_cataloguer(prometheus, rulebook)
        self._scheduler = QueryScheduler(
            settings=self._settings,
            clock=self._clock,
            telemetry=telemetry,
            states=self._states,
            launch=lambda query: submit(lambda: self._loop.refresh(query)),
            launch_trial=lambda trial: submit(lambda: self._loop.try_wider(trial)),
        )
        self._first_answers = FirstAnswers(self._scheduler, self._settings, self._clock)
        self._answering = Answering(
            objects=objects,
            settings=self._settings,
            clock=self._clock,
            dropped=telemetry.dropped,
            listing=self._first_answers,
        )
        self._loop = self._new_loop(self._new_refresher(prometheus), submit)
        self._usage = UsageReadings(
            scheduler=self._scheduler,
            objects=objects,
            current=self._first_answers.current,
            settings=self._settings,
            clock=self._clock,
        )
        self._usage.prepare(self.catalogue)
        self._explainer = self._new_explainer(prometheus)
        self._prepare(rulebook)
        telemetry.observe(self._overview)

    @property
    def catalogue(self) -> Catalogue:
        """The metrics that are served now."""
        return self._cataloguer.catalogue

    def has_looked_up_all(self) -> bool:
        """Return whether the catalogue holds what there was at the start, as far as Prometheus reports it."""
        return self._cataloguer.has_looked_up_all()

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
        """Return what pods or nodes use; for pods `namespace` None means those of all. Raises ReadingError."""
        catalogue, rulebook = self.catalogue, self._cataloguer.rulebook
        answer = self._usage.answer(catalogue, kind, namespace, which)
        warnings = tuple(usage_notices(rulebook, catalogue.usage_of(kind)))
        return replace(answer, warnings=(*warnings, *answer.warnings)) if warnings else answer

    def explain(self, question: Question, notes: Iterable[ExplanationStep] = ()) -> Explanation:
        """Return why a metric has, or lacks, a value: from what Prometheus says now and from what is in memory.

        Takes a few seconds at most, on the thread that calls. `notes` are further steps, from the caller.
        """
        memory = ServedMemory(self.catalogue, self.look_ups(), self._scheduler.entries(), self._clock, self._pace)
        return self._explainer.explain(question, self._cataloguer.rulebook, notes, memory)

    def look_ups(self) -> tuple[LookUp, ...]:
        """Return how the last look-up of each rule's series went, in the order of the files."""
        states = self._cataloguer.states()
        return tuple(LookUp(state.rule, state.succeeded_at, state.failure) for state in states)

    def refused(self) -> tuple[RefusedRule, ...]:
        """Return the rules that are refused as they stand in the files."""
        return self._cataloguer.rulebook.refused

    def replace_rulebook(self, rulebook: Rulebook) -> None:
        """Put another rulebook in force, for a reload; takes seconds, in which the former one serves.

        Metrics that did not change keep their readings. What was learnt about refused plans is forgotten.
        """
        self._prepare(rulebook)
        self._cataloguer.replace(rulebook)
        self._states.forget_remarks()
        self._scheduler.replan(self.catalogue, self._pace)
        self._usage.prepare(self.catalogue)

    def run_due(self) -> float:
        """Start what is due, without waiting for it; return the seconds until something is due again, at most five."""
        return self._loop.run_due()

    def _new_refresher(self, prometheus: Prometheus) -> Refresher:
        return Refresher(
            prometheus=prometheus,
            objects=self._objects,
            settings=self._settings,
            clock=self._clock,
            pace=self._pace,
            names=SharedNames(self._clock.monotonic),
            telemetry=self._telemetry,
            remarks=self._states,
            uptime=self._uptime,
            silent_series=self._silent_series,
        )

    def _new_cataloguer(self, prometheus: Prometheus, rulebook: Rulebook) -> Cataloguer:
        discovery = SeriesDiscovery(
            prometheus=prometheus,
            resolve=self._objects.resource,
            settings=self._settings,
            clock=self._clock,
            pace=self._pace,
            uptime=self._uptime,
        )
        return Cataloguer(discovery=discovery, rulebook=rulebook, settings=self._settings, clock=self._clock)

    def _new_loop(self, refresher: Refresher, submit: Callable[[Callable[[], None]], object]) -> RefreshLoop:
        return RefreshLoop(
            scheduler=self._scheduler,
            refresher=refresher,
            cataloguer=self._cataloguer,
            cross_check=self._new_cross_check(refresher),
            states=self._states,
            submit=submit,
            pace=self._pace,
            clock=self._clock,
        )

    def _new_cross_check(self, refresher: Refresher) -> CrossCheck:
        return CrossCheck(
            scheduler=self._scheduler,
            refresher=refresher,
            objects=self._objects,
            settings=self._settings,
            clock=self._clock,
            pace=self._pace,
            telemetry=self._telemetry,
        )

    def _new_explainer(self, prometheus: Prometheus) -> Explainer:
        return Explainer(
            prometheus=prometheus,
            objects=self._objects,
            resolve=self._objects.resource,
            settings=self._settings,
            clock=self._clock,
            pace=self._pace,
            patience=HASTY,
            uptime=self._uptime,
            silent_series=self._silent_series,
        )

    def _until(self) -> float:
        """Return until when a request that begins now may wait, in monotonic seconds."""
        return self._clock.monotonic() + self._settings.first_answer_wait_seconds

    def _prepare(self, rulebook: Rulebook) -> None:
        for warning in long_refresh_warnings(rulebook.rules, self._settings):
            _log.warning("%s", warning)
        self._uptime.wanted = any(rule.policy.no_data_value is not None for rule in rulebook.rules)

    def _reading(self, metric: Metric, request: DemandedRequest, until: float) -> tuple[Reading, tuple[str, ...]]:
        """Return the reading that answers a request, and warnings about it. Raises ReadingError."""
        entry = self._scheduler.entry(metric, request)
        reading = self._first_answers.current(entry, until)
        retained, failure = self._cataloguer.rulebook.retained, entry.scope.query.failure
        if not retained and failure is None:
            return reading, ()
        return reading, tuple(notices(metric.rule, retained, failure, self._first_answers.age(reading)))

    def _overview(self) -> Overview:
        return overview(
            self._cataloguer.rulebook,
            self._cataloguer.states(),
            self._scheduler.groups(),
            successes=dict(self._scheduler.last_success),
            failing=self._states.failing,
            distrusted=self._scheduler.distrusted(),
            values_held=self._scheduler.values_held,
        )
