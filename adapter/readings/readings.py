"""Answers "the value of metric M for objects X" from memory.

Requests say what is asked for; queries for it are refreshed in the background, one for many askers; a request reads
the newest answer. It waits for Prometheus only where nobody has asked the same before. This class puts the parts
together:

    request ──> Board ──> entry ──> query ──> reading ──> answer
    run_due ──> Board, Cataloguer ──> threads of the process ──> Refresher, Discovery ──> Prometheus
"""

from __future__ import annotations

import functools
import logging
import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from adapter.readings.answers import ByName
from adapter.readings.board import Board
from adapter.readings.cataloguing import Cataloguer
from adapter.readings.cross_check import CrossCheck
from adapter.readings.demand import Request
from adapter.readings.discovery import Discovery
from adapter.readings.errors import (
    AnswerTooOldError,
    NoObjectsMatchError,
    ObjectsNotKnownError,
    ReadingError,
    SourceSlowError,
)
from adapter.readings.explained_way import HASTY
from adapter.readings.explaining import Explainer
from adapter.readings.lookups import LookUp
from adapter.readings.names import SharedNames
from adapter.readings.notices import notices, usage_notices
from adapter.readings.policies import external_answer, objects_answer, warn_of_long_refreshes
from adapter.readings.queries import Failure
from adapter.readings.refresher import Refresher, let_go
from adapter.readings.remembered import Remembered
from adapter.readings.rule_states import RuleStates, look_up_troubles, unreachable
from adapter.readings.settings import Clock, ReadingSettings
from adapter.readings.telemetry import Overview
from adapter.readings.usage import UsageReadings
from adapter.sources.objects import ObjectsError
from adapter.sources.prometheus.errors import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from adapter.objects.resources import Resource
    from adapter.objects.selectors import Selector
    from adapter.readings.answers import BySelector, ExternalAnswer, ObjectsAnswer, UsageAnswer
    from adapter.readings.catalogue import Catalogue
    from adapter.readings.demand import Entry
    from adapter.readings.explanation import Explanation, Question, Step
    from adapter.readings.queries import Query, Reading
    from adapter.readings.refresher import Prometheus
    from adapter.readings.rows import ExternalReading
    from adapter.readings.snapshot import ObjectReading
    from adapter.readings.telemetry import ReadingsTelemetry
    from adapter.rulebook.model import Metric, Rule, Rulebook
    from adapter.sources.objects import ObjectSource
    from adapter.sources.pace import Pace

_log = logging.getLogger(__name__)

