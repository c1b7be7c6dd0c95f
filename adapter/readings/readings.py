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
from typing import TYPE_CHECKING, cast

from adapter.readings.answers import ByName, ExternalAnswer, ObjectsAnswer
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
from adapter.readings.names import SharedNames
from adapter.readings.queries import Failure
from adapter.readings.refresher import Refresher, let_go
from adapter.readings.settings import Clock, ReadingSettings
from adapter.readings.telemetry import Overview
from adapter.sources.objects import ObjectsError
from adapter.sources.prometheus.errors import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from adapter.objects.selectors import Selector
    from adapter.readings.answers import BySelector
    from adapter.readings.catalogue import Catalogue
    from adapter.readings.demand import Entry
    from adapter.readings.queries import Query, Reading
    from adapter.readings.refresher import Prometheus
    from adapter.readings.rows import ExternalReading
    from adapter.readings.snapshot import ObjectReading
    from adapter.readings.telemetry import ReadingsTelemetry
    from adapter.rulebook.model import Metric, Rulebook
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
        self._refresher = Refresher(
            prometheus=prometheus,
            objects=objects,
            settings=self._settings,
            clock=self._clock,
            pace=pace,
            names=SharedNames(self._clock.monotonic),
            telemetry=telemetry,
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
        reading = cast(
            "ObjectReading", self._reading(metric, Request(metric.qualified, namespace, which, metric_selector))
        )
        values = reading.one(namespace, which.name) if isinstance(which, ByName) else reading.of(namespace, names)
        return ObjectsAnswer(values, reading.evaluated.wall)

    def external(self, metric: Metric, namespace: str | None, selector: Selector) -> ExternalAnswer:
        """Return an external metric's values. Raises ReadingError."""
        reading = cast("ExternalReading", self._reading(metric, Request(metric.qualified, namespace, None, selector)))
        return ExternalAnswer(reading.answer(namespace, selector, self._telemetry.dropped), reading.evaluated.wall)

    def replace_rulebook(self, rulebook: Rulebook) -> None:
        """Put another rulebook in force, for a reload; takes seconds, in which the former one serves.

        Readings of metrics that did not change go on. What was learnt about refused plans is forgotten.
        """
        self._cataloguer.replace(rulebook)
        self._board.replan(self.catalogue, self._pace)

    def run_due(self) -> float:
        """Start what is due, without waiting for it; return the seconds until something is due again, at most five."""
        now = self._clock.monotonic()
        self._board.take_due()
        self._look_up_due()
        if now - self._swept_at >= _SWEEP_SECONDS:
            self._swept_at = now
            self._submit(lambda: self._board.sweep(self._pace))
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

    def _reading(self, metric: Metric, request: Request) -> Reading:
        entry = self._board.entry(metric, request)
        reading = entry.scope.query.reading or self._first_reading(entry)
        age = reading.evaluated.age(self._clock.wall(), self._clock.monotonic())
        if age > self._settings.max_answer_age_seconds:
            raise AnswerTooOldError(self._too_old(entry, age))
        return reading

    def _first_reading(self, entry: Entry) -> Reading:
        """Wait for the query that is on its way; what failed before is told at once."""
        until = self._clock.monotonic() + self._settings.first_answer_wait_seconds
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
        failing = sum(state.failure is not None for state in states)
        rule_ids = {state.rule.id for state in states}
        success = {state.rule.id: state.succeeded_at for state in states if state.succeeded_at is not None}
        for rule, moment in list(self._board.last_success.items()):
            if rule in rule_ids:
                success[rule] = max(moment, success.get(rule, 0.0))
        return Overview(
            demanded=len({group.metric.qualified for group in groups}),
            rule_states={"ok": len(states) - failing, "refused": len(rulebook.refused), "failing": failing},
            plans=Counter((group.metric.rule.id, group.kind) for group in groups),
            distrusted=self._board.distrusted(),
            last_success=success,
        )