_SWEEP_SECONDS = 5.0


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
    ) -> None:
        """Start with a rulebook; nothing is asked of Prometheus yet.

        `submit` runs a function on a thread of the process; four threads or more, since a slow query holds one for
        its deadline. `run_due` is to be called several times a second.
        """
        self._settings = settings or ReadingSettings()
        self._clock = clock or Clock()
        self._objects = objects
        self._submit = submit
        self._pace = pace
        self._telemetry = telemetry
        self._waiting = threading.BoundedSemaphore(self._settings.max_waiting_requests)
        self._swept_at = self._clock.monotonic()
        self._states = RuleStates(self._clock.monotonic)
        self._refresher = Refresher(
            prometheus=prometheus,
            objects=objects,
            settings=self._settings,
            clock=self._clock,
            pace=pace,
            names=SharedNames(self._clock.monotonic),
            telemetry=telemetry,
            states=self._states,
        )
        discovery = Discovery(
            prometheus=prometheus, resolve=objects.resource, settings=self._settings, clock=self._clock, pace=pace
        )
        self._cataloguer = Cataloguer(
            discovery=discovery, rulebook=rulebook, settings=self._settings, clock=self._clock
        )
        self._board = Board(
            settings=self._settings,
            clock=self._clock,
            telemetry=telemetry,
            states=self._states,
            launch=lambda query: submit(lambda: self._refresh(query)),
        )
        self._cross_check = CrossCheck(
            board=self._board,
            refresher=self._refresher,
            objects=objects,
            settings=self._settings,
            clock=self._clock,
            pace=pace,
            telemetry=telemetry,
        )
        self._checking = False
        self._usage = UsageReadings(
            board=self._board, objects=objects, current=self._current, settings=self._settings, clock=self._clock
        )
        self._usage.prepare(self.catalogue)
        self._explainer = Explainer(
            prometheus=prometheus,
            objects=objects,
            resolve=objects.resource,
            settings=self._settings,
            clock=self._clock,
            pace=pace,
            patience=HASTY,
        )
        warn_of_long_refreshes(rulebook.rules, self._settings)
        telemetry.observe(self._overview)

    @property
    def catalogue(self) -> Catalogue:
        """The metrics that are served now."""
        return self._cataloguer.catalogue

    def has_looked_up_all(self) -> bool:
        """Return whether the catalogue holds what there was at the start, as far as Prometheus tells it."""
        return self._cataloguer.has_looked_up_all()

    def objects(
        self, metric: Metric, namespace: str | None, which: ByName | BySelector, metric_selector: Selector
    ) -> ObjectsAnswer:
        """Return a custom metric's values for some objects. Raises ReadingError."""
        names = (which.name,) if isinstance(which, ByName) else self._names(metric, namespace, which)
        found, warnings = self._reading(metric, Request(metric.qualified, namespace, which, metric_selector))
        reading = cast("ObjectReading", found)
        answer = objects_answer(metric.rule.policy, reading, namespace, which, names, self._age(reading))
        return replace(answer, warnings=(*warnings, *answer.warnings)) if warnings else answer

    def external(self, metric: Metric, namespace: str | None, selector: Selector) -> ExternalAnswer:
        """Return an external metric's values. Raises ReadingError."""
        found, warnings = self._reading(metric, Request(metric.qualified, namespace, None, selector))
        reading = cast("ExternalReading", found)
        age, count = self._age(reading), self._telemetry.dropped
        answer = external_answer(metric.rule.policy, reading, namespace, selector, age, count)
        return replace(answer, warnings=(*warnings, *answer.warnings)) if warnings else answer

    def usage(self, kind: Resource, namespace: str | None, which: ByName | BySelector) -> UsageAnswer:
        """Return what pods or nodes use; for pods `namespace` None means those of all. Raises ReadingError."""
        catalogue, rulebook = self.catalogue, self._cataloguer.rulebook
        answer = self._usage.answer(catalogue, kind, namespace, which)
        warnings = tuple(usage_notices(rulebook, catalogue.usage_of(kind)))
        return replace(answer, warnings=(*warnings, *answer.warnings)) if warnings else answer

    def explain(self, question: Question, notes: Iterable[Step] = ()) -> Explanation:
        """Return why a metric has, or lacks, a value: as Prometheus says now, and as it is remembered.

        Takes a few seconds at most, on the thread that calls. `notes` are further steps, which others know.
        """
        memory = Remembered(self.catalogue, self.look_ups(), self._board.entries(), self._clock, self._pace)
        return self._explainer.explain(question, self._cataloguer.rulebook, notes, memory)

    def look_ups(self) -> tuple[LookUp, ...]:
        """Return how the last look-up of each rule's series went, in the order of the files."""
        states = self._cataloguer.states()
        return tuple(LookUp(state.rule, state.succeeded_at, state.failure) for state in states)

    def replace_rulebook(self, rulebook: Rulebook) -> None:
        """Put another rulebook in force, for a reload; takes seconds, in which the former one serves.

        Readings of metrics that did not change go on. What was learnt about refused plans is forgotten.
        """
        warn_of_long_refreshes(rulebook.rules, self._settings)
        self._cataloguer.replace(rulebook)
        self._states.forget_remarks()
        self._board.replan(self.catalogue, self._pace)
        self._usage.prepare(self.catalogue)

    def run_due(self) -> float:
        """Start what is due, without waiting for it; return the seconds until something is due again, at most five."""
        now = self._clock.monotonic()
        self._board.take_due()
        self._look_up_due()
        if now - self._swept_at >= _SWEEP_SECONDS:
            self._swept_at = now
            self._submit(self._sweep)
        if now >= self._cross_check.due and not self._checking:
            self._checking = True
            self._submit(self._check_a_plan)
        due = (self._board.next_due(), self._cataloguer.next_due(), self._swept_at + _SWEEP_SECONDS)
        return max(0.0, min(moment for moment in due if moment is not None) - now)

    def _names(self, metric: Metric, namespace: str | None, which: BySelector) -> Collection[str]:
        if metric.resource is None:
            raise NoObjectsMatchError(f"{metric.qualified} describes no objects: ask for it as an external metric")
        try:
            names = self._objects.names(metric.resource, namespace, which.selector)
        except ObjectsError as error:
            raise ObjectsNotKnownError(str(error)) from error
        if not names:
            where = f" in namespace {namespace!r}" if namespace else ""
            raise NoObjectsMatchError(f"no {metric.resource.qualified}{where} match the selector '{which.selector}'")
        return names

    def _reading(self, metric: Metric, request: Request) -> tuple[Reading, tuple[str, ...]]:
        """Return what answers a request, and what a person should know of it. Raises ReadingError."""
        until = self._clock.monotonic() + self._settings.first_answer_wait_seconds
        entry = self._board.entry(metric, request)
        reading = self._current(entry, until)
        retained, failure = self._cataloguer.rulebook.retained, entry.scope.query.failure
        if not retained and failure is None:
            return reading, ()
        return reading, tuple(notices(metric.rule, retained, failure, self._age(reading)))

    def _current(self, entry: Entry, until: float) -> Reading:
        """Return what answers a request now; a first reading is waited for until then, in monotonic seconds."""
        reading = entry.scope.query.reading or self._first_reading(entry, until)
        age = self._age(reading)
        if age > self._settings.max_answer_age_seconds:
            raise AnswerTooOldError(self._too_old(entry, age))
        return reading

    def _age(self, reading: Reading) -> float:
        return reading.evaluated.age(self._clock.wall(), self._clock.monotonic())

    def _first_reading(self, entry: Entry, until: float) -> Reading:
        """Wait for the query that is on its way; what failed before is told at once."""
        query = self._board.query_of(entry)
        if query.settled.is_set() and query.failure is not None:
            raise query.failure.raised()
        if not self._waiting.acquire(blocking=False):
            raise SourceSlowError(
                f"{entry.request.metric}: asked of Prometheus for the first time, and no more than "
                f"{self._settings.max_waiting_requests} requests wait at once: the answer will be there soon"
            )
        try:
            return self._wait(entry, until)
        finally:
            self._waiting.release()

    def _wait(self, entry: Entry, until: float) -> Reading:
        while True:
            query = self._board.query_of(entry)
            if query.reading is not None:
                return query.reading
            if query.failure is not None:
                raise query.failure.raised()
            if not query.settled.wait(max(0.0, until - self._clock.monotonic())):
                wait = self._settings.first_answer_wait_seconds
                raise SourceSlowError(
                    f"{entry.request.metric}: Prometheus did not answer within {wait:g} s; the query goes on: "
                    f"{shortened(query.key.planned.text)}"
                )

    def _too_old(self, entry: Entry, age: float) -> str:
        scope = entry.scope
        failure = scope.query.failure or scope.wanted.failure
        reason = failure.message if failure else "the refresh has not come back"
        limit = self._settings.max_answer_age_seconds
        return f"{reason}; the last good answer is {age:.0f} s old, and none older than {limit:g} s is served"

    def _check_a_plan(self) -> None:
        try:
            self._cross_check.step()
        finally:
            self._checking = False

    def _sweep(self) -> None:
        self._board.sweep(self._pace)
        states = self._cataloguer.states()
        # Prometheus being away is no rule's trouble, and told by itself.
        answered_at = max((state.succeeded_at or 0.0 for state in states), default=0.0)
        answered_at = max(answered_at, *list(self._board.last_success.values()), 0.0)
        if not self._board.source_failed:
            self._states.tell_source(unreachable(states, answered_at))
        troubles = (*look_up_troubles(states, answered_at), *self._board.troubles(self._pace))
        self._states.tell(troubles, self._rules())

    def _rules(self) -> Iterable[Rule]:
        """Return all rules in force, each once."""
        served = {metric.rule.id: metric.rule for metric in self.catalogue.resource.metrics}
        return (*(state.rule for state in self._cataloguer.states()), *served.values())

    def _look_up_due(self) -> None:
        for series_query in self._cataloguer.take_due():
            self._submit(functools.partial(self._look_up, series_query))

    def _look_up(self, series_query: str) -> None:
        self._cataloguer.look_up(series_query)
        self._look_up_due()

    def _refresh(self, query: Query) -> None:
        """Ask a query once, and enter how it ended."""
        try:
            outcome = self._refresher.ask(query)
        except Exception as error:  # noqa: BLE001 - the one place that keeps a fault in one query from all others
            _log.exception("refreshing %s failed by a fault of the program", query.metric.qualified)
            outcome = Failure(
                ReadingError, f"{query.metric.qualified}: a fault of the adapter ({type(error).__name__}), see its log"
            )
        replaced = self._board.settle(query, outcome)
        del outcome
        if replaced is not None:
            parts = replaced.parts()
            del replaced
            let_go(parts, self._pace)

    def _overview(self) -> Overview:
        groups = self._board.groups()
        rulebook, states = self._cataloguer.rulebook, self._cataloguer.states()
        served = rulebook.resource.rules
        rule_ids = {state.rule.id for state in states} | {rule.id for rule in served}
        success = {state.rule.id: state.succeeded_at for state in states if state.succeeded_at is not None}
        for rule, moment in list(self._board.last_success.items()):
            if rule in rule_ids:
                success[rule] = max(moment, success.get(rule, 0.0))
        failing = self._states.failing & rule_ids | {state.rule.id for state in states if state.failure is not None}
        return Overview(
            demanded=len({group.metric.qualified for group in groups}),
            rule_states={
                "ok": len(rule_ids - failing - rulebook.retained.keys()),
                "refused": len(rulebook.refused),
                "failing": len(failing),
                "retained": len(rulebook.retained),
            },
            plans=Counter((group.metric.rule.id, group.kind) for group in groups),
            distrusted=self._board.distrusted(),
            last_success=success,
        )
